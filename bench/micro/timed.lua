--- What the micro-benchmarks in Lua share: `program <case> <count>` prints the nanoseconds that
-- count turns of the case took.

local ffi = require("ffi")

ffi.cdef([[
    typedef struct { long sec; long nsec; } micro_time_t;
    int micro_clock(int clock, micro_time_t *time) asm("clock_gettime");
]])

local CLOCK_PROCESS_CPUTIME_ID = 2

local function now_ns()
    local now = ffi.new("micro_time_t")
    ffi.C.micro_clock(CLOCK_PROCESS_CPUTIME_ID, now)
    return tonumber(now.sec) * 1e9 + tonumber(now.nsec)
end

--- Runs the case that the command line names.
-- @tparam table cases by name: functions that prepare something and return what takes a count
-- @tparam {string,...} arguments of the program
return function(cases, arguments)
    local prepare = cases[arguments[1]]
    local count = tonumber(arguments[2])
    if not prepare or not count then
        error(("usage: %s <case> <count>"):format(arguments[0]), 0)
    end
    local run = prepare()
    collectgarbage()
    collectgarbage()
    local start = now_ns()
    run(count)
    io.write(("%.0f\n"):format(now_ns() - start))
end
