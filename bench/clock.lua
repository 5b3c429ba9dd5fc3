--- The monotonic clock at this moment, where ngx.now tells when nginx's loop turned.
-- @module clock

local ffi = require("ffi")

ffi.cdef([[
typedef struct { long seconds; long nanoseconds; } bench_time_t;
// Another library may have declared it with a struct of its own.
int bench_clock(int clock, bench_time_t *time) __asm__("clock_gettime");
]])

local CLOCK_MONOTONIC = 1

local C = ffi.C
local time = ffi.new("bench_time_t")

local _M = {}

--- Nanoseconds since some moment before the machine's start.
function _M.now_ns()
    C.bench_clock(CLOCK_MONOTONIC, time)
    return tonumber(time.seconds) * 1e9 + tonumber(time.nanoseconds)
end

--- The same in seconds.
function _M.now()
    return _M.now_ns() / 1e9
end

return _M
