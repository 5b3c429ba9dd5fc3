-- Who hears which events: wildcards, order, and what stays the same while a list is in use.

local bus = require("sluice.events.bus")

local function names(list)
    local out = {}
    for i = 1, list.n do
        out[i] = list[i].source .. "/" .. list[i].event
    end
    return out
end

local function nothing() end

describe("a bus", function()
    it("finds exact names and wildcards in the order of subscription", function()
        local b = bus.new("")
        for _, pair in ipairs({ "*/*", "a/x", "b/x", "*/x", "a/*" }) do
            b:subscribe(pair:match("^(.*)/"), pair:match("/(.*)$"), nothing)
        end
        assert.same({ "*/*", "a/x", "*/x", "a/*" }, names(b:list("a", "x")))
        assert.same({ "*/*", "a/*" }, names(b:list("a", "y")))
        assert.same({ "*/*", "*/x" }, names(b:list("c", "x")))
        assert.same({ "*/*" }, names(b:list("c", "y")))
    end)

    it("gives the library's notices to those who ask for them by name", function()
        local b = bus.new("")
        b:subscribe("*", "*", nothing)
        b:subscribe("sluice", "*", nothing)
        b:subscribe("sluice", "overrun", nothing)
        assert.same({ "sluice/*", "sluice/overrun" }, names(b:list("sluice", "overrun")))
    end)

    it("never changes a list that it gave", function()
        local b = bus.new("")
        local first = b:subscribe("a", "x", nothing)
        local before = b:list("a", "x")
        b:subscribe("a", "x", nothing)
        assert.is_true(b:unsubscribe(first))
        assert.same(1, before.n)
        assert.is_false(before[1].active)
        assert.same(1, b:list("a", "x").n)
        assert.is_true(b:list("a", "x")[1].active)
    end)

    it("forgets what is unsubscribed, and knows what never was", function()
        local b = bus.new("")
        local id = b:subscribe("a", "x", nothing)
        assert.is_true(b:unsubscribe(id))
        assert.is_false(b:unsubscribe(id))
        assert.is_false(b:unsubscribe(-1))
        assert.same(0, b:list("a", "x").n)
        assert.same({}, b:stats())
    end)

    it("gives ids that are its own in the whole worker", function()
        local one, two = bus.new("one"), bus.new("two")
        local id = one:subscribe("a", "x", nothing)
        assert.is_false(two:unsubscribe(id))
        assert.are_not.equal(id, two:subscribe("a", "x", nothing))
    end)

    it("makes each list once, and keeps no more than a bounded number", function()
        local b = bus.new("")
        b:subscribe("*", "*", nothing)
        assert.equal(b:list("a", "1"), b:list("a", "1"))
        for i = 1, 20000 do
            assert.same(1, b:list("a", tostring(i)).n)
        end
        assert.is_true(b.count <= 8192)
    end)

    it("tells when subscriptions changed", function()
        local b, changes = bus.new(""), 0
        b.on_change = function()
            changes = changes + 1
        end
        b:unsubscribe(b:subscribe("a", "x", nothing))
        assert.same(2, changes)
    end)
end)
