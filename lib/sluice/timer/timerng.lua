--- Statistics of timers in the layout of lua-resty-timer-ng, which its users and those of the
-- gateway's Admin API know.
-- @module sluice.timer.timerng

local _M = {}

--- One timer's statistics, or those of all timers of a creation place.
-- @tparam string name
-- @tparam table found a timer or a place of sluice.timer's `stats`
-- @tparam string place where it was created: a place, or in debug mode a call stack
-- @tparam boolean is_running
-- @treturn table `{name, is_running, meta = {name, callstack}, stats = {elapsed_time, runs, finish,
--   last_err_msg}}`, times in seconds
-- @phases all
function _M.timer(name, found, place, is_running)
    local elapsed = found.elapsed
    return {
        name = name,
        is_running = is_running,
        meta = { name = place:match("([^;]*);?$"), callstack = place },
        stats = {
            elapsed_time = {
                avg = elapsed.mean,
                max = elapsed.max,
                min = elapsed.min,
                variance = elapsed.variance,
            },
            runs = found.runs,
            finish = found.successes,
            last_err_msg = found.last_err or "",
        },
    }
end

--- Folded stacks, with milliseconds for what sluice.timer has microseconds for.
-- @tparam table found the flamegraph of sluice.timer's `stats`
-- @treturn table `{running, pending, elapsed_time}`
-- @phases all
function _M.flamegraph(found)
    return {
        running = found.running,
        pending = found.pending,
        elapsed_time = found.elapsed:gsub(" (%d+)\n", function(microseconds)
            return (" %.3f\n"):format(microseconds / 1000)
        end),
    }
end

return _M
