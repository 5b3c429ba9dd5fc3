--- The core's calendar windows beside one that counts days one by one.

local core = require("test.unit.support.core")
local periods = require("plugins.rate-limiting.periods")

local ffi, lib = core.ffi, core.lib

local DAY = 86400
local RUNS = 3000
local SEED = os.time()

local numbers = {}
for i, period in ipairs(periods) do
    numbers[period] = i - 1
end

local function bounds(period, now)
    local start, finish = ffi.new("uint64_t[1]"), ffi.new("uint64_t[1]")
    lib.sluice_core_calendar(numbers[period], now, start, finish)
    return tonumber(start[0]), tonumber(finish[0])
end

local function is_leap(year)
    return year % 400 == 0 or (year % 4 == 0 and year % 100 ~= 0)
end

local function days_in(year, month)
    if month == 2 then
        return is_leap(year) and 29 or 28
    end
    return (month == 4 or month == 6 or month == 9 or month == 11) and 30 or 31
end

--- First second of every month from 1970 to 2200, in order, and the month after.
local function calendar()
    local months = {}
    local start = 0
    for year = 1970, 2200 do
        for month = 1, 12 do
            local finish = start + days_in(year, month) * DAY
            months[#months + 1] = { year = year, start = start, finish = finish }
            start = finish
        end
    end
    return months
end

local months = calendar()

local function slow_month(now)
    for _, month in ipairs(months) do
        if now < month.finish then
            return month
        end
    end
end

local function slow_bounds(period, now)
    local month = slow_month(now)
    if period == "month" then
        return month.start, month.finish
    end
    local start, finish
    for _, other in ipairs(months) do
        if other.year == month.year then
            start = start or other.start
            finish = other.finish
        end
    end
    return start, finish
end

describe("the calendar in C", function()
    it("agrees with the slow calendar on months and years", function()
        math.randomseed(SEED)
        local last = months[#months].finish
        for _ = 1, RUNS do
            -- Half of the moments stand at the edge of a month, where mistakes are.
            local now = math.random(0, last - 1)
            if math.random() < 0.5 then
                now = math.max(0, months[math.random(#months)].start + math.random(-1, 1))
            end
            for _, period in ipairs({ "month", "year" }) do
                local start, finish = bounds(period, now)
                local slow_start, slow_finish = slow_bounds(period, now)
                local case = ("%s at %d (seed %d)"):format(period, now, SEED)
                assert.equal(slow_start, start, case)
                assert.equal(slow_finish, finish, case)
            end
        end
    end)

    it("agrees with the C library on the present", function()
        for _ = 1, 200 do
            local now = math.random(0, 2 ^ 31 - 1)
            local date = os.date("!*t", now)
            local start = bounds("month", now)
            assert.equal(start + (date.day - 1) * DAY, now - now % DAY)
            start = bounds("year", now)
            assert.equal(start + (date.yday - 1) * DAY, now - now % DAY)
        end
    end)

    it("cuts the short periods at their multiples", function()
        local lengths = { second = 1, minute = 60, hour = 3600, day = DAY }
        for period, length in pairs(lengths) do
            for _ = 1, 200 do
                local now = math.random(0, 2 ^ 33)
                local start, finish = bounds(period, now)
                assert.equal(length, finish - start)
                assert.equal(0, start % length)
                assert.is_true(start <= now and now < finish)
            end
        end
    end)

    it("knows February of leap years and of centuries", function()
        local function length_of_february(year)
            local start, finish = bounds(
                "month",
                os.time({
                    year = year,
                    month = 2,
                    day = 10,
                })
            )
            return (finish - start) / DAY
        end
        assert.equal(28, length_of_february(2023))
        assert.equal(29, length_of_february(2024))
        assert.equal(29, length_of_february(2000))
        assert.equal(28, length_of_february(2100))
    end)
end)
