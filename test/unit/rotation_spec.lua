-- The rotation: exact shares, evenly spread, and what a retry gets.

local rotation = require("gateway.proxy.rotation")

local function peers(weights)
    local out = {}
    for i, weight in ipairs(weights) do
        out[i] = { ip = "10.0.0." .. i, port = 80, weight = weight, host = "h" }
    end
    return out
end

local function count(turning, picks)
    local counts = {}
    for _ = 1, picks do
        local ip = turning:pick().ip
        counts[ip] = (counts[ip] or 0) + 1
    end
    return counts
end

describe("rotation", function()
    it("gives each peer its exact share of one cycle", function()
        local cases = { { 1 }, { 1, 1 }, { 5, 1, 1 }, { 100, 50, 25 }, { 3, 7, 11, 13 } }
        for _, weights in ipairs(cases) do
            local turning = rotation.new(peers(weights))
            local counts = count(turning, turning.length)
            for i, weight in ipairs(weights) do
                local share = counts["10.0.0." .. i] / turning.length
                local total = 0
                for _, w in ipairs(weights) do
                    total = total + w
                end
                assert.is_true(math.abs(share - weight / total) < 1e-9)
            end
        end
    end)

    it("reduces weights to lowest terms", function()
        assert.equal(2, rotation.new(peers({ 100, 100 })).length)
        assert.equal(3, rotation.new(peers({ 200, 100 })).length)
    end)

    it("spreads the turns: no peer waits longer than its share asks for", function()
        local turning = rotation.new(peers({ 5, 3, 2 }))
        local last, gap = {}, {}
        for turn = 1, turning.length * 3 do
            local ip = turning:pick().ip
            gap[ip] = math.max(gap[ip] or 0, turn - (last[ip] or turn))
            last[ip] = turn
        end
        -- A share of w/10 is due every 10/w turns; one turn more is rounding.
        assert.is_true(gap["10.0.0.1"] <= 3)
        assert.is_true(gap["10.0.0.2"] <= 5)
        assert.is_true(gap["10.0.0.3"] <= 6)
    end)

    it("scales huge weights down to the slots, and keeps the smallest peer", function()
        local turning = rotation.new(peers({ 65535, 65534, 1 }), 100)
        assert.is_true(turning.length <= 102)
        local counts = count(turning, turning.length)
        assert.equal(1, counts["10.0.0.3"])
        assert.is_true(math.abs(counts["10.0.0.1"] - counts["10.0.0.2"]) <= 1)
    end)

    it("leaves out weight 0, and is empty without peers", function()
        local turning = rotation.new(peers({ 0, 1 }))
        assert.same({ ["10.0.0.2"] = 4 }, count(turning, 4))
        assert.is_true(rotation.new(peers({ 0, 0 })).empty)
        assert.is_true(rotation.new({}).empty)
        assert.is_false(turning.empty)
    end)

    it("starts at a random place that is in the cycle", function()
        local turning = rotation.new(peers({ 1, 1, 1 }))
        local seen = {}
        for _ = 1, 200 do
            turning:shuffle_start()
            seen[turning:pick().ip] = true
        end
        assert.same({ ["10.0.0.1"] = true, ["10.0.0.2"] = true, ["10.0.0.3"] = true }, seen)
        rotation.new({}):shuffle_start()
    end)

    it("retries a peer that was not tried, and only then one that was", function()
        local turning = rotation.new(peers({ 98, 1, 1 }))
        assert.equal("10.0.0.3", turning:pick_untried("10.0.0.1:80, 10.0.0.2:80 : ").ip)
        assert.equal("10.0.0.2", turning:pick_untried("10.0.0.3:80, 10.0.0.1:80 : ").ip)
        assert.equal("10.0.0.2", turning:pick_untried("10.0.0.3:80 : 10.0.0.1:80 : ").ip)
        assert.is_table(turning:pick_untried("10.0.0.1:80, 10.0.0.2:80, 10.0.0.3:80 : "))
        assert.is_table(rotation.new(peers({ 1 })):pick_untried("10.0.0.1:80 : "))
    end)

    it("does not take one address for another that it begins with", function()
        local two = peers({ 1, 1 })
        two[1].ip, two[2].ip = "10.0.0.1", "10.0.0.11"
        two[1].port, two[2].port = 8, 80
        local turning = rotation.new(two)
        for _ = 1, 4 do
            assert.equal("10.0.0.1", turning:pick_untried("10.0.0.11:80 : ").ip)
            assert.equal("10.0.0.11", turning:pick_untried("10.0.0.1:8 : ").ip)
        end
        two[1].ip, two[1].port, two[1].name = "10.0.0.11", 8, "10.0.0.11:8"
        assert.equal("10.0.0.11:8", turning:pick_untried("10.0.0.11:80 : ").name)
    end)

    it("knows whether the peers agree on a Host header", function()
        local two = peers({ 1, 1 })
        assert.equal("h", rotation.new(two).host)
        assert.is_false(rotation.new(two).host_varies)
        two[2].host = "other"
        assert.is_nil(rotation.new(two).host)
        assert.is_true(rotation.new(two).host_varies)
    end)
end)
