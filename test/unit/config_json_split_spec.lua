--- Files in JSON by their elements and what stands around them.

local ffi = require("ffi")
local json_split = require("gateway.config.json_split")

local SPLIT = { services = true, routes = true }

local function go_on() end

-- The bytes end with the text: what reads on meets what a text never has.
local function split(text)
    local memory = ffi.new("uint8_t[?]", #text + 1, 0)
    ffi.copy(memory, text, #text)
    memory[#text] = ("}"):byte()
    local found = json_split.split(ffi.cast("const uint8_t *", memory), #text, SPLIT, go_on)
    if not found then
        return nil
    end
    json_split.digest(memory, found, go_on)
    local lists = {}
    for name, list in pairs(found.lists) do
        lists[name] = {}
        for i = 1, #list.from do
            lists[name][i] = text:sub(list.from[i] + 1, list.from[i] + list.size[i])
        end
    end
    return { lists = lists, order = found.order, frame = found.frame }, found
end

describe("the elements of a file", function()
    it("are what stands in its lists, and the frame is the rest", function()
        local text = ' {"a": [{"services": [{}]}], "services" : [ {"b": "]}\\"", "c": {}} ,{}\n],'
            .. '"n": -1.5e3,"routes":[], "t": "\\\\", "s": true}\n'
        assert.same({
            lists = { services = { '{"b": "]}\\"", "c": {}}', "{}" }, routes = {} },
            order = { "services", "routes" },
            frame = {
                ' {"a": [{"services": [{}]}], "services" : [',
                '],"n": -1.5e3,"routes":[',
                '], "t": "\\\\", "s": true}\n',
            },
        }, (split(text)))
    end)

    it("have digests by what they are, wherever they stand", function()
        local _, one = split('{"services": [{"a": 1}, {"a": 2}]}')
        local _, other = split('{"routes": [{"a": 2}], "services": [{"a": 1 }]}')
        local digests = one.lists.services.digests
        assert.same({ 16, 16 }, { #digests[1], #digests[2] })
        assert.equal(digests[2], other.lists.routes.digests[1])
        assert.not_equal(digests[1], other.lists.services.digests[1])
    end)

    it("are none of what is no object of lists of objects", function()
        for _, text in ipairs({
            "",
            " ",
            "[]",
            "5",
            "{",
            "{}",
            '{"services"',
            '{"services":',
            '{"services": [',
            '{"services": [}',
            '{"services": [{}',
            '{"services": [{"a": "}]',
            '{"services": [{"a": "\\"}]',
            '{"services": [{}]',
            '{"services": [{}},',
            '{"services": [{}] "routes": []}',
            '{"services": [{},]}',
            '{"services": [,{}]}',
            '{"services": [{} {}]}',
            '{"services": [{},,{}]}',
            '{"services": [{}, 5]}',
            '{"services": [null]}',
            '{"services": [{}], "services": [{}]}',
            '{"services": [{}]} 5',
            '{"services": [{}]}}',
            "{services: [{}]}",
            '{"services" [{}]}',
            '{"a": 5',
            '{"a": "',
            '{"a": [',
            '\239\187\191{"services": [{}]}',
        }) do
            assert.is_nil((split(text)), text)
        end
    end)

    it("end where the text does, wherever it is cut", function()
        local text = '{"a": "\\"\\\\", "services": [{"b": [1, "]"]}, {}], "c": 1}'
        assert.is_table((split(text)))
        for last = 0, #text - 1 do
            assert.is_nil((split(text:sub(1, last))), text:sub(1, last))
        end
    end)
end)
