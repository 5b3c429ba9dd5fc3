--- What is said of a text that is no YAML, and where.

local document = require("gateway.config.document")
local source_line = require("gateway.config.source_line")

local function decode(source)
    return document.decode(source, "yaml")
end

describe("gateway.config.yaml_errors", function()
    for source, message in pairs({
        ["a: 1\n b: 2\n"] = "line 2, column 2: unexpected indentation: line 1 already has a "
            .. "value (is a ':' missing there?)",
        ["a: b: c\n"] = "line 1, column 5: unexpected ': ' in a text; put the text in quotes",
        ["a: 1\nbc\nd: 2\n"] = "line 2, column 1: expected ': ' after 'bc'",
        ["a: 1\nb:c\n"] = "line 2, column 1: expected a space after ':'",
        ["a:\n  - /b\n  /c\n"] = "line 3, column 3: expected '- ' before '/c', as in line 2",
        ["a:\n  - b:\n      - c\n\n      # d\n      e\n  - f\n"] = "line 6, column 7: expected "
            .. "'- ' before 'e', as in line 3",
        ["a:\r\n- b: 1\r\n  c: 2\r\n/d\r\n"] = "line 4, column 1: expected ': ' after '/d', or "
            .. "'- ' before '/d', as in line 2",
        ["a:\n  - b:\n    - c\n    d\n    e: 1\n"] = "line 4, column 5: expected ': ' after 'd', "
            .. "or '- ' before 'd', as in line 3",
        ["a:\n  - b: 1\nc\nd: 2\n"] = "line 3, column 1: expected ': ' after 'c'",
        ["a:\n- b: 1\nc: 2\nd\ne: 3\n"] = "line 4, column 1: expected ': ' after 'd'",
        ["- a\nb\n"] = "line 2, column 1: expected '- ' before 'b', as in line 1",
        ["a:\n  - name b\n    c: 1\n"] = "line 2, column 5: expected ': ' after 'name'",
        ["a:\n  - it is\n    c: 1\n"] = "line 3, column 5: unexpected indentation: line 2 already "
            .. "has a value (is a ':' missing there?)",
        ["a:\n  - name:b\n    c: 1\n"] = "line 2, column 5: expected a space after ':'",
        ["a\n  - b: 1\n"] = "line 1, column 1: expected ': ' after 'a'",
        ["a:\n  - /b\n    c: 1\n"] = "line 3, column 5: unexpected indentation: line 2 already "
            .. "has a value (is a ':' missing there?)",
        ["a:\n  - b\n    c: 1\n"] = "line 3, column 5: unexpected indentation: line 2 already "
            .. "has a value (is a ':' missing there?)",
        ["a:\n-name: b\n c: 1\n"] = "line 2, column 1: write '- name', with a space after the dash",
        ["a:\n  - b: 1\n    c: 2\n  -name: d\n    c: 2\n"] = "line 4, column 3: write '- name', "
            .. "with a space after the dash",
        ["a:\n  - b: 1\n  -name: d\n"] = "line 3, column 3: write '- name', with a space after the "
            .. "dash",
        ["a:\n  - b:\n    -/c\n    -/d\n"] = "line 3, column 5: write '- /c', with a space after "
            .. "the dash",
        ["a: 1\n-5\nb: 2\n"] = "line 2, column 1: expected ': ' after '-5'",
        ["a: [1\nb: 2\n"] = "line 2, column 2: expected ',' or ']' for the '[' in line 1, "
            .. "found ':'",
        ["a: {b: 1\n"] = "line 2, column 1: expected ',' or '}' for the '{' in line 1, found "
            .. "the end of the line",
        ["a: 'x\n"] = "line 1, column 4: no closing quote",
        ['a: "\\d"\n'] = "line 1, column 5: unknown escape in double quotes; use single "
            .. "quotes, or '\\\\'",
        ["\ta: 1"] = "line 1, column 1: tab in indentation; use spaces",
        ["a:\n  b: 1\n\tc: 2\n"] = "line 3, column 1: tab in indentation; use spaces",
        ["a: @b\n"] = "line 1, column 4: '@' cannot begin a text; put the text in quotes",
        ["a: [*.b.c]\n"] = "line 1, column 6: '*' cannot begin a text; put the text in quotes",
        ["a: - b\n"] = "line 1, column 4: '-' cannot follow in this line; begin another",
        ["a:\n- b\nc: ]\n"] = "line 3, column 4: expected a value, found ']'",
        ["{a: 1}\nb: 2\n"] = "line 2, column 1: expected the end of the document, found 'b:'",
        ["a:\n  - b: 1\n  c: 2\n"] = "line 3, column 3: expected '-' as in line 2, found 'c:'",
        ["a:\n  - b: 1\n   - c: 2\n"] = "line 3, column 4: expected '-' in column 3, as in "
            .. "line 2",
        ["a:\n  - b: 1\n   c: 2\n"] = "line 3, column 4: expected a key in column 5 or '-' in "
            .. "column 3, as in line 2",
        ["a:\n    b: 1\n  c: 2\n"] = "line 3, column 3: expected a key in column 1, as in "
            .. "line 1",
        ["a: 1\n- b\n"] = "line 2, column 1: expected a key as in line 1, found '-'",
    }) do
        it(("explains %q"):format(source), function()
            local value, err = decode(source)
            assert.is_nil(value)
            assert.equal(message, err)
        end)
    end

    it("explains what follows many lines, which are walked over once", function()
        local blank = ("\n"):rep(300000)
        local _, err = decode("a: b\n" .. blank .. "  c: d\n")
        assert.matches("^line 300002, column 3: unexpected indentation: line 1 already", err)
    end)

    it("explains what is wrong in whatever text, at a place in it", function()
        local seed = require("test.unit.support.seed")("yaml_errors")
        math.randomseed(seed)
        local signs = { "\t", "-", ":", "'", '"', "[", "]", "{", "}", "*", "&", "\n", "ä", "@" }
        local text = "a:\n  - b: [c, 'd']\n    e: {f: 1}\n  - g: h\n    i: \"j\"\nk: 1\n"
        for _ = 1, 3000 do
            local at = math.random(#text)
            local source = text:sub(1, at - math.random(0, 2))
                .. signs[math.random(#signs)]
                .. text:sub(at + math.random(0, 2))
            local _, err, wrong = decode(source)
            if err and wrong.line then
                local shown = source_line.excerpt(source, wrong.line, wrong.column)
                assert.matches("^" .. wrong.line .. " | [^\n]*\n +| *^$", shown)
                assert.is_nil(err:find(".lua:", 1, true), ("seed %d: %s"):format(seed, err))
            end
        end
    end)

    it("finds lines whatever they end with, behind a byte order mark", function()
        local text = { "a: 1", "b: 2", " c: 3", "d: 4" }
        for _, ending in ipairs({ "\n", "\r", "\r\n" }) do
            for _, mark in ipairs({ "", "\239\187\191" }) do
                local source = mark .. table.concat(text, ending)
                local _, err, wrong = decode(source)
                assert.matches("^line 3, column 2: unexpected indentation: line 2 ", err)
                local shown = source_line.excerpt(source, wrong.line, wrong.column)
                assert.equal("3 |  c: 3\n  |  ^", shown)
                assert.equal("1 | a: 1\n  | ^", source_line.excerpt(source, 1, 1))
                assert.same({ 1, 1 }, { source_line.place(source, #mark + 1) })
                assert.same({ 4, 5 }, { source_line.place(source, #source + 1) })
            end
        end
    end)

    it("shows a part of a long line, by characters", function()
        local source = "a: 1\nb: " .. ("ä"):rep(60) .. ": " .. ("c"):rep(60)
        local _, _, wrong = decode(source)
        assert.equal(
            "2 | ..."
                .. ("ä"):rep(44)
                .. ": "
                .. ("c"):rep(20)
                .. "...\n  | "
                .. (" "):rep(47)
                .. "^",
            source_line.excerpt(source, wrong.line, wrong.column)
        )
    end)
end)

describe("a quote that is not closed", function()
    for source, message in pairs({
        ['_format_version: "3.0\nservices:\n  - name: a\n    url: "http://b"\n'] = "line 1, "
            .. "column 18: no closing quote in this line; the next one is in line 4",
        ['a:\n  - b:\n      - key: "c\n  - d:\n      - hosts: ["*.e"]\nf: 1\n'] = "line 3, "
            .. "column 14: no closing quote in this line; the next one is in line 5",
        ["a: 'it''s # no\nb: 1\nc: 'd'\n"] = "line 1, column 4: no closing quote in this line; "
            .. "the next one is in line 3",
        ['a: ["b", "c]\nd: ["e"]\n'] = "line 1, column 10: no closing quote in this line; the "
            .. "next one is in line 2",
        ['a: "b\nc: ""\n'] = "line 1, column 4: no closing quote in this line; the next one is "
            .. "in line 2",
        ['a: "b\\"\nc: "d\ne: 1"\n'] = "line 1, column 4: no closing quote in this line; the next "
            .. "one is in line 2",
    }) do
        it(("is found in %q"):format(source), function()
            local _, err = decode(source)
            assert.equal(message, err)
        end)
    end

    it("is none that is closed in another line", function()
        for source, message in pairs({
            ['a: "b\n  c"\nd: @e\n'] = "line 3, column 4: '@' cannot begin",
            ["a: 'b\n\n  c' # \"d\ne: [f, 'g\n  h']\ni: 1\nj: @\n"] = "line 7, column 4: '@'",
            ['a: |\n  "b\n  c: "d\ne: @f\n'] = "line 4, column 4: '@' cannot begin",
            ['a:\n  - |\n   "b\n   c: "d\n  - @f\n'] = "line 5, column 5: '@' cannot begin",
            ['a: 5" b\n# c: "d\ne: "f" # "g\nh: @i\n'] = "line 4, column 4: '@' cannot begin",
        }) do
            local _, err = decode(source)
            assert.equal(message, err:sub(1, #message))
        end
    end)

    it("is looked for in time that grows with the text", function()
        local line = ('"a", '):rep(200000)
        assert.matches("^line 1", select(2, decode("a: [" .. line .. "@]\n")))
        assert.matches("^line 1", select(2, decode('a: "' .. ('\n: "b"'):rep(200000) .. "\n")))
    end)
end)
