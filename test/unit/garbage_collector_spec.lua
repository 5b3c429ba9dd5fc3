describe("sluice.garbage_collector", function()
    local collector, old_ngx, sleeps

    -- A garbage table is 40 bytes.
    local TABLES = 20000

    before_each(function()
        jit.off() -- compiled, a table that nobody reads is not made
        old_ngx, sleeps = _G.ngx, {}
        _G.ngx = {
            sleep = function()
                local before = collectgarbage("count")
                for _ = 1, TABLES do
                    local _ = {}
                end
                sleeps[#sleeps + 1] = collectgarbage("count") - before
            end,
        }
        package.loaded["sluice.garbage_collector"] = nil
        collector = require("sluice.garbage_collector")
    end)

    after_each(function()
        _G.ngx = old_ngx
        package.loaded["sluice.garbage_collector"] = nil
        collectgarbage("restart")
        jit.on()
    end)

    -- What LuaJIT collects there it owes, and works off with the next step, in one go.
    it("collects nothing between the slices of a collection", function()
        local kept = {}
        for i = 1, TABLES do
            kept[i] = { tostring(i) }
        end
        collector.hold(function() end)
        assert.is_true(#kept == TABLES and #sleeps > 0)
        for _, grown in ipairs(sleeps) do
            assert.is_true(grown >= TABLES * 32 / 1024, "grown by " .. grown .. " KB")
        end
    end)

    it("leaves a collector that runs", function()
        collector.hold(function() end)
        local before, has_fallen = collectgarbage("count"), false
        for _ = 1, 400 * TABLES do
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
