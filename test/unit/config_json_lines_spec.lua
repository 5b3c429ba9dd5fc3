-- The lines of a JSON text's values: gateway/config/json_lines.lua.

local config = require("gateway.config")
local document = require("gateway.config.document")
local json_lines = require("gateway.config.json_lines")
local support = require("test.unit.support.store")

local function lines_of(text)
    local lines = {}
    return assert(document.decode(text, "json", { lines = lines })), lines
end

describe("lines of JSON", function()
    it("are those where keys and elements begin", function()
        local value, lines = lines_of([=[
{
  "a": [
    1, "x, [ {",
    true,

    {"b\"":
       null, "c\u0041": -1}
  ], "d": {},
  "e": [[], [
    2]]
}]=])
        assert.same({ a = 2, d = 8, e = 9 }, lines[value])
        assert.same({ 3, 3, 4, 6 }, lines[value.a])
        assert.same({ ['b"'] = 6, cA = 7 }, lines[value.a[4]])
        assert.same({ 9, 9 }, lines[value.e])
        assert.same({ 10 }, lines[value.e[2]])
    end)

    it("end with LF, CR or both", function()
        local value, lines = lines_of('{\r"a": [\r\n1,\r\r2,\n3]}')
        assert.same({ a = 2 }, lines[value])
        assert.same({ 3, 5, 6 }, lines[value.a])
    end)

    it("are not those of a single line", function()
        local _, lines = lines_of('{"a": [1]}')
        assert.same({}, lines)
    end)

    it("pause", function()
        local text, pauses = "{\n" .. ('"a": [' .. ("1,"):rep(20000) .. "1]}"), 0
        json_lines.add({}, text, { a = {} }, function()
            pauses = pauses + 1
        end)
        assert.is_true(pauses >= 4)
    end)

    it("stand before errors, and order them", function()
        local _, errors = config.parse(
            '{"_format_version": "3.0",\n"services": [{"name": "a", "host": "h",\n"retires": 1},\n'
                .. '{"name": "b", "host": "h", "port":\n"x"}]}',
            "json",
            support.registry
        )
        assert.equal(
            'line 3: services[0] "a".retires: unknown field; did you mean retries?\n'
                .. 'line 4: services[1] "b".port: expected an integer',
            config.format_errors(errors)
        )
    end)
end)
