--- Fields of bodies, and bodies without one of them. (Forms need nginx: test_key_auth.py.)

local cjson = require("cjson")
local fields = require("plugins.key-auth.fields")

local function find(document, name)
    local value, count = fields.lookup(document, name)
    return { value, count }
end

describe("plugins.key-auth.fields", function()
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
            math.randomseed(os.time())
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
        local TYPE = "multipart/form-data; boundary=xx"

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
end)
