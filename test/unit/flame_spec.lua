--- Flame graphs of folded stacks.

local flame = require("cli.commands.flame")

-- Frames of a drawing: name -> {x, y, width}.
local function frames(svg)
    local found = {}
    for title, x, y, width in
        svg:gmatch('<title>(.-) %(.-</title><rect x="([%d.]+)" y="(%d+)" width="([%d.]+)"')
    do
        found[title] = { x = tonumber(x), y = tonumber(y), width = tonumber(width) }
    end
    return found
end

describe("cli.commands.flame", function()
    it("draws frames as wide as their share, each on its caller", function()
        local found = frames(flame.svg("a;b 3\na;c 1\nd 4\na;b;e 4\n", "runs", "runs"))
        local all = found.all
        assert.equal(1180, all.width)
        local function share(name)
            return found[name].width / all.width
        end
        assert.near(8 / 12, share("a"), 0.001)
        assert.near(7 / 12, share("b"), 0.001)
        assert.near(1 / 12, share("c"), 0.001)
        assert.near(4 / 12, share("d"), 0.001)
        assert.near(4 / 12, share("e"), 0.001)
        assert.equal(all.y - 18, found.a.y)
        assert.equal(found.a.y, found.d.y)
        assert.equal(found.a.y - 18, found.b.y)
        assert.equal(found.b.y - 18, found.e.y)
        assert.equal(found.b.x, found.e.x)
        assert.near(found.b.x + found.b.width, found.c.x, 0.2)
        assert.near(found.a.x + found.a.width, found.d.x, 0.2)
    end)

    it("escapes names and keeps spaces in them", function()
        local svg = flame.svg('f("<&>") of x;g\1 2\n', 'a "b"', "ms")
        assert.truthy(svg:find("f(&quot;&lt;&amp;&gt;&quot;) of x", 1, true))
        assert.truthy(svg:find("g? (2 ms, 100.0%)", 1, true))
        assert.falsy(svg:find("\1", 1, true))
    end)

    it("leaves out what nobody could see, and lines without a number", function()
        local found = frames(flame.svg("a 1000000\nb 1\nc 0\nnonsense\n\n", "t", "ms"))
        assert.truthy(found.a)
        assert.falsy(found.b or found.c or found.nonsense)
    end)

    it("draws nothing where there is nothing", function()
        assert.truthy(flame.svg("", "timers", "ms"):find("timers: nothing", 1, true))
    end)
end)
