describe("sluice.garbage_collector", function()
    local collector, old_ngx, old_clock, sleeps

    -- A garbage table is 40 bytes.
    local TABLES = 2000

    before_each(function()
        jit.off() -- compiled, a table that nobody reads is not made
        old_ngx, old_clock, sleeps = _G.ngx, os.clock, 0
        _G.ngx = {
            sleep = function()
                local before = collectgarbage("count")
                for _ = 1, TABLES do
                    local _ = {}
                end
                local grown = collectgarbage("count") - before
                assert.is_true(grown >= TABLES * 32 / 1024, "grown by " .. grown .. " KB")
                sleeps = sleeps + 1
            end,
        }
        package.loaded["sluice.garbage_collector"] = nil
        collector = require("sluice.garbage_collector")
    end)

    after_each(function()
        _G.ngx = old_ngx
        os.clock = old_clock -- luacheck: ignore 122
        package.loaded["sluice.garbage_collector"] = nil
        collectgarbage("restart")
        jit.on()
    end)

    -- What LuaJIT collects there it owes, and works off with the next step, in one go.
    it("collects nothing between the slices of a collection", function()
        -- A slice is one step, on any machine: with each look at the clock a second has gone by.
        local seconds = 0
        os.clock = function() -- luacheck: ignore 122
            seconds = seconds + 1
            return seconds
        end
        collectgarbage() -- not in the middle of a collection
        collectgarbage("stop")
        local kept = {}
        for i = 1, 10 * TABLES do
            kept[i] = { tostring(i) }
            local _ = { {} } -- garbage for each slice
        end
        collector.hold(function() end)
        assert.is_true(#kept == 10 * TABLES and sleeps > 0)
    end)

    it("leaves a collector that runs", function()
        collector.hold(function() end)
        local before, has_fallen = collectgarbage("count"), false
        for _ = 1, 4000 * TABLES do
            if has_fallen then
                break
            end
            local _ = {}
            local now = collectgarbage("count")
            has_fallen, before = has_fallen or now < before, now
        end
        assert.is_true(has_fallen)
    end)
end)
