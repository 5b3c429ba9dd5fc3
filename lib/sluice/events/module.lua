--- The C module's functions, through FFI.
--
-- The module's shared object exports them, and nginx loads modules so that `ffi.C` finds what
-- they export.
-- @module sluice.events.module

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")

local C = ffi.C

local _M = {}

_M.OK = 0
_M.QUEUED = 1
_M.NONE = -1
_M.FULL = -2
_M.BUSY = -3
_M.REPEAT = -4
_M.OVERRUN = -5
_M.BAD = -6
_M.NOSLOT = -9

_M.WORKER = 1
_M.UNIQUE = 2

_M.MORE = 1
_M.REDELIVER = 2

_M.NAME_MAX = 4096

-- What a slot counts, in the order of its words.
_M.counters = {
    "published",
    "published_bytes",
    "repeats",
    "found_full",
    "found_busy",
    "wakeups_sent",
    "read",
    "read_bytes",
    "overruns",
    "missed",
    "claimed",
    "sleeps",
    "delivered",
    "callback_errors",
    "queued",
    "refused",
    "dropped",
    "queue_depth",
    "queue_bytes",
}

local is_there, missing = abi.declare("core/ring", "lib/events")

--- Looks whether this nginx has the module.
-- @treturn true|nil
-- @treturn string|nil what is missing, for people
-- @phases all
function _M.load()
    return is_there, missing
end

--- The word for a return code: documented, never changed.
-- @tparam number rc
-- @treturn string
function _M.word(rc)
    return ffi.string(C.sluice_events_word(rc))
end

return _M
