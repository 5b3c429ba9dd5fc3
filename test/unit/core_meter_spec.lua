--- The meter in C beside windows and counters in Lua.

local core = require("test.unit.support.core")
local window = require("test.unit.support.rate_windows")

local ffi, lib = core.ffi, core.lib

local SEED = os.time()
local STEPS = 10000
local NAMES = 12
local DAY = 86400

--- A shared dictionary that is never full; `clock` has the time.
local function dictionary(clock)
    local dict, values, expires = {}, {}, {}

    function dict.incr(_, name, by)
        if values[name] and expires[name] > clock.now then
            values[name] = values[name] + by
            return values[name]
        end
        return nil, "not found"
    end

    function dict.get(_, name)
        return values[name] and expires[name] > clock.now and values[name] or nil
    end

    function dict.safe_add(_, name, value, seconds)
        values[name], expires[name] = value, clock.now + seconds
        return true
    end

    function dict.capacity()
        return 2 ^ 30
    end

    function dict.free_space()
        return 2 ^ 30
    end

    function dict.flush_expired() end

    return dict
end

--- The counters in Lua, which know of nginx a digest and the time.
local function load_counters(clock)
    local name = "test.unit.support.rate_counters"
    local before = rawget(_G, "ngx")
    rawset(_G, "ngx", {
        md5_bin = function(text)
            return text
        end,
        now = function()
            return clock.now
        end,
        time = function()
            return clock.now
        end,
    })
    package.loaded[name] = nil
    local counters = require(name)
    package.loaded[name] = nil
    rawset(_G, "ngx", before)
    return counters
end

local function area(size)
    local memory, raw = core.memory(size)
    ffi.fill(memory, size)
    local meter = ffi.new("sluice_core_meter_t")
    assert.equal(0, lib.sluice_core_meter_init(memory, size, ("k"):rep(16)))
    assert.equal(0, lib.sluice_core_meter_attach(meter, memory, size))
    return meter, raw
end

--- Rates as the schema lets them be: a longer period's is no smaller.
local function random_rates()
    local rates, last = {}, 0
    for _, period in ipairs(window.PERIODS) do
        if math.random() < 0.4 then
            last = last + math.random(0, 6) / 2
            rates[period] = math.max(last, 0.5)
        end
    end
    return next(rates) and rates or random_rates()
end

local function rule_of(rates, slot, share)
    local limits = ffi.new("uint64_t[6]")
    for i, period in ipairs(window.PERIODS) do
        limits[i - 1] = math.ceil(rates[period] or 0)
    end
    local rule = ffi.new("sluice_core_rule_t")
    lib.sluice_core_rule_set(rule, slot, 0, limits, share)
    return rule
end

local function later(now)
    if math.random() < 0.995 then
        return now + (math.random() < 0.1 and 1 or 0)
    end
    local _, finish = window.bounds(window.PERIODS[math.random(5)], now)
    return finish - math.random(0, 1)
end

describe("the meter in C", function()
    it("knows the windows that Lua knows", function()
        math.randomseed(SEED)
        local start, finish = ffi.new("uint64_t[1]"), ffi.new("uint64_t[1]")
        for _ = 1, 1500 do
            local now = math.random(0, 2 ^ 33)
            if math.random() < 0.5 then
                now = math.max(0, now - now % DAY + math.random(-1, 1))
            end
            for i, period in ipairs(window.PERIODS) do
                lib.sluice_core_calendar(i - 1, now, start, finish)
                local slow_start, slow_finish = window.bounds(period, now)
                local case = ("%s at %d (seed %d)"):format(period, now, SEED)
                assert.equal(slow_start, tonumber(start[0]), case)
                assert.equal(slow_finish, tonumber(finish[0]), case)
            end
        end
    end)

    it("decides as counters in Lua do", function()
        local clock = { now = 1770000000 + math.random(0, 300 * DAY) }
        local counters = load_counters(clock)
        local dict = dictionary(clock)
        local meter, raw = area(2 ^ 20)
        local taken = ffi.new("sluice_core_taken_t")
        local rules = {}
        for i = 1, 8 do
            local rates = random_rates()
            rules[i] = {
                slow = counters.new("rule " .. i, rates, dict, 1000),
                rule = rule_of(rates, i, 1000),
            }
        end
        for step = 1, STEPS do
            local at = rules[math.random(#rules)]
            local name = "name " .. math.random(NAMES)
            local is_fallback = math.random() < 0.3
            local slow = at.slow
            local expected, err, is_shared = slow:take(name, is_fallback, clock.now)
            local full = lib.sluice_core_meter_take(
                meter,
                at.rule,
                name,
                #name,
                is_fallback and 1 or 0,
                clock.now,
                taken
            )
            local case = ("step %d, seed %d"):format(step, SEED)
            assert.is_nil(err, case)
            assert.is_false(is_shared, case)
            assert.equal(0, taken.is_shared, case)
            assert.equal(expected, full, case)
            assert.equal(slow.size, at.rule.count, case)
            for i = 1, slow.size do
                assert.equal(slow[i].used, tonumber(taken.used[i - 1]), case)
                assert.equal(slow[i].finish, tonumber(at.rule.windows[i - 1].finish), case)
            end
            clock.now = later(clock.now)
        end
        assert(raw)
    end)
end)
