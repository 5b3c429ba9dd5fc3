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
