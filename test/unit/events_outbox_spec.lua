--- The outbox against a plain list.

local outbox = require("sluice.events.outbox")

local SEED = require("test.unit.support.seed")("events_outbox")

local function add(box, text)
    box.frames:put(text)
    box:added(#text)
end

describe("sluice.events.outbox", function()
    it("gives back everything in order, whatever the operations", function()
        math.randomseed(SEED)
        for _ = 1, 200 do
            local box, expected, got = outbox.new(1000, 1e6), {}, {}
            local list, events = {}, 0
            for i = 1, math.random(1, 300) do
                local chance, text = math.random(), ("%d."):format(i):rep(math.random(1, 3000))
                if chance < 0.5 then
                    add(box, text)
                elseif chance < 0.8 then
                    box:push(text, 1)
                else
                    text = nil
                    local count, taken = box:take(list)
                    assert.equal(count, #list)
                    events = events + taken
                    got[#got + 1] = table.concat(list)
                end
                expected[#expected + 1] = text
            end
            repeat
                local count, taken = box:take(list)
                events = events + taken
                got[#got + 1] = table.concat(list)
            until count == 0
            assert.equal(table.concat(expected), table.concat(got), "seed " .. SEED)
            assert.equal(#expected, events)
            assert.same({ 0, 0 }, { box.events, box.bytes })
        end
    end)

    it("is bounded by events and by bytes, but takes one of any size", function()
        local box = outbox.new(2, 10)
        assert.is_true(box:has_room(1000))
        add(box, "12345678")
        assert.is_true(box:has_room(2))
        assert.is_false(box:has_room(3))
        add(box, "9")
        assert.is_false(box:has_room(1))
        box:take({})
        assert.is_true(box:has_room(11))
    end)

    it("knows which marked pieces were never taken", function()
        local box = outbox.new(10, 1e6)
        box:push("taken", 1, "key")
        box:take({})
        box:push("a", 1, "key")
        box:push("b", 1)
        box:push("c", 1, "key")
        assert.same({ "a", "c" }, box:unsent())
    end)
end)
