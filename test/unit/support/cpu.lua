--- CPU time of work. What shares a core or a cache with it, and the garbage of other tests, cost
-- CPU time, too: the best of some samples is the work's.

local SAMPLES = 5

local _M = {}

--- The least of some samples, taken until one is below a limit.
-- @tparam number limit_s
-- @tparam function work
-- @treturn number seconds
function _M.least(limit_s, work)
    local least = math.huge
    for _ = 1, SAMPLES do
        collectgarbage()
        local begun = os.clock()
        work()
        least = math.min(least, os.clock() - begun)
        if least < limit_s then
            break
        end
    end
    return least
end

return _M
