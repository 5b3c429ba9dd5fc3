--- Calendar windows of rate limits in Lua, beside which the core's are tested.
--
-- A limit "per month" counts from the first second of a month to the first of the next, in UTC,
-- and likewise for the other periods, so that a window's start names it: every worker
-- derives the same one from its own clock.

local floor = math.floor
local max = math.max

local DAY = 86400

-- Periods that always have the same length, in seconds. A leap second has no number of its own
-- in Unix time, so minutes and days are regular there.
local LENGTHS = { second = 1, minute = 60, hour = 3600, day = DAY }

local _M = {
    --- Names of the periods, the shortest first.
    PERIODS = { "second", "minute", "hour", "day", "month", "year" },
}

--- Days from 1970-01-01 to the first day of a month of the proleptic Gregorian calendar.
--
-- Years begin in March here, so that the leap day is the last of its year and the months before
-- it have lengths that one linear expression gives. Source: H. Hinnant, "chrono-Compatible
-- Low-Level Date Algorithms", days_from_civil, for years after 0.
local function days_to_month(year, month)
    if month <= 2 then
        year, month = year - 1, month + 12
    end
    local leap_days = floor(year / 4) - floor(year / 100) + floor(year / 400)
    return 365 * year + leap_days + floor((153 * (month - 3) + 2) / 5) - 719468
end

--- Year and month (1 to 12) of a day counted from 1970-01-01; the inverse of `days_to_month`.
local function month_of_day(day)
    day = day + 719468
    local era = floor(day / 146097)
    local day_of_era = day - era * 146097
    local year_of_era = floor(
        (
            day_of_era
            - floor(day_of_era / 1460)
            + floor(day_of_era / 36524)
            - floor(day_of_era / 146096)
        ) / 365
    )
    local leap_days = floor(year_of_era / 4) - floor(year_of_era / 100)
    local day_of_year = day_of_era - (365 * year_of_era + leap_days)
    local month = floor((5 * day_of_year + 2) / 153) + 3
    local year = era * 400 + year_of_era
    if month > 12 then
        year, month = year + 1, month - 12
    end
    return year, month
end

--- Tells where the window that holds a moment begins and ends.
-- Constant cost; called only when a window has run out, not per request.
-- @tparam string period one of `PERIODS`
-- @tparam number now Unix time in seconds, 0 or later
-- @treturn number first second of the window
-- @treturn number first second of the next window
-- @phases any
-- @usage local start, finish = window.bounds("month", ngx.time())
function _M.bounds(period, now)
    local length = LENGTHS[period]
    if length then
        local start = now - now % length
        return start, start + length
    end

    local year, month = month_of_day(floor(now / DAY))
    if period == "year" then
        return days_to_month(year, 1) * DAY, days_to_month(year + 1, 1) * DAY
    end
    if period ~= "month" then
        error("bad argument #1 to 'bounds' (unknown period '" .. tostring(period) .. "')", 2)
    end
    local start = days_to_month(year, month) * DAY
    if month == 12 then
        return start, days_to_month(year + 1, 1) * DAY
    end
    return start, days_to_month(year, month + 1) * DAY
end

--- Whole seconds until a window ends, at least 1 (what Retry-After and RateLimit-Reset say).
-- @tparam number finish first second of the next window
-- @tparam number now Unix time in seconds
-- @treturn number seconds
-- @phases any
function _M.seconds_left(finish, now)
    return max(1, finish - now)
end

return _M
