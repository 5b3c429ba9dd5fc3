-- The cache of two generations: what is there for sure, and how much it holds at most.

local cache = require("gateway.proxy.cache")

describe("cache", function()
    it("holds what was used last, and at most twice as much", function()
        local kept = cache.new(10)
        for i = 1, 1000 do
            kept:set(i, "v" .. i)
            for back = 0, math.min(9, i - 1) do
                assert.equal("v" .. i - back, kept.young[i - back] or kept.old[i - back])
            end
            local count = 0
            for _, generation in ipairs({ kept.young, kept.old }) do
                for _ in pairs(generation) do
                    count = count + 1
                end
            end
            assert.is_true(count <= 20, count)
        end
        assert.is_nil(kept:get(1))
    end)

    it("keeps what is asked for", function()
        local kept = cache.new(10)
        kept:set("a", {})
        local value = kept:get("a")
        for i = 1, 1000 do
            kept:set(i, i)
            assert.equal(value, kept:get("a"))
        end
    end)

    it("counts what values cost", function()
        local kept = cache.new(100, function(cost)
            return cost
        end)
        kept:set("a", 60)
        kept:set("b", 60)
        kept:set("c", 1)
        assert.equal(60, kept:get("a"))
        kept:set("d", 60)
        kept:set("e", 60)
        assert.is_nil(kept:get("b"))
    end)

    it("has the newest value of a key", function()
        local kept = cache.new(2)
        kept:set("a", 1)
        kept:set("b", 1)
        kept:set("c", 1)
        kept:set("a", 2)
        assert.equal(2, kept:get("a"))
    end)
end)
