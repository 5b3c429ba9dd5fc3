-- Straight-line functions from templates.

local unroll = require("sluice.unroll")

describe("unroll", function()
    local SUM = "local step = ... return function(x) {{x = step(x, $i)\n}} return x end"

    it("repeats the body with its number", function()
        local function step(x, i)
            return x .. i
        end
        for count, expected in pairs({ [0] = "x", [1] = "x1", [3] = "x123" }) do
            assert.equal(expected, unroll.compile(SUM, count)(step)("x"))
        end
    end)

    it("repeats each of several bodies", function()
        local source = "local a{{, b$i}} = ... return {a{{, b$i}}}"
        assert.same({ "p", "q", "r" }, unroll.compile(source, 2)("p", "q", "r"))
    end)

    it("loads a template once a count", function()
        assert.equal(unroll.compile(SUM, 2), unroll.compile(SUM, 2))
        assert.are_not.equal(unroll.compile(SUM, 2), unroll.compile(SUM, 3))
    end)

    it("throws for a template that is no Lua", function()
        assert.has_error(function()
            unroll.compile("return return", 1)
        end)
    end)
end)
