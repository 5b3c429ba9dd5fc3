"""A plugin that watches how long others are held up."""

# Notes what the event loop's thread has worked without a pause, and in all, in microseconds of its
# processor: what else the machine does makes no difference. A file that is gone begins anew.
WATCH = """
local ffi = require("ffi")
ffi.cdef([[
struct test_turns_time { long seconds, nanoseconds; };
int test_turns_clock(int which, struct test_turns_time *time) __asm__("clock_gettime");
]])
local THREAD = 3
local time = ffi.new("struct test_turns_time")

local function now()
    ffi.C.test_turns_clock(THREAD, time)
    return tonumber(time.seconds) * 1e6 + tonumber(time.nanoseconds) / 1e3
end

local function watch(premature)
    local path = "@path@"
    local longest, all, before, ticks = 0, 0, now(), 0
    while not premature and not ngx.worker.exiting() do
        ngx.sleep(0.001)
        local took = now() - before
        longest, all, ticks = math.max(longest, took), all + took, ticks + 1
        if ticks % 20 == 0 then
            local before_it, file = io.open(path), io.open(path .. ".new", "w")
            if before_it then
                before_it:close()
            else
                longest, all = 0, 0
            end
            if file then
                file:write(("%d %d %d"):format(ticks, longest, all))
                file:close()
                os.rename(path .. ".new", path)
            end
        end
        before = now()
    end
end

return {
    VERSION = "0.1.0",
    PRIORITY = 1,
    schema = { name = "turns", fields = { { config = { type = "record", fields = {} } } } },
    init_worker = function()
        if ngx.worker.id() == 0 then
            ngx.timer.at(0, watch)
        end
    end,
}
"""
