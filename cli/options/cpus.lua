--- How many CPUs a process may use: what `workers = auto` means. Linux only.
--
-- nginx itself counts those of the machine, also where a container has the time of two of them.

local ffi = require("ffi")
local process = require("cli.instance.process")

local _M = {}

-- _SC_NPROCESSORS_ONLN of Linux.
local ONLINE = 84
-- Words of 32 CPUs: 8,192 is the most that Linux can be built for.
local MASK_WORDS = 256

local CONTROL_GROUPS = "/sys/fs/cgroup"

ffi.cdef([[
long sysconf(int name);
int sched_getaffinity(int pid, size_t size, uint32_t *mask);
]])

-- Those that it may run on (taskset, cpusets).
local function allowed(pid)
    local mask = ffi.new("uint32_t[?]", MASK_WORDS)
    if ffi.C.sched_getaffinity(pid or 0, ffi.sizeof(mask), mask) ~= 0 then
        return tonumber(ffi.C.sysconf(ONLINE))
    end
    local count = 0
    for i = 0, MASK_WORDS - 1 do
        local word = mask[i]
        while word ~= 0 do
            word = bit.band(word, word - 1)
            count = count + 1
        end
    end
    return count
end

-- As many as the time pays for that its control group has, and each above that (cgroup v2). A
-- container sees its own as the topmost.
local function paid(pid)
    local text = process.read_file(("/proc/%s/cgroup"):format(pid or "self"))
    local path = ("\n" .. (text or "")):match("\n0::(/[^\n]*)") or "/"
    local least = math.huge
    while path do
        local limit = process.read_file(CONTROL_GROUPS .. path .. "/cpu.max") or ""
        local quota, period = limit:match("^(%d+) (%d+)")
        least = quota and math.min(least, quota / period) or least
        path = path ~= "/" and (path:match("^(/.*)/") or "/") or nil
    end
    return least
end

--- The CPUs of a process: a part of one counts as one.
-- @tparam[opt] number pid this process when absent
-- @treturn number 1 or more
function _M.count(pid)
    return math.max(1, math.min(allowed(pid), math.ceil(paid(pid))))
end

return _M
