--- The right to open ports below 1024, which a service may have without being root's
-- (CAP_NET_BIND_SERVICE). Linux only.
--
-- Who looks into /proc at a process needs all capabilities of it, and nginx's own test opens the
-- listeners: root's command that goes on as the service's user has to have what the service has.

local ffi = require("ffi")

local _M = {}

-- Of linux/capability.h and linux/prctl.h.
local VERSION_3 = 0x20080522
local NET_BIND_SERVICE = 10
local PR_SET_KEEPCAPS = 8
local PR_CAP_AMBIENT = 47
local PR_CAP_AMBIENT_RAISE = 2

ffi.cdef([[
typedef struct { uint32_t version; int pid; } sluice_capability_header_t;
typedef struct { uint32_t effective, permitted, inheritable; } sluice_capability_sets_t;
int capset(sluice_capability_header_t *header, const sluice_capability_sets_t *sets);
int prctl(int option, ...);
]])

local function prctl(option, ...)
    local arguments = { ... }
    for i = 1, 4 do
        arguments[i] = ffi.cast("unsigned long", arguments[i] or 0)
    end
    return ffi.C.prctl(option, unpack(arguments))
end

--- Calls a function that gives up root's rights, and keeps this one, also for programs that are
-- executed later. Where root itself has not got it, nothing is kept.
-- @tparam function become
function _M.keep(become)
    prctl(PR_SET_KEEPCAPS, 1)
    become()
    local header = ffi.new("sluice_capability_header_t", { VERSION_3, 0 })
    -- Two words of 32 capabilities each.
    local sets = ffi.new("sluice_capability_sets_t[2]")
    local bit_of = 2 ^ NET_BIND_SERVICE
    sets[0].effective, sets[0].permitted, sets[0].inheritable = bit_of, bit_of, bit_of
    if ffi.C.capset(header, sets) == 0 then
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, NET_BIND_SERVICE)
        return
    end
    ffi.fill(sets, ffi.sizeof(sets))
    assert(ffi.C.capset(header, sets) == 0, "cannot give up root's rights")
end

return _M
