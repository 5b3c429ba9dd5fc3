--- The distribution of a duration: module/wheel_stats.c in Lua.
-- @module sluice.timer.spread

local floor, log = math.floor, math.log

local _M = {}

local mt = { __index = _M }

-- Four buckets an octave of nanoseconds.
local BUCKETS = 160

--- @treturn table of nothing yet
function _M.new()
    return setmetatable({ count = 0, min = 0, max = 0, mean = 0, variance = 0, buckets = {} }, mt)
end

--- @tparam number seconds
function _M:add(seconds)
    local n = self.count + 1
    self.count = n
    if n == 1 or seconds < self.min then
        self.min = seconds
    end
    if seconds > self.max then
        self.max = seconds
    end
    -- Welford, 1962
    local delta = seconds - self.mean
    self.mean = self.mean + delta / n
    self.variance = self.variance + (delta * (seconds - self.mean) - self.variance) / n
    local bucket = 0
    if seconds > 1e-9 then
        bucket = math.min(floor(log(seconds * 1e9) / log(2) * 4), BUCKETS)
    end
    self.buckets[bucket] = (self.buckets[bucket] or 0) + 1
end

--- @treturn table seconds: `{min, max, mean, variance, p99}`
function _M:figures()
    local beyond, p99 = 0, 0
    for bucket = BUCKETS, 0, -1 do
        beyond = beyond + (self.buckets[bucket] or 0)
        if beyond > floor(self.count / 100) then
            p99 = 2 ^ ((bucket + 0.5) / 4) * 1e-9
            break
        end
    end
    return {
        min = self.min,
        max = self.max,
        mean = self.mean,
        variance = self.variance,
        p99 = p99,
    }
end

return _M
