-- What export writes in YAML: what is read of it is what the JSON says.

local cjson = require("cjson")
local document = require("gateway.config.document")
local yaml_text = require("gateway.config.yaml_text")

local function utf8_of(code)
    if code < 0x80 then
        return string.char(code)
    end
    local last = {}
    local most = 0x40
    while code >= most do
        table.insert(last, 1, string.char(0x80 + code % 0x40))
        code, most = math.floor(code / 0x40), most / 2
    end
    -- As many ones as it has bytes.
    local lead = ({ 0xc0, 0xe0, 0xf0 })[#last]
    return string.char(lead + code) .. table.concat(last)
end

-- Of a key in the planes of a million characters.
local KEY_CHARACTERS = 64

local function read(text, format)
    local value, err = document.decode(text, format or "yaml", {})
    assert.is_nil(err, text)
    return value
end

describe("YAML of JSON", function()
    it("is a file as people write it", function()
        local json = '{"_format_version":"3.0","_transform":false,\n"services":[\n{"host":"a.test",'
            .. '"id":"1a","name":"orders","retries":5,"tags":["a","b"]},\n{"name":"on"}],'
            .. '\n"routes":[],\n"plugins":[{"config":{"limit":{},"minute":1.5},"x y":null}]}'
        assert.equal(
            [[
_format_version: "3.0"
_transform: false
services:
- host: a.test
  id: "1a"
  name: orders
  retries: 5
  tags:
  - a
  - b
- name: "on"
routes: []
plugins:
- config:
    limit: {}
    minute: 1.5
  "x y": null
]],
            yaml_text.of_json(json)
        )
    end)

    it("has lines as lines", function()
        local json = '{"c":[{"cert":"-----BEGIN X-----\\nab\\n-----END X-----\\n","k":"a\\nb"}]}'
        assert.equal(
            [[
c:
- cert: |
    -----BEGIN X-----
    ab
    -----END X-----
  k: |-
    a
    b
]],
            yaml_text.of_json(json)
        )
    end)

    it("is read as the same", function()
        local texts = { "", " ", "a\nb\n\n", "\n", " a\nb", "a\n\n b\n", "\t\n", "a\r\nb", "a #b" }
        local words = '~ yes No 1 1e3 - : # é \\ " 0x1 .inf << = null 2020-01-01 {a} ['
        for text in words:gmatch("%S+") do
            texts[#texts + 1] = text
        end
        texts[#texts + 1] = "x\127"
        local value = { list = texts, map = {}, deep = { { { a = 1 }, { "x" } } }, n = -1.25 }
        for i, text in ipairs(texts) do
            value.map["k" .. i] = text
            value.map[text .. "_"] = i
        end
        assert.same(value, read(yaml_text.of_json(cjson.encode(value))))
    end)

    -- All code points of a range but surrogates, each as a text.
    local function each_character(from, to)
        local texts = {}
        for code = from, to do
            if code < 0xd800 or code > 0xdfff then
                texts[#texts + 1] = utf8_of(code)
            end
        end
        return texts
    end

    it("is read as the same, whatever characters it has", function()
        for from = 0, 0xffff, 0x1000 do
            local list = each_character(from, math.min(from + 0xfff, 0xffff))
            local map = {}
            for i, character in ipairs(list) do
                list[i] = { character, "a" .. character .. "b", " " .. character .. " " }
                map[character] = i
            end
            local value = { list = list, map = map }
            assert.same(value, read(yaml_text.of_json(cjson.encode(value))))
        end
        for from = 0x10000, 0x10ffff, 0x1000 do
            local map = {}
            for at = from, from + 0xfff, KEY_CHARACTERS do
                local text = table.concat(each_character(at, at + KEY_CHARACTERS - 1))
                map[text] = text
            end
            assert.same(map, read(yaml_text.of_json(cjson.encode(map))))
        end
    end)

    it("comes from JSON that is read as the same, whatever characters that has", function()
        for from = 0, 0x10ffff, 0x1000 do
            local map = {}
            for at = from, from + 0xfff, KEY_CHARACTERS do
                local text = table.concat(each_character(at, at + KEY_CHARACTERS - 1))
                map[text] = text
            end
            assert.same(map, read(cjson.encode(map), "json"))
        end
    end)

    it("has keys of any length", function()
        for length in ("1 170 500 997 998 999 1000 1001 1023 1024 1025 70000"):gmatch("%d+") do
            local key = ("k"):rep(length)
            local map = {
                [key] = { a = { 1 } },
                [key .. ":"] = { "c" },
                [key .. " \226\128\168"] = "b",
                -- Escaped, it is three times as long.
                [("\194\133"):rep(length)] = { b = "|" },
            }
            local value = { map = map, list = { map } }
            assert.same(value, read(yaml_text.of_json(cjson.encode(value))))
        end
    end)
end)
