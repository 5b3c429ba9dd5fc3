--- Processes of the machine: running nginx, reading /proc, waiting. Linux only.

local console = require("cli.terminal.console")
local ffi = require("ffi")
local dirent = require("posix.dirent")
local errno = require("posix.errno")
local fcntl = require("posix.fcntl")
local poll = require("posix.poll")
local signal = require("posix.signal")
local time = require("posix.time")
local unistd = require("posix.unistd")
local wait = require("posix.sys.wait")

local _M = {}

local POLL_NS = 10000000

-- Of Linux, with the byte at its end.
local PATH_MAX = 4096
_M.PATH_MAX = PATH_MAX

ffi.cdef("ssize_t readlink(const char *path, char *text, size_t size);")

local link_text = ffi.new("char[?]", PATH_MAX)

--- Reads a file.
-- @tparam string path
-- @tparam[opt] number size bytes of its beginning; else all of it
-- @treturn string|nil
-- @treturn nil|string the reason, with the path
function _M.read_file(path, size)
    local file, err = io.open(path, "rb")
    if not file then
        return nil, err
    end
    local text, reason = file:read(size or "*a")
    file:close()
    return text, reason
end

local read_file = _M.read_file

--- The monotonic clock.
-- @treturn number seconds
function _M.now_s()
    local t = time.clock_gettime(time.CLOCK_MONOTONIC)
    return t.tv_sec + t.tv_nsec / 1e9
end

--- Calls a function every 10 ms until it returns something true.
-- @tparam number timeout_s how long at most
-- @tparam function probe is called without arguments
-- @treturn any|nil what probe returned; nil after the time is over
function _M.poll(timeout_s, probe)
    local deadline = _M.now_s() + timeout_s
    while true do
        local result = probe()
        if result then
            return result
        end
        if _M.now_s() >= deadline then
            return nil
        end
        time.nanosleep({ tv_sec = 0, tv_nsec = POLL_NS })
    end
end

--- The command line of a process, its words separated by blanks.
-- @tparam number pid
-- @treturn string|nil nil when there is no such process (or it is a zombie)
function _M.command_line(pid)
    local text = read_file(("/proc/%d/cmdline"):format(pid))
    if not text or text == "" then
        return nil
    end
    return (text:gsub("%z", " "):gsub("%s+$", ""))
end

