-- The text of metrics: what names may hold, which format a client gets, the page that lists them.

local files = require("test.house.files")
local format = require("gateway.metrics.format")
local string_buffer = require("string.buffer")

local PATHS = "./?.lua;./?/init.lua;./lib/?.lua;./lib/?/init.lua;;"

describe("a label", function()
    it("may hold any text", function()
        assert.equal('a="\\"\\\\\\n{},="', format.label("a", '"\\\n{},='))
        assert.equal('a=""', format.label("a", ""))
        local long = ('"\n'):rep(512)
        assert.equal('a="' .. ('\\"\\n'):rep(512) .. '"', format.label("a", long))
    end)
end)

describe("a family", function()
    local row = {
        name = "a_bytes",
        type = "counter",
        unit = "bytes",
        labels = { "r", "b" },
        help = 'one "\\\n two',
        samples = function(figures, add)
            add(figures.value, "\n", 'x"')
            add(0.5)
        end,
    }

    it("is named as its format wants it", function()
        local plain = '# HELP a_bytes_total one "\\\\\\n two\n# TYPE a_bytes_total counter\n'
        assert.equal(plain, format.head(row, false))
        local open =
            '# HELP a_bytes one \\"\\\\\\n two\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\n'
        assert.equal(open, format.head(row, true))
        local bare = { name = "a_bytes", type = "counter", help = "one", is_bare = true }
        assert.equal("# HELP a_bytes one\n# TYPE a_bytes counter\n", format.head(bare, false))
        assert.equal("# HELP a_bytes one\n# TYPE a_bytes unknown\n", format.head(bare, true))
    end)

    it("has its numbers in full", function()
        local out = string_buffer.new()
        format.samples(out, row, { value = 2 ^ 53 })
        assert.equal(
            'a_bytes_total{r="\\n",b="x\\""} 9007199254740992\na_bytes_total 0.500\n',
            out:get()
        )
    end)
end)

describe("docs/metrics.md", function()
    it("is current (make docs writes it)", function()
        local made = files.run(("LUA_PATH='%s' luajit gateway/metrics/reference.lua"):format(PATHS))
        assert.equal(made, files.read("docs/metrics.md"))
    end)
end)
