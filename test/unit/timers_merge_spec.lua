--- Statistics of several workers as one.

local timers = require("gateway.admin.timers")

-- A place's figures as a worker that had these elapsed times would tell them.
local function place(times)
    local sum, squares = 0, 0
    for _, time in ipairs(times) do
        sum = sum + time
    end
    local mean = #times > 0 and sum / #times or 0
    for _, time in ipairs(times) do
        squares = squares + (time - mean) ^ 2
    end
    local spread = {
        min = #times > 0 and math.min(unpack(times)) or 0,
        max = #times > 0 and math.max(unpack(times)) or 0,
        p99 = #times > 0 and math.max(unpack(times)) or 0,
        mean = mean,
        variance = #times > 0 and squares / #times or 0,
    }
    return { runs = #times, timers = 1, elapsed = spread, lateness = spread }
end

local function report(places)
    return { sys = {}, places = places, flamegraph = {} }
end

describe("gateway.admin.timers", function()
    it("merges distributions as if all runs had been in one worker", function()
        local parts = { { 1, 2, 6 }, {}, { 10 }, { 4, 4, 4, 7 } }
        local all, reports = {}, {}
        for i, times in ipairs(parts) do
            reports[i] = report({ a = place(times) })
            for _, time in ipairs(times) do
                all[#all + 1] = time
            end
        end
        local merged, expected = timers.merge(reports).places.a, place(all)
        assert.equal(8, merged.runs)
        assert.equal(4, merged.timers)
        for name, value in pairs(expected.elapsed) do
            assert.near(value, merged.elapsed[name], 1e-9, name)
            assert.near(value, merged.lateness[name], 1e-9, name)
        end
    end)

    it("adds totals up, but takes the oldest backlog", function()
        local reports = {}
        for i = 1, 3 do
            reports[i] = { sys = { total = i, backlog_age = i / 10 }, places = {}, flamegraph = {} }
        end
        assert.same({ total = 6, backlog_age = 0.3 }, timers.merge(reports).sys)
    end)

    it("keeps places that one worker has, and puts folded stacks together", function()
        local one = { sys = {}, places = { a = place({ 1 }) }, flamegraph = { running = "a 1\n" } }
        local two = { sys = {}, places = { b = place({ 2 }) }, flamegraph = { running = "b 2\n" } }
        two.places.b.last_err = "oh"
        local merged = timers.merge({ one, two })
        assert.equal(1, merged.places.a.elapsed.mean)
        assert.equal("oh", merged.places.b.last_err)
        assert.equal("a 1\nb 2\n", merged.flamegraph.running)
    end)

    it("leaves the reports as they are", function()
        local reports = { report({ a = place({ 1, 2 }) }), report({ a = place({ 3 }) }) }
        timers.merge(reports)
        assert.equal(2, reports[1].places.a.runs)
        assert.equal(1.5, reports[1].places.a.elapsed.mean)
    end)
end)
