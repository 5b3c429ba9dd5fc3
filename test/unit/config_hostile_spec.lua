--- Small files made to cost much: what each may cost, whatever it holds.

local config = require("gateway.config")
local core = require("test.unit.support.core")
local cpu = require("test.unit.support.cpu")
local hostile = require("test.unit.support.hostile")
local support = require("test.unit.support.config")

local SIZE = 30000
-- Each is some thirty times what they take, and a small part of what they took.
local MAX_STRETCH_SECONDS = 0.5
local MAX_BUILD_SECONDS = 1
local MAX_KILOBYTES = 150 * 1024

local MAX_ERRORS = 100
local MAX_ANSWER = (MAX_ERRORS + 1) * 600

--- Parses a body; the longest stretch of time in which it let nobody else go on, and the memory.
local function measure(body)
    local longest, last = 0, os.clock()
    local function pause()
        longest, last = math.max(longest, os.clock() - last), os.clock()
    end
    collectgarbage()
    local before = collectgarbage("count")
    collectgarbage("stop")
    local snapshot, errors = config.parse(body, nil, support.registry, { pause = pause })
    local grown = collectgarbage("count") - before
    collectgarbage("restart")
    pause()
    return snapshot, errors, longest, grown
end

describe("a hostile file:", function()
    local names = {}
    for name in pairs(hostile.bodies) do
        names[#names + 1] = name
    end
    table.sort(names)

    for _, name in ipairs(names) do
        it(name, function()
            local body = hostile.bodies[name](SIZE)
            local snapshot, errors, longest, grown
            local least = math.huge
            for _ = 1, 5 do
                snapshot, errors, longest, grown = measure(body)
                least = math.min(least, longest)
                if least < MAX_STRETCH_SECONDS then
                    break
                end
            end
            assert.is_true(least < MAX_STRETCH_SECONDS, least .. " s without a pause")
            assert.is_true(grown < MAX_KILOBYTES, grown .. " KB")
            if errors then
                assert.is_true(#errors <= MAX_ERRORS + 1, #errors .. " errors")
                assert.is_true(#config.format_errors(errors) <= MAX_ANSWER)
                return
            end
            local routes = {}
            for i, route in ipairs(snapshot.routes) do
                routes[i] = core.route(route, i - 1, i)
            end
            local seconds = cpu.least(MAX_BUILD_SECONDS, function()
                assert(core.build(routes))
            end)
            assert.is_true(seconds < MAX_BUILD_SECONDS, seconds .. " s to build an image")
        end)
    end

    it(
        "a hundred errors are all, of a hundred and one the last says that there are more",
        function()
            for count, last in pairs({
                [100] = "services[99].host: required field missing",
                [101] = "stopped after 100 errors",
                [5000] = "stopped after 100 errors",
            }) do
                local _, errors = config.parse(
                    '{"_format_version":"3.0","services":[' .. ("{},"):rep(count - 1) .. "{}]}",
                    "json",
                    support.registry
                )
                assert.equal(math.min(count, 101), #errors)
                assert.equal(last, config.format_error(errors[#errors]))
            end
        end
    )

    it("so are those of one entity", function()
        local tags = ("'a,b',"):rep(300)
        local _, errors = config.parse(
            "_format_version: '3.0'\nservices: [{host: a, tags: [" .. tags .. "]}]",
            "yaml",
            support.registry
        )
        assert.equal(101, #errors)
        assert.equal("stopped after 100 errors", errors[101].message)
    end)

    it("what is quoted is cut, between characters", function()
        local _, errors = config.parse(
            "_format_version: '3.0'\nservices: [{host: a, name: '" .. ("ä"):rep(5000) .. " '}]",
            "yaml",
            support.registry
        )
        assert.matches("^invalid value '[ä]+%[%.%.%. %d+ bytes %.%.%.%]", errors[1].message)
        assert.matches("only accepted ascii characters are", errors[1].message, 1, true)
        assert.is_true(#errors[1].message < 350)
    end)

    it("what is honest passes: a list of plugins that a thousand routes share", function()
        local lines = { "_ignore:", "- &p [{name: key-auth, config: {key_names: [a, b, c]}}]" }
        lines[#lines + 1] = "routes:"
        for i = 1, 1000 do
            lines[#lines + 1] = ("- {paths: [/%d], plugins: *p}"):format(i)
        end
        assert.equal(1000, #support.parse(table.concat(lines, "\n")).plugins)
    end)
end)

describe("places of errors:", function()
    local function located(text, kind)
        local _, errors = config.parse(text, kind, support.registry)
        return config.format_errors(errors)
    end

    it("the entity by its name, the line of the field", function()
        assert.equal(
            'line 7: services[1] "orders".port: expected an integer\n'
                .. 'line 9: services[1] "orders".routes[0] "x".paths[1]: should start with: '
                .. "/ (fixed path) or ~/ (regex path); write /b\n"
                .. 'line 12: consumers[0] "bob".keyauth_credentials[0].tags[0]: '
                .. "expected a string; write it in quotes",
            located([[
_format_version: "3.0"
services:
- host: a
-
  host: b
  name: orders
  port: x
  routes:
  - {name: x, paths: [/a, b]}
consumers:
- username: bob
  keyauth_credentials: [{key: secret, tags: [1]}]
]])
        )
    end)

    it("a missing field stands where its entity stands", function()
        assert.equal(
            'line 3: services[0] "a".host: required field missing',
            located("_format_version: '3.0'\nservices:\n- name: a\n  port: 1\n")
        )
    end)

    it("keys of any spelling are found", function()
        assert.equal(
            "line 5: routes[0].headers[\"a b\"]: bad header name 'a b', allowed characters are "
                .. "A-Z, a-z, 0-9, '_', and '-'\n"
                .. 'line 6: routes[0].headers["a\\x22]"]: bad header name \'a"]\', allowed '
                .. "characters are A-Z, a-z, 0-9, '_', and '-'",
            located([[
_format_version: "3.0"
routes:
- paths: [/]
  headers:
    a b: [x]
    a"]: [x]
]])
        )
    end)

    it("what comes by an alias stands where its anchor does", function()
        assert.equal(
            "line 3: services[0].host: expected a string; write it in quotes",
            located("_format_version: '3.0'\n_ignore:\n- &a {host: 1}\nservices: [*a]\n")
        )
    end)

    it("JSON has names and no lines; a text that cannot be read as before", function()
        assert.equal(
            'services[0] "a".host: required field missing',
            located('{"_format_version": "3.0", "services": [{"name": "a"}]}')
        )
        assert.equal(
            "line 2, column 4: unknown anchor 'x'\n2 | a: *x\n  |    ^",
            located("b: 1\na: *x\n")
        )
    end)

    it("as fields of their own", function()
        local _, errors =
            config.parse("_format_version: '3.0'\nservices: [{name: a}]", "yaml", support.registry)
        assert.same({
            path = "services[0].host",
            message = "required field missing",
            entity = "a",
            line = 2,
            where = 'services[0] "a".host',
            kind = "services",
            value = { name = "a" },
            field = ".host",
        }, errors[1])
    end)
end)