-- The fields of /proc/PID/stat after the name, which may hold blanks and parentheses.
local function stat_fields(pid)
    local text = read_file(("/proc/%s/stat"):format(pid))
    local tail = text and text:match("^.*%) (.*)$")
    if not tail then
        return nil
    end
    local fields = {}
    for field in tail:gmatch("%S+") do
        fields[#fields + 1] = field
    end
    return fields
end

local function is_number(name)
    return name:match("^%d+$") ~= nil
end

--- All processes of the machine.
-- @treturn table array of pids in ascending order, without zombies
-- @treturn table pid -> the pid of its parent
function _M.all()
    local pids, parents = {}, {}
    for entry in dirent.files("/proc") do
        local fields = is_number(entry) and stat_fields(entry)
        if fields and fields[1] ~= "Z" then
            local pid = tonumber(entry)
            pids[#pids + 1] = pid
            parents[pid] = tonumber(fields[2])
        end
    end
    table.sort(pids)
    return pids, parents
end

--- The processes whose command line begins with a text, by a scan of /proc.
-- @tparam string beginning
-- @treturn {number,...} pids in ascending order, without zombies
function _M.beginning_with(beginning)
    local pids = {}
    for entry in dirent.files("/proc") do
        local path = is_number(entry) and ("/proc/%s/cmdline"):format(entry)
        if path and read_file(path, #beginning) == beginning then
            pids[#pids + 1] = tonumber(entry)
        end
    end
    table.sort(pids)
    return pids
end

--- The parent of a process.
-- @tparam number pid
-- @treturn number|nil its pid; 0: it has none here; nil: there is no such process
function _M.parent(pid)
    local fields = stat_fields(pid)
    return fields and tonumber(fields[2])
end

--- The children of a process, by a scan of /proc.
-- @tparam number parent its pid
-- @treturn table array of pids in ascending order, without zombies
function _M.children(parent)
    local found = {}
    local pids, parents = _M.all()
    for _, pid in ipairs(pids) do
        if parents[pid] == parent then
            found[#found + 1] = pid
        end
    end
    return found
end

--- What a link of /proc says; posix.unistd.readlink fails for those: it believes the length that
-- lstat says.
-- @tparam string path
-- @treturn string|nil
function _M.read_link(path)
    local length = ffi.C.readlink(path, link_text, PATH_MAX)
    return length >= 0 and ffi.string(link_text, length) or nil
end

--- Goes through what a process holds open, one link read at a time: a master has hundreds, and
-- what is looked for is one of the first.
-- @tparam number pid
-- @treturn function iterator that gives a name, as /proc has it (a path, or "socket:[<inode>]" and
-- the like), and its descriptor, lowest first; nothing when it is gone or another user's
function _M.open_files(pid)
    local folder = ("/proc/%d/fd"):format(pid)
    -- Throws where the folder cannot be read.
    local is_listed, names = pcall(dirent.dir, folder)
    local at, count = 0, is_listed and #names or 0
    return function()
        while at < count do
            at = at + 1
            local fd = names[at]
            local name = is_number(fd) and _M.read_link(folder .. "/" .. fd)
            if name then
                return name, tonumber(fd)
            end
        end
        return nil
    end
end

--- How long a process has been running.
-- @tparam number pid
-- @treturn number|nil seconds
function _M.age_s(pid)
    local fields = stat_fields(pid)
    local uptime = tonumber((read_file("/proc/uptime") or ""):match("^%S+"))
    if not fields or not uptime then
        return nil
    end
    return math.max(0, uptime - tonumber(fields[20]) / unistd.sysconf(unistd._SC_CLK_TCK))
end

--- Whose rights a process has.
-- @tparam number pid
-- @treturn number|nil its effective user id; nil: there is no such process
function _M.user(pid)
    local text = read_file(("/proc/%d/status"):format(pid)) or ""
    return tonumber(text:match("\nUid:%s+%d+%s+(%d+)"))
end

-- A killed one's other threads may not have ended yet, such as the writer of the store, which waits
-- for its disk: until then the process has its files, locks and sockets.
local function has_threads(pid)
    local listed, names = pcall(dirent.dir, ("/proc/%d/task"):format(pid))
    local count = 0
    for _, name in ipairs(listed and names or {}) do
        count = count + (is_number(name) and 1 or 0)
    end
    return count > 1
end

--- Whether a process is there.
-- @tparam number pid
-- @treturn boolean
function _M.alive(pid)
    local fields = stat_fields(pid)
    return fields ~= nil and fields[1] ~= "Z"
end

--- Whether a process is gone with all that it had open.
-- @tparam number pid
-- @treturn boolean
function _M.has_ended(pid)
    return not _M.alive(pid) and not has_threads(pid)
end

--- Whether a process was stopped (SIGSTOP) and does not go on.
-- @tparam number pid
-- @treturn boolean
function _M.is_stopped(pid)
    local fields = stat_fields(pid)
    return fields ~= nil and fields[1]:lower() == "t"
end

--- Sends a signal.
-- @tparam number pid
-- @tparam string name such as "SIGHUP"
-- @treturn boolean|nil true, or nil and the reason
function _M.send(pid, name)
    local result, err, code = signal.kill(pid, signal[name])
    if result == 0 then
        return true
    end
    if code == errno.EPERM then
        return nil, ("pid %d belongs to another user; run this command as that user"):format(pid)
    end
    return nil, ("cannot signal pid %d: %s"):format(pid, err)
end

local function exec_child(binary, arguments, output)
    unistd.dup2(fcntl.open("/dev/null", fcntl.O_RDONLY), 0)
    unistd.dup2(output, 1)
    unistd.dup2(output, 2)
    -- A daemon gives up 1 and 2 only: with one more copy the reader would wait for its end.
    unistd.close(output)
    local _, err = unistd.exec(binary, arguments)
    console.write_error(("cannot run %s: %s\n"):format(binary, err))
    unistd._exit(127)
end

-- Reads to the end; nil when that has not come at the deadline.
local function read_all(fd, deadline_s)
    local parts = {}
    while true do
        local left_ms = math.max(0, math.ceil((deadline_s - _M.now_s()) * 1000))
        if poll.rpoll(fd, left_ms) == 0 then
            return nil
        end
        local part = unistd.read(fd, 65536)
        if not part or part == "" then
            return table.concat(parts)
        end
        parts[#parts + 1] = part
    end
end

--- Runs a program without input and collects what it prints; waits until it and all who share its
-- output end.
-- @tparam string binary path of the program
-- @tparam table arguments array of strings
-- @tparam number timeout_s how long it may take, up to 24 days; then it is killed
-- @treturn number|nil the exit status (128 + signal when it was killed)
-- @treturn string its standard output and error; why, when the first is nil
function _M.run(binary, arguments, timeout_s)
    local output, input = unistd.pipe()
    if not output then
        return nil, "cannot make a pipe: " .. input
    end
    local pid, err = unistd.fork()
    if not pid then
        return nil, "cannot fork: " .. err
    end
    if pid == 0 then
        unistd.close(output)
        exec_child(binary, arguments, input)
    end
    unistd.close(input)
    local text = read_all(output, _M.now_s() + timeout_s)
    unistd.close(output)
    if not text then
        signal.kill(pid, signal.SIGKILL)
    end
    local _, how, status = wait.wait(pid)
    if not text then
        return nil, ("%s did not exit within %g seconds"):format(binary, timeout_s)
    end
    return how == "exited" and status or 128 + status, text
end

--- Replaces this process by a program; returns only when that fails.
-- @tparam string binary path of the program
-- @tparam table arguments array of strings
-- @treturn nil
-- @treturn string why
function _M.exec(binary, arguments)
    console.flush()
    io.stderr:flush()
    local _, err = unistd.exec(binary, arguments)
    return nil, ("cannot run %s: %s"):format(binary, err)
end

return _M
