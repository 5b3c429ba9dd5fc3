-- What export writes in YAML: what is read of it is what the JSON says.

local cjson = require("cjson")
local document = require("gateway.config.document")
local yaml_text = require("gateway.config.yaml_text")

local function read(text)
    local value, err = document.decode(text, "yaml", {})
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
end)
