--- Fields of queries and bodies, and the same texts without one of them (fields.h).
--
-- test/core/fields.c compares random texts with the Lua that was there before.

local cjson = require("cjson")
local fields = require("test.unit.support.fields")
local words = require("test.unit.support.words")

-- What the Lua says: count, text, rest.
local ask_lua = assert(loadfile("test/core/fields.lua"))("test/unit/support/fields_oracle.lua")

local FORM, JSON, MULTIPART = 1, 2, 3
local TYPE = "multipart/form-data; boundary=xx"

local DISPOSITION = "Content-Disposition: form-data; "
local HEAD = "--xx\r\n" .. DISPOSITION
local TAIL = "\r\n--xx--"

local FORMS = words(
    [=[
    & && = == key key= key==x =key &key=x key=x& key=x&& %6bey=x&a %6Bey=%zz&a=% k%65y%=x key%
    k+y=+%2b+ k%20y=a%26b %00=1 a=1;key=2 key=% key=%1 key=%%31 ?key=1 é=%c3%a9
]=],
    { "", "\0=1&key=\0" }
)

local VALUES = words(
    [=[
    0 -0 +1 - + 1. .5 -.5 +.5 -. 007 1e5 1e 1e+ 1E-5 1e5.5 0x 0x1F 0x.8 0x. 0x1p3 0x1p 0xg -0x1
    inf INF Infinity infinit infinityx -inf +Infinity nan NaN nan() nan(a_1) nan(a-1) nan( -nan(1)
    Nan(x true false null True tru nulll truex [] {} [1,2] [1,] [,1] [1 1] {"a":1} {"a":1,} {a:1}
    {"a"} {"a":} [[]] [{}] [} "" "x" "a "}" "],{"
]=],
    {
        "",
        '"\\u0041"',
        '"\\u00e9\\u20ac"',
        '"\\ud83d\\ude00"',
        '"\\ud83d"',
        '"\\ude00"',
        '"\\ud83d\\ud83d"',
        '"\\ud83dx\\ude00"',
        '"\\u00g0"',
        '"\\u00"',
        '"\\n\\t\\b\\f\\r\\/\\\\\\""',
        '"\\x"',
        '"\\"',
        '"\1\n\127"',
        '"a\0b"',
        '"\\u0000"',
        "\0",
        "1\0",
        "\v1",
        " \t\r\n1 ",
    }
)

local TEXTS = {
    "",
    "{}",
    " { } ",
    "{ \t}",
    "\v{}",
    "\f\v{}",
    "[]",
    "{}{}",
    "{}x",
    "{}\0x",
    "{\0}",
    '{"key":"x"}\0',
    '{"key":"x"\0}',
    '{,"key":1}',
    '{"key":"x",}',
    '{"key":"x" "a":1}',
    '{"":1,"key":"y"}',
    '{"key" "x"}',
    '{"a":' .. ("["):rep(998) .. ("]"):rep(998) .. "}",
    '{"a":' .. ("["):rep(999) .. ("]"):rep(999) .. "}",
    '{"a":' .. ("["):rep(1000) .. ("]"):rep(1000) .. "}",
    ('{"a":'):rep(1000) .. "1" .. ("}"):rep(1000),
    ('{"a":'):rep(1001) .. "1" .. ("}"):rep(1001),
    ("["):rep(100000),
    '{"é":"é"}',
}

local PARTS = {
    "",
    "--xx--",
    "--xx",
    "\r\n--xx--",
    "x\r\n--xx--y",
    "--xx--xx--",
    "--xx\r\n--xx--",
    "--xx-\r\n--xx--",
    "--xxa\r\n--xx--",
    "--xxab\r\n--xx--",
    "--xx\r\n\r\n\r\n--xx--",
    "--xx\r\n\r\n\r\n\r\n--xx--",
    HEAD .. 'name="key"\r\n\r\nvalue' .. TAIL,
    HEAD .. "name=key\r\n\r\nvalue" .. TAIL,
    HEAD .. 'name="key\r\n\r\nvalue' .. TAIL,
    HEAD .. 'name=""; name=key\r\n\r\nvalue' .. TAIL,
    HEAD .. 'filename="key"\r\n\r\nvalue' .. TAIL,
    HEAD .. " name=key;x\r\n\r\nvalue" .. TAIL,
    HEAD .. 'NAME="key"; name="a"\r\n\r\nvalue' .. TAIL,
    HEAD .. "name=;name=key\r\n\r\nvalue" .. TAIL,
    HEAD .. 'name="a\r"; name=key\r\n\r\nvalue' .. TAIL,
    HEAD .. "xname=key\r\n\r\nvalue" .. TAIL,
    HEAD .. 'name="k y"\r\n\r\nvalue' .. TAIL,
    HEAD .. "name=k y\r\n\r\nvalue" .. TAIL,
    HEAD .. "name=a\r\n" .. DISPOSITION .. "name=key\r\n\r\nx" .. TAIL,
    HEAD .. "name=key\r\n" .. DISPOSITION .. "\r\n\r\nx" .. TAIL,
    HEAD .. "name=key\r\nx" .. TAIL,
    HEAD .. "name=key\n\nx" .. TAIL,
    "--xx\r\n" .. DISPOSITION:upper() .. "name=key\r\n\r\n\r\n\r\n" .. TAIL,
    "pre" .. TAIL .. HEAD .. "name=key\r\n\r\nx" .. TAIL,
    "pre\r\n"
        .. HEAD
        .. "name=key\r\n\r\nx\r\n"
        .. HEAD
        .. "name=a\r\n\r\ny"
        .. TAIL
        .. "--\r\npost",
    HEAD .. "name=a\r\n\r\nx\r\n" .. HEAD .. "name=key\r\n\r\ny" .. TAIL,
}

local TYPES = {
    "boundary=xx",
    'boundary="xx"',
    "a; BOUNDARY=xx;b",
    'boundary=""; boundary=xx',
    "boundary=;boundary=xx",
    'boundary="xx',
    "boundary= xx",
    "boundary=x",
    'boundary="--xx"',
    "",
}

local function find(document, name)
    local value, count = fields.lookup(document, name)
    return { value, count }
end

describe("fields", function()
    describe("from_form", function()
        it("finds a field by its decoded name", function()
            local document = fields.from_form("a=1&k%65y=x%20y+z&b")
            assert.same({ "x y z", 1 }, find(document, "key"))
            assert.same({ nil, 0 }, find(document, "ke"))
        end)

        it("takes one without a value for a flag", function()
            assert.same({ true, 1 }, find(fields.from_form("key"), "key"))
            assert.same({ "", 1 }, find(fields.from_form("key="), "key"))
        end)

        it("leaves the rest as it was sent", function()
            local cases = {
                { "key=x", "" },
                { "a=%31&key=x&b", "a=%31&b" },
                { "&&key&&", "&&" },
                { "key&a=+&%6bey=&", "a=+" },
            }
            for _, case in ipairs(cases) do
                assert.equal(case[2], fields.without(fields.from_form(case[1]), "key"))
            end
        end)
    end)

    describe("from_loose_form", function()
        it("takes out what stands between semicolons, and leaves what divides the rest", function()
            local cases = {
                { "key=x", "" },
                { "a=1;key=x;b=2", "a=1;b=2" },
                { "a=1;key=x&b=2", "a=1&b=2" },
                { "key=x;y&a;%6bey&b;two=z;c", "a&b;c" },
                { "a&key=;x;y&b", "a&b" },
                { "a;key=x;key=y&z", "a&z" },
                { ";;key;;", ";;" },
                { "a%3bkey=x", nil },
                { "a=key=x;keys=1", nil },
            }
            for _, case in ipairs(cases) do
                local document = fields.from_loose_form(case[1])
                assert.equal(case[2], fields.without(document, "key", "two"))
            end
        end)

        it("is a form where there is no semicolon", function()
            for _, text in ipairs(FORMS) do
                if not text:find(";", 1, true) then
                    local loose = fields.without(fields.from_loose_form(text), "key")
                    assert.equal(fields.without(fields.from_form(text), "key"), loose)
                end
            end
        end)
    end)

    it("takes several names out in one pass", function()
        local form = fields.from_form("a=1&key=2&b&two&key=3")
        assert.equal("a=1&b", fields.without(form, "none", "two", "key"))
        local json = fields.from_json('{"key": 1, "a": [2], "two": {}}')
        assert.equal('{ "a": [2]}', fields.without(json, "two", "key"))
    end)

    describe("from_json", function()
        it("finds a member of the outermost object only", function()
            local document = fields.from_json('{"a": {"key": "in"}, "key": "out"}')
            assert.same({ "out", 1 }, find(document, "key"))
            assert.same({ nil, 0 }, find(document, "none"))
        end)

        it("leaves the rest as it was sent", function()
            local cases = {
                { '{"key":"x"}', "{}" },
                { ' { "key" : "x" } ', " {} " },
                { '{"key":"x","a":1}', '{"a":1}' },
                { '{"a":1,"key":"x"}', '{"a":1}' },
                {
                    '{ "a":[], "key":"x", "b":{}, "n":12345678901234567890}',
                    '{ "a":[], "b":{}, "n":12345678901234567890}',
                },
                {
                    '{"s":"},\\"key\\":{","key":"x","t":"\\\\"}',
                    '{"s":"},\\"key\\":{","t":"\\\\"}',
                },
                { '{"k\\u0065y":"x","a":[{"key":1},"]"]}', '{"a":[{"key":1},"]"]}' },
                { '{"key":"x","a":1,"key":"y"}', '{"a":1}' },
            }
            for _, case in ipairs(cases) do
                local rest = fields.without(fields.from_json(case[1]), "key")
                assert.equal(case[2], rest)
                cjson.decode(rest)
            end
        end)

        it("tells that there is nothing to take out", function()
            assert.is_nil(fields.without(fields.from_json('{"a":1}'), "key"))
            assert.is_nil(fields.without(fields.from_json("{}"), "key"))
        end)

        it("counts repeated members and arrays as several", function()
            assert.equal(2, find(fields.from_json('{"key":"x","key":"y"}'), "key")[2])
            assert.equal(2, find(fields.from_json('{"key":["x","y"]}'), "key")[2])
        end)

        it("takes nothing but a valid object", function()
            for _, text in ipairs({ "", "[]", '"key"', "{", '{"key":"x"', '{"key":}', "{}x" }) do
                assert.is_nil(fields.from_json(text))
            end
        end)

        it("survives what a random generator writes", function()
            math.randomseed(require("test.unit.support.seed")("core_fields"))
            local pieces = { '"', "\\", "{", "}", "[", "]", ",", ":", "key", " ", "é" }
            for _ = 1, 2000 do
                local object = { key = "x" }
                for i = 1, math.random(0, 3) do
                    local text = {}
                    for j = 1, math.random(0, 6) do
                        text[j] = pieces[math.random(#pieces)]
                    end
                    object["m" .. i .. table.concat(text)] = { nested = table.concat(text) }
                end
                local text = cjson.encode(object)
                local document = fields.from_json(text)
                assert.same({ "x", 1 }, find(document, "key"))
                object.key = nil
                assert.same(object, cjson.decode(fields.without(document, "key")))
            end
        end)
    end)

    describe("from_multipart", function()
        local function part(name, value)
            return ('--xx\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'):format(
                name,
                value
            )
        end

        it("finds a part by its name", function()
            local text = part("a", "1") .. part("key", "x\r\ny") .. "--xx--\r\n"
            local document = fields.from_multipart(text, TYPE)
            assert.same({ "x\r\ny", 1 }, find(document, "key"))
            assert.equal(part("a", "1") .. "--xx--\r\n", fields.without(document, "key"))
        end)

        it("takes out the first, the last and the only part", function()
            local function without(text)
                return fields.without(fields.from_multipart(text, TYPE), "key")
            end
            local a, key, finish = part("a", "1"), part("key", "x"), "--xx--"
            assert.equal(a .. finish, without(key .. a .. finish))
            assert.equal(a .. finish, without(a .. key .. finish))
            assert.equal(finish, without(key .. finish))
            local preamble = "preamble\r\n"
            assert.equal(preamble .. a .. finish, without(preamble .. key .. a .. finish))
        end)

        it("does not take a file's name for the field's", function()
            local text = "--xx\r\nContent-Disposition: form-data; "
                .. 'filename="key"; name="upload"\r\n\r\nx\r\n--xx--'
            local document = fields.from_multipart(text, TYPE)
            assert.same({ nil, 0 }, find(document, "key"))
            assert.same({ "x", 1 }, find(document, "upload"))
        end)

        it("takes nothing without a boundary, or cut off", function()
            local text = part("key", "x") .. "--xx--"
            assert.is_nil(fields.from_multipart(text, "multipart/form-data"))
            assert.is_nil(fields.from_multipart(part("key", "x"), TYPE))
            assert.is_nil(fields.from_multipart("", TYPE))
        end)
    end)

    describe("agree with the Lua that was there before:", function()
        local function agree(kind, text, content_type)
            local from = ({ fields.from_form, fields.from_json, fields.from_multipart })[kind]
            local document = from(text, content_type)
            for _, name in ipairs({ "key", "a", "", "k y", "\0", "é" }) do
                local count, value, rest = ask_lua(kind, text, content_type, name)
                local got = document and { fields.lookup(document, name) } or {}
                if got[1] == true then
                    got[1] = nil
                end
                local left = document and fields.without(document, name)
                assert.same({ value, count, rest }, { got[1], got[2], left }, text)
            end
        end

        it("forms", function()
            for _, text in ipairs(FORMS) do
                agree(FORM, text, "")
            end
        end)

        it("JSON", function()
            for _, value in ipairs(VALUES) do
                agree(JSON, '{"key":' .. value .. "}", "")
                agree(JSON, '{"a":1, "key" : [' .. value .. ' ] ,"a":"é"}', "")
                agree(JSON, '{"\\u006bey": "x", "a": ' .. value .. ' , "key":null }', "")
            end
            for _, text in ipairs(TEXTS) do
                agree(JSON, text, "")
            end
        end)

        it("multipart forms", function()
            for _, text in ipairs(PARTS) do
                for _, content_type in ipairs(TYPES) do
                    agree(MULTIPART, text, content_type)
                end
            end
        end)
    end)
end)
