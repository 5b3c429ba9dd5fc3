-- What errors of a file say beside what is wrong: what to write instead, and how many there are.

local config = require("gateway.config")
local support = require("test.unit.support.config")

describe("what to write instead", function()
    local function said(body)
        local source = '_format_version: "3.0"\n' .. body
        local _, errors = config.parse(source, "yaml", support.registry)
        return config.format_errors(errors)
    end

    it("is told of values of another type", function()
        for body, line in pairs({
            ["routes: [{paths: /a}]"] = "paths: expected an array; write a list: [...]",
            ["routes: [{methods: get}]"] = "methods: expected a set; write a list: [...]",
            ["routes: [{paths: [/a], strip_path: 'no'}]"] = "strip_path: expected a boolean; "
                .. "write it without quotes",
            ["services: [{host: a, port: '80'}]"] = "port: expected an integer; write it without "
                .. "quotes",
            ["services: {name: a, host: b}"] = "services: expected an array; begin each of its "
                .. "entities with -",
        }) do
            assert.matches(line, said(body), 1, true)
        end
        -- Not where it would not help.
        for body, line in pairs({
            ["routes: [{paths: {a: b}}]"] = "paths: expected an array",
            ["routes: [{paths: [/a], strip_path: maybe}]"] = "strip_path: expected a boolean",
            ["services: [{host: a, port: many}]"] = "port: expected an integer",
        }) do
            assert.equal(line, said(body):match("[%l_]+: expected.*$"))
        end
    end)

    it("is told of fields that begin alike, and of what entities are known by", function()
        local unknown = 'line 2: consumers[0] "a".%s: unknown field; did you mean %s?'
        for key, meant in pairs({
            keyauth = "keyauth_credentials",
            ["basicauth-cred"] = "basicauth_credentials",
        }) do
            local body = ("consumers: [{username: a, %s: []}]"):format(key)
            assert.equal(unknown:format(key, meant), said(body))
        end
        local named = "consumers: [{name: a, username: a}]"
        assert.equal(unknown:format("name", "username"), said(named))
        assert.matches("%.con: unknown field$", said("consumers: [{username: a, con: 1}]"))
    end)

    it("is told of a placeholder in a value that is wrong", function()
        for body, found in pairs({
            ["services: [{host: '{{ host }}'}]"] = "{{ host }}",
            ["services: [{url: 'http://{{ host }}/'}]"] = "{{ host }}",
            ["services: [{host: h, port: '${PORT}'}]"] = "${PORT}",
            ["routes: [{paths: ['<your path>']}]"] = "<your path>",
            ["routes: [{paths: [/a], service: '{{ name }}'}]"] = "{{ name }}",
            ["plugins: [{name: '{% plugin %}'}]"] = "{% plugin %}",
            ["services: ['{{ a }}']"] = "{{ a }}",
        }) do
            local message = "; '%s' is a placeholder; fill in the template first"
            local errors = said(body)
            assert.equal(message:format(found), errors:sub(-#message:format(found)))
        end
        for body, start in pairs({
            ["services: [{host: h, port: '${PORT:-s3cret}'}]"] = "${PORT",
            ["services: ['{{ a | s3cret }}']"] = "{{",
        }) do
            local errors = said(body)
            assert.matches(("; '%s' begins a placeholder; fill in"):format(start), errors, 1, true)
            assert.is_nil(errors:find("s3cret", 1, true))
        end
        local plugins = said("plugins: [{name: '{{ a }}'}, {name: none}]")
        assert.matches("'none' not installed; the setting `plugins` has ", plugins, 1, true)
        for _, body in ipairs({
            "routes: [{paths: ['a<b>']}]",
            "routes: [{paths: ['<(b)>']}]",
            "routes: [{paths: ['${(b)}']}]",
            "routes: [{path: '{{ a }}', paths: [/a]}]",
            "routes: [{paths: ['{{a: b}}']}]",
            'routes: [{paths: ["{{ a\\nb }}"]}]',
        }) do
            assert.is_nil(said(body):find("placeholder"))
        end
        assert.equal("", support.errors("routes: [{paths: ['/a'], headers: {a: ['{{ b }}']}}]"))
    end)

    it("is told of a placeholder in a text that cannot be read", function()
        for text, place in pairs({
            ["a: {{ x }}\n"] = "line 1, column 4: '{{ x }}'",
            ["é: [{{x}}:80]\n"] = "line 1, column 5: '{{x}}'",
            ["a:\n  {% if x %}\n  b: 1\n"] = "line 2, column 3: '{% if x %}'",
            ["a: 'b'\n{{- x }}\n"] = "line 2, column 1: '{{- x }}'",
            ['{"a": "b",\n"c": {{ x }}}'] = "line 2, column 6: '{{ x }}'",
        }) do
            local _, errors = config.parse(text, nil, support.registry)
            local line = config.format_errors(errors):match("^[^\n]+")
            assert.equal(place .. " is a placeholder; fill in the template first", line)
        end
        for _, text in ipairs({
            "a: '{{ b }}': c",
            '{"a": "{{ b }}" 1}',
            "a: b: c # {{ d }}",
            "# {{ d }}\na: b: c",
            "[a {{name: b, host: c}}]",
        }) do
            local _, errors = config.parse(text, nil, support.registry)
            assert.is_nil(config.format_errors(errors):match("^[^\n]+"):find("placeholder"))
        end
    end)

    it("is told once which plugins there are, by the first line", function()
        local list = "; the setting `plugins` has access%-log, acl, [^;\n]*$"
        local lines = {}
        local body = "plugins:\n- name: none\n- {name: key-aut}\n- {name: other}\n"
            .. "services: [{host: h, plugins: [{name: no-other}]}]"
        for line in said(body):gmatch("[^\n]+") do
            lines[#lines + 1] = line
        end
        assert.matches("plugin 'none' not installed" .. list, lines[1])
        assert.matches("plugin 'key%-aut' not installed; did you mean key%-auth%?$", lines[2])
        assert.matches("plugin 'other' not installed$", lines[3])
        assert.matches("plugin 'no%-other' not installed$", lines[4])
        assert.is_nil(lines[5])
    end)

    it("is told of a text without its lines, as curl's -d sends it", function()
        local text = ("_format_version: '3.0'\nservices:\n- host: a\n"):gsub("\n", "")
        local _, errors = config.parse(text, "yaml", support.registry)
        local found = config.format_errors(errors)
        assert.matches("--data-binary, not -d\n", found, 1, true)
        _, errors = config.parse("_format_version: [", "yaml", support.registry)
        assert.is_nil(config.format_errors(errors):find("curl"))
    end)

    it("is told where the format is missing", function()
        local _, errors = config.parse("services: []", "yaml", support.registry)
        local line =
            '_format_version: required field missing; begin the file with _format_version: "3.0"'
        assert.equal(line, config.format_errors(errors))
    end)
end)

describe("the count of errors", function()
    local function count(body)
        local source = '_format_version: "3.0"\n' .. body
        local _, errors = config.parse(source, "yaml", support.registry)
        local text, found = config.format_errors(errors)
        local _, lines = text:gsub("[^\n]+", "")
        return found, lines
    end

    it("is that of the lines that are shown", function()
        assert.same({ "1 error", 1 }, { count("services: [{host: a, x: 1}]") })
        assert.same({ "2 errors", 2 }, { count("services: [{host: a, x: 1, y: 2}]") })
        -- Two of one place are in one line.
        assert.same({ "1 error", 1 }, { count("plugins: [{name: acl, config: {}}]") })
        local many = "services:\n" .. ("- {host: a, x: 1}\n"):rep(100)
        assert.same({ "100 errors", 100 }, { count(many) })
        assert.same({ "more than 100 errors", 101 }, { count(many .. "- {host: a, x: 1}\n") })
    end)

    it("is one of a text that cannot be read", function()
        assert.equal("1 error", (count("services: [")))
    end)
end)
