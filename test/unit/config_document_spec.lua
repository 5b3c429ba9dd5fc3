--- YAML and JSON texts: what they mean, and where an error is.

local cjson = require("cjson")
local document = require("gateway.config.document")

local NULL = cjson.null
local TOP = "expected a mapping at the top, such as `services:`"

local NO_UTF8 = " is not UTF-8 (the file may be Latin-1); save it as UTF-8: "
    .. "`iconv -f latin1 -t utf-8`"

local function decode(source)
    return document.decode(source, "yaml")
end

describe("gateway.config.document", function()
    it("takes a file or a list where a list of a kind may stand, and no other mapping", function()
        local opts = { list_of = "services" }
        for _, kind in ipairs({ "yaml", "json" }) do
            assert.is_truthy(document.decode('[{"host": "a"}]', kind, opts).services)
            assert.is_truthy(document.decode('{"_format_version": "3.0"}', kind, opts))
            assert.is_truthy(document.decode("[]", kind, opts))
            local value, err = document.decode('{"name": "a"}', kind, opts)
            assert.is_nil(value)
            assert.equal("kind expects a list of services, found a mapping", err)
        end
    end)

    describe("U+0000 in YAML", function()
        it("reads U+0000 as what it is, and what only looks like its escape", function()
            local lines = {
                [[é: "x\0y\x00\u0000\U00000000z"]],
                [["k\0": 'x\0' ]],
                [[b: x\u0000]],
                [[c: "x\\0\\\0"]],
                "d: |",
                [[  \x00 \ufdd1]],
                [[e: "\uFDD0\0\U0000fdd2\0123"]],
                [[f: "\x5cufdd0"]],
                [[g: "a \]],
                [[  \0b]],
                [[ ]],
                [[  é\0"]],
                "h: \239\183\144",
                "'" .. ([[\0]]):rep(300) .. "': 1",
            }
            for _, mark in ipairs({ "", "\239\187\191" }) do
                for _, ending in ipairs({ "\n", "\r\n" }) do
                    assert.same({
                        ["é"] = "x\0y\0\0\0z",
                        ["k\0"] = "x\\0",
                        b = "x\\u0000",
                        c = "x\\0\\\0",
                        d = "\\x00 \\ufdd1\n",
                        e = "\239\183\144\0\239\183\146\0" .. "123",
                        f = "\\ufdd0",
                        g = "a \0b\né\0",
                        h = "\239\183\144",
                        [([[\0]]):rep(300)] = 1,
                    }, decode(mark .. table.concat(lines, ending)))
                end
            end
        end)

        it("says in which column an error is behind it", function()
            local _, err = decode([[{a: "\0", b: "\q"}]])
            local reason = "unknown escape in double quotes; use single quotes, or '\\\\'"
            assert.equal("line 1, column 15: " .. reason, err)
        end)

        it("refuses a text with U+0000 for which no character stands in", function()
            local all = {}
            for last = 0x90, 0xAF do
                all[#all + 1] = "\239\183" .. string.char(last)
            end
            local value, err = decode('a: "\\0' .. table.concat(all) .. '"')
            assert.is_nil(value)
            assert.equal(
                "line 1, column 4: a text with U+0000 and all of U+FDD0 to U+FDEF cannot be read",
                err
            )
        end)
    end)

    describe("YAML", function()
        -- plain scalar -> value
        for text, want in pairs({
            ["abc"] = "abc",
            ["80"] = 80,
            ["-1"] = -1,
            ["1.5"] = 1.5,
            ["1e3"] = 1000,
            ["0x10"] = 16,
            ["010"] = 8,
            ["true"] = true,
            ["Yes"] = true,
            ["on"] = true,
            ["NO"] = false,
            ["off"] = false,
            ["null"] = NULL,
            ["~"] = NULL,
            ["''"] = "",
            ["'80'"] = "80",
            ['"no"'] = "no",
            ["10.0.0.1"] = "10.0.0.1",
            ["10.0.0.1:80"] = "10.0.0.1:80",
            ["/a"] = "/a",
            ["!!str 80"] = "80",
            ["! 80"] = "80",
            ["!!int '80'"] = 80,
            ["!!null x"] = NULL,
            ["nullable"] = "nullable",
        }) do
            it("reads " .. text, function()
                assert.same({ a = want }, decode("a: " .. text .. "\n"))
            end)
        end

        it("keeps keys as text", function()
            assert.same({ on = 1, ["80"] = 2, ["~"] = 3 }, decode("on: 1\n80: 2\n~: 3\n"))
        end)

        it("reads nested collections, flow and block", function()
            local want = { a = { { b = { 1, NULL } }, "c" }, d = {} }
            assert.same(want, decode("a:\n- b: [1, ~]\n- c\nd: {}\n"))
        end)

        it("follows anchors and merges, own keys first", function()
            local source =
                "x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}\nz: {b: 4, <<: [*x, {c: 5}]}\nw: *x\n"
            local value = decode(source)
            assert.same({ a = 1, b = 3 }, value.y)
            assert.same({ a = 1, b = 4, c = 5 }, value.z)
            assert.same({ a = 1, b = 2 }, value.w)
        end)

        it("takes a key that is written '<<' for a key", function()
            assert.same({ ["<<"] = 1 }, decode("'<<': 1"))
        end)

        for source, message in pairs({
            ["a: 1\nb: {c: 1, c: 2}\n"] = "line 2, column 11: duplicate key 'c', first in line 2",
            ["a: {x: [1]}\na: {x: 1}\n"] = "line 2, column 1: duplicate key 'a', first in line 1",
            ["a: 1\nb: 2\na: 3\n"] = "line 3, column 1: duplicate key 'a', first in line 1",
            ["a: *x\n"] = "line 1, column 4: unknown anchor 'x'",
            ["a: &x [*x]\n"] = "line 1, column 8: the anchor 'x' contains itself",
            ["a: {<<: 1}\n"] = "line 1, column 5: '<<' needs a mapping or a sequence of mappings",
            ["[a]: 1\n"] = "line 1, column 1: a key must be text",
            ["a: !thing 1\n"] = "line 1, column 4: unknown tag '!thing'",
            ["a: [.nan]\n"] = "line 1, column 5: '.nan' is not a number",
            ["a: !!float .NaN\n"] = "line 1, column 4: '.NaN' is not a number",
            ["a: !!int x\n"] = "line 1, column 4: 'x' is not of type tag:yaml.org,2002:int",
            ["a: 1\n---\nb: 1\n"] = "line 2, column 1: only one document is allowed in a file",
            ["a: 1\nb: \1\n"] = "line 2, column 4: control characters are not allowed",
            ["a: 1\nb: \194\128\n"] = "line 2, column 4: control characters are not allowed",
            ["a: 1\nb: x\239\191\190\n"] = "line 2, column 5: control characters are not allowed",
            ["\239\187\191a: \1\n"] = "line 1, column 4: control characters are not allowed",
            ["\239\187\191a: 1\nb: \1\n"] = "line 2, column 4: control characters are not "
                .. "allowed",
            ["\239\187\191a: [\n"] = "line 2, column 1: expected a value, found the end of the "
                .. "line",
            ["a: 1\rb: 2\rc: \1\r"] = "line 3, column 4: control characters are not allowed",
            ["a: 1\r\nb: 2\r\n\rc: \1\r\n"] = "line 4, column 4: control characters are not "
                .. "allowed",
            ["a: 1\nb: \195\164 \233 x\n"] = "line 2, column 6: byte 0xE9" .. NO_UTF8,
            ["a: \1\nb: \233\n"] = "line 1, column 4: control characters are not allowed",
            [""] = "the file is empty",
            ["# only a remark\n"] = "the file is empty",
            ["- a\n"] = TOP,
            ["text"] = TOP,
        }) do
            it(("refuses %q"):format(source), function()
                local value, err = decode(source)
                assert.is_nil(value)
                assert.equal(message, err)
            end)
        end

        it("bounds depth", function()
            local value, err = decode("a: " .. ("["):rep(200) .. ("]"):rep(200))
            assert.is_nil(value)
            assert.equal("line 1, column 103: nested too deeply", err)
        end)

        it("bounds what aliases unfold to", function()
            local lines = { "a0: &a0 [x, x, x, x, x, x, x, x, x, x]" }
            for i = 1, 9 do
                local item = "*a" .. i - 1
                lines[#lines + 1] = ("a%d: &a%d [%s]"):format(i, i, item .. (", " .. item):rep(9))
            end
            local value, err = decode(table.concat(lines, "\n"))
            assert.is_nil(value)
            assert.matches(
                "^line 4, column %d+: the file is too large after expanding its aliases$",
                err
            )
        end)
    end)

    describe("JSON", function()
        it("is told by its first character, or by the caller", function()
            assert.same({ a = { 1, NULL, "x" } }, document.decode(' \n{"a": [1, null, "x"]}'))
            assert.same({ a = 1 }, document.decode('\239\187\191{"a":1}', "json"))
        end)

        for source, message in pairs({
            ['{"a": 1,\n "b": ]}'] = "line 2, column 7: expected a value, found ']'",
            ['{"a": 1'] = "line 1, column 8: expected ',' or '}', found the end of the file",
            ["{} x"] = "line 1, column 4: expected the end, found an invalid token",
            ['{"a": NaN}'] = "line 1, column 7: expected a value, found an invalid token",
            ["[1]"] = TOP,
            ["null"] = "the file is empty",
            -- cjson would see nothing of what follows: a key twice, or a string without an end.
            ['{"a": 1}\0, "a": 2}'] = "line 1, column 9: a NUL byte",
            ['\r{"a": 1,\r\n "b": ]}'] = "line 3, column 7: expected a value, found ']'",
            ['\n{"a": "\0'] = "line 2, column 8: a NUL byte",
        }) do
            it(("refuses %q"):format(source), function()
                local value, err = document.decode(source, "json")
                assert.is_nil(value)
                assert.equal(message, err)
            end)
        end

        -- text -> the path and the place of the duplicate key
        for source, want in pairs({
            ['{"a": 1, "a": 2}'] = { "a", "line 1, column 10", "a" },
            ['{"a": [0, {"b": 1,\n "c": {}, "b": 2}]}'] = { "a[1].b", "line 2, column 11", "b" },
            ['{"s": [[], [{"k": {"x": 1, "y": [1, 2], "x": 3}}]]}'] = {
                "s[1][0].k.x",
                "line 1, column 41",
                "x",
            },
            ['{"\\"{": 1, "b": "}, \\"b\\": ", "\\u0062": 2}'] = { "b", "line 1, column 31", "b" },
            ['\239\187\191{"a":1,"a":2}'] = { "a", "line 1, column 8", "a" },
        }) do
            it("refuses a duplicate key: " .. source, function()
                local value, err, wrong = document.decode(source, "json")
                assert.is_nil(value)
                local message = "%s: duplicate key '%s', first in line 1"
                assert.equal(message:format(want[2], want[3]), err)
                assert.equal(want[1], wrong.path)
            end)
        end

        it("takes a key twice where both values are equal", function()
            for source, want in pairs({
                ['{"a": 1,"a":1 }'] = { a = 1 },
                ['{"a": "}\\"", "a" : "}\\""}'] = { a = '}"' },
                ['{"a": {"b": [1, {}], "c": "]"}, "a": {"c": "]", "b": [1, {}]}}'] = {
                    a = { b = { 1, {} }, c = "]" },
                },
                ['{"a":[{"a":null,"a":null},{"a":[],"a":[]}]}'] = {
                    a = { { a = NULL }, { a = {} } },
                },
            }) do
                assert.same(want, document.decode(source, "json"))
            end
        end)

        it("says where a key with another value is", function()
            local _, err = document.decode('{"a": [1],\n"b": 1,\n"a": [1, 2]}', "json")
            assert.equal("line 3, column 1: duplicate key 'a', first in line 1", err)
        end)

        it("takes the same key in different objects", function()
            local source = '{"a": {"a": [{"a": "a"}, {"a": ["a", "a"]}]}, "b": {"a": "b"}}'
            assert.same(cjson.decode(source), document.decode(source, "json"))
        end)
    end)

    it("says that a text is UTF-16, where it is not read", function()
        local low = ('{"a": 1 ]'):gsub(".", "%0\0")
        local high = ('{"a": 1 ]'):gsub(".", "\0%0")
        for _, source in ipairs({ low, high, "\255\254" .. low, "\254\255" .. high }) do
            for _, kind in ipairs({ "yaml", "json" }) do
                local value, err = document.decode(source, kind)
                assert.is_nil(value)
                assert.equal("the file is UTF-16; save it as UTF-8", err)
            end
        end
        assert.same({ a = 1 }, decode("\255\254a\0:\0 \0001\0"))
    end)

    it("knows formats by file names", function()
        for name, want in pairs({
            ["a.json"] = "json",
            ["a.b/c.YAML"] = "yaml",
            ["x.yml"] = "yaml",
        }) do
            assert.equal(want, document.format_of(name))
        end
        assert.is_nil(document.format_of("a.txt"))
        assert.is_nil(document.format_of("json"))
    end)
end)
