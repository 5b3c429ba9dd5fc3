-- The text of metrics: what names may hold, which format a client gets, the page that lists them.

local format = require("gateway.control.metrics.format")
local string_buffer = require("string.buffer")

local PATHS = "./?.lua;./?/init.lua;./lib/?.lua;./lib/?/init.lua;;"

local function run(command)
    local pipe = assert(io.popen(command))
    local text = pipe:read("*a")
    pipe:close()
    return text
end

local function read_file(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read("*a")
    file:close()
    return text
end

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
        labels = { "b" },
        help = 'one "\\\n two',
        samples = function(figures, add)
            add(figures.value, 'x"')
        end,
    }

    it("is named as its format wants it", function()
        local plain = '# HELP a_bytes_total one "\\\\\\n two\n# TYPE a_bytes_total counter\n'
        assert.equal(plain, format.head(row, false))
        local open =
            '# HELP a_bytes one \\"\\\\\\n two\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\n'
        assert.equal(open, format.head(row, true))
    end)

    it("has its numbers in full", function()
        local out = string_buffer.new()
        format.samples(out, row, format.label("r", "\n"), { value = 2 ^ 53 })
        format.samples(out, row, "", { value = 0.5 })
        assert.equal(
            'a_bytes_total{r="\\n",b="x\\""} 9007199254740992\na_bytes_total{b="x\\""} 0.500\n',
            out:get()
        )
    end)
end)

describe("docs/metrics.md", function()
    it("is current (make docs writes it)", function()
        local made =
            run(("LUA_PATH='%s' luajit gateway/control/metrics/reference.lua"):format(PATHS))
        assert.equal(made, read_file("docs/metrics.md"))
    end)
end)
