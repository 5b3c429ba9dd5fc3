--- Lua's garbage collector around large, rare work in a worker.
--
-- What is made when a configuration is checked and compiled is there to stay, or is
-- garbage at the end; to collect meanwhile is a third of the time. But the collector
-- works as much as is allocated while it may: held back without more, it would never
-- make good in a worker that has little to do. So a whole collection follows, in
-- slices between requests.
-- @module gateway.collector

local _M = {}

-- A slice, and the loop's time until the next one.
local SLICE_SECONDS = 0.001
local PAUSE_SECONDS = 0.002
-- Kilobytes: some tens of microseconds.
local STEP = 50

local is_running, is_wanted = false, false

local function collect_slice()
    local finish = os.clock() + SLICE_SECONDS
    repeat
        if collectgarbage("step", STEP) then
            return true
        end
    until os.clock() >= finish
    return false
end

local function collect(premature)
    while is_wanted and not premature do
        is_wanted = false
        while not collect_slice() do
            ngx.sleep(PAUSE_SECONDS)
        end
    end
    is_running = false
end

--- Calls a function that does not yield while nothing is collected; a collection
-- follows in the background. Throws what the function throws.
-- @tparam function fn
-- @param ... its arguments
-- @return its first two results
-- @phases content, timer
function _M.hold(fn, ...)
    collectgarbage("stop")
    local ok, a, b = pcall(fn, ...)
    collectgarbage("restart")
    is_wanted = true
    if not is_running then
        is_running = ngx.timer.at(PAUSE_SECONDS, collect) == true
    end
    if not ok then
        error(a, 0)
    end
    return a, b
end

return _M
