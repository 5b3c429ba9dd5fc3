--- Where periods begin, in UTC: `kong.tools.timestamp`.
-- @module kong.tools.timestamp

local floor = math.floor
local ngx = ngx

local _M = {
    timestamp_table_fields = { "second", "minute", "hour", "day", "month", "year" },
}

-- Beyond the year 20,000 a time is one in milliseconds.
local LATEST_SECONDS = 568971820800
local DAY = 86400

local function now()
    return ngx and ngx.now and ngx.now() or os.time()
end

-- Days since 1970 of a date of the Gregorian calendar.
local function days_of(year, month, day)
    if month <= 2 then
        year, month = year - 1, month + 12
    end
    local era = floor(year / 400)
    local of_era = year - era * 400
    local of_year = floor((153 * (month - 3) + 2) / 5) + day - 1
    local days = of_era * 365 + floor(of_era / 4) - floor(of_era / 100) + of_year
    return era * 146097 + days - 719468
end

local methods = {}
local mt = { __index = methods }

--- The time of a time-table.
-- @treturn number seconds since 1970
-- @phases any
function methods:timestamp()
    local days = days_of(self.year, self.month, 1) + self.day - 1
    return days * DAY + self.hour * 3600 + self.min * 60 + self.sec
end

--- Now.
-- @treturn number milliseconds since 1970, of whole seconds
-- @phases any
function _M.get_utc()
    return floor(now()) * 1000
end

--- Now.
-- @treturn number milliseconds since 1970
-- @phases any
function _M.get_utc_ms()
    return now() * 1000
end

--- A time in its parts.
-- @tparam[opt] number time seconds or milliseconds since 1970
-- @treturn table `year`, `month`, `day`, `hour`, `min`, `sec`, `wday`, `yday`; `timestamp()`
-- @phases any
function _M.get_timetable(time)
    time = time or _M.get_utc()
    if time > LATEST_SECONDS then
        time = time / 1000
    end
    local whole = floor(time)
    local parts = os.date("!*t", whole)
    parts.isdst = nil
    parts.sec = parts.sec + (time - whole)
    return setmetatable(parts, mt)
end

--- When the periods that a time is in have begun.
-- @tparam[opt] number time as of `get_timetable`
-- @treturn table `second`, `minute`, `hour`, `day`, `month`, `year`: milliseconds since 1970
-- @phases any
function _M.get_timestamps(time)
    local parts, stamps = _M.get_timetable(time), {}
    parts.sec = floor(parts.sec)
    stamps.second = parts:timestamp() * 1000
    parts.sec = 0
    stamps.minute = parts:timestamp() * 1000
    parts.min = 0
    stamps.hour = parts:timestamp() * 1000
    parts.hour = 0
    stamps.day = parts:timestamp() * 1000
    parts.day = 1
    stamps.month = parts:timestamp() * 1000
    parts.month = 1
    stamps.year = parts:timestamp() * 1000
    return stamps
end

return _M
