--- Lua's garbage collector around large, rare work in a worker.
--
-- What is made when a configuration is checked and compiled is there to stay, or is
-- garbage at the end; to collect meanwhile is a third of the time. But the collector
-- works as much as is allocated while it may: held back without more, it would never
-- make good in a worker that has little to do. So when enough has piled up a whole
-- collection follows, in slices between requests.
-- @module sluice.garbage_collector

local _M = {}

-- A slice, and the loop's time until the next one.
local SLICE_SECONDS = 0.001
local PAUSE_SECONDS = 0.002
-- How long the work itself goes on while requests wait.
local TURN_SECONDS = 0.005
local TURN_PAUSE_SECONDS = 0.001
-- Kilobytes: some tens of microseconds.
local STEP = 50

-- A collection follows when there is this much more than the last one has left: as
-- much again, as Lua itself waits for, but not less than this.
local LEAST_KB = 16 * 1024

-- How often who waits for a turn looks.
local LOOK_SECONDS = 0.005

local is_running = false
local is_taken = false
local left_kb -- by the last collection

local function collect_slice()
    local finish = os.clock() + SLICE_SECONDS
    repeat
        if collectgarbage("step", STEP) then
            return true
        end
    until os.clock() >= finish
    return false
end

-- Between slices nothing is collected: what others allocate then would be a debt, which LuaJIT's
-- next step (lj_gc_step) works off in one go, however large.
local function collect(premature)
    while not premature and not collect_slice() do
        collectgarbage("stop")
        ngx.sleep(PAUSE_SECONDS)
    end
    collectgarbage("restart", -1)
    left_kb = collectgarbage("count")
    is_running = false
end

-- Brings the collection that is under way to its end. LuaJIT's table of strings does not grow while
-- strings are swept (lj_str_resize): where a collection is stopped there, each new string is looked
-- for among thousands, and what takes seconds takes minutes.
local function finish_collection()
    if not is_running then
        is_running = true
        collect(false)
    end
    while is_running do
        ngx.sleep(PAUSE_SECONDS)
    end
end

--- Waits until nobody works in turns in this worker and what that left behind is collected: the
-- garbage of many at the same time would add up. Yields.
-- @tparam number seconds to wait at most
-- @treturn boolean whether the caller may begin; then it calls `leave` at the end
-- @phases content, timer
function _M.enter(seconds)
    local deadline = ngx.now() + seconds
    while is_taken or is_running do
        if ngx.now() >= deadline then
            return false
        end
        ngx.sleep(LOOK_SECONDS)
    end
    is_taken = true
    return true
end

--- Ends what `enter` has begun.
function _M.leave()
    is_taken = false
end

-- Not 0: on stock nginx such a timer goes off before anything else has its turn.
local function rest()
    ngx.sleep(TURN_PAUSE_SECONDS)
end

local function rest_and_collect()
    collectgarbage("restart", -1)
    rest()
    collectgarbage("stop")
end

local function in_turns(fn)
    local finish = os.clock() + TURN_SECONDS
    return function()
        if os.clock() >= finish then
            fn()
            finish = os.clock() + TURN_SECONDS
        end
    end
end

--- Makes a function that gives other requests their turn when some milliseconds have gone by since
-- it last did.
-- @treturn function yields
-- @phases content, timer
function _M.turns()
    return in_turns(rest)
end

--- The same for what `hold` calls: only meanwhile something is collected.
-- @treturn function yields
-- @phases content, timer
function _M.pauses()
    return in_turns(rest_and_collect)
end

--- Calls a function while nothing is collected; a collection comes before, and may follow in the
-- background: for what takes longer than those. Yields. Throws what the function throws.
-- @tparam function fn
-- @param ... its arguments
-- @return its first two results
-- @phases content, timer
function _M.hold(fn, ...)
    finish_collection()
    collectgarbage("stop")
    local ok, a, b = pcall(fn, ...)
    -- LuaJIT: -1 for the pause that follows a collection; else one would begin at once.
    collectgarbage("restart", -1)
    local more_kb = collectgarbage("count") - left_kb
    if not is_running and more_kb > math.max(left_kb, LEAST_KB) then
        is_running = ngx.timer.at(PAUSE_SECONDS, collect) == true
    end
    if not ok then
        error(a, 0)
    end
    return a, b
end

return _M
