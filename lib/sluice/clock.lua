--- A clock that nobody sets, at this very moment: `ngx.now` tells the time of day when nginx's loop
-- turned. Needs nothing of nginx, so that a thread can ask it too.
-- @module sluice.clock

local ffi = require("ffi")

local C = ffi.C
local tonumber = tonumber

ffi.cdef([[
    typedef struct { long seconds; long nanoseconds; } sluice_clock_time_t;
    int clock_gettime(int id, sluice_clock_time_t *time);
]])

local CLOCK_REALTIME, CLOCK_MONOTONIC = 0, 1

local _M = {}

local time = ffi.new("sluice_clock_time_t")

--- Seconds since some moment before the machine's start. Does not yield.
-- @treturn number to the nanosecond
-- @phases any
function _M.monotonic()
    C.clock_gettime(CLOCK_MONOTONIC, time)
    return tonumber(time.seconds) + tonumber(time.nanoseconds) / 1e9
end

--- Nanoseconds since 1970, as exact as a number of Lua's is. Does not yield.
-- @treturn number
-- @phases any
function _M.wall_ns()
    C.clock_gettime(CLOCK_REALTIME, time)
    return tonumber(time.seconds) * 1e9 + tonumber(time.nanoseconds)
end

return _M
