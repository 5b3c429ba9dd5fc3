-- The dependency rule: who may require whom (test/house/rules.lua), and that
-- docs/house.svg shows it as it is.

local draw = require("test.house.draw")
local files = require("test.house.files")
local lexer = require("test.house.lexer")
local plugin_folders = require("test.house.plugin_folders")
local registry = require("gateway.plugin.registry")
local rules = require("test.house.rules")
local scan = require("test.house.scan")

describe("the house", function()
    local house = scan.read(".")

    it("keeps its rules", function()
        assert.same({}, scan.violations(house, rules))
    end)

    it("has been read: some known lines are there", function()
        local modules = house.modules
        assert.is_truthy(modules["gateway.proxy.entities"].uses["gateway.proxy.image"])
        assert.is_truthy(modules["gateway.plugin.registry"].uses["plugins.key-auth.handler"])
        assert.is_truthy(modules["plugins.http-log.handler"].uses["gateway.pdk"])
        assert.is_nil(modules["gateway.plugin.registry"].uses["plugins.file-log.path"])
    end)

    it("is drawn in docs/house.svg as it is", function()
        local shown, expected = draw.shown(files.read("docs/house.svg")), draw.expected(house)
        local differences = {}
        for title in pairs(expected) do
            if not shown[title] then
                differences[#differences + 1] = "lacks " .. title
            end
        end
        for title in pairs(shown) do
            if not expected[title] then
                differences[#differences + 1] = "still shows " .. title
            end
        end
        table.sort(differences)
        assert.same({}, differences, "draw it anew: luajit test/house/draw.lua")
    end)

    -- The two, and what `make docs` runs.
    local WRITERS = {
        ["cli/options/kong_reference.lua"] = true,
        ["cli/options/manual.lua"] = true,
        ["cli/options/reference.lua"] = true,
        ["cli/terminal/console.lua"] = true,
        ["cli/terminal/plain.lua"] = true,
    }

    it("writes what people read in one place", function()
        local found = {}
        for _, path in ipairs(scan.files("cli")) do
            local text = path:find("%.lua$") and files.read(path) or ""
            for _, writer in ipairs({ "%f[%w]print%(", "io%.write", "io%.std%a+:write" }) do
                found[#found + 1] = text:find(writer) and not WRITERS[path] and path or nil
            end
        end
        assert.same({}, found, "cli.terminal.console writes")
    end)

    it("has of each plugin a folder of Kong's shape, a page and a folder of tests", function()
        local paths = {}
        for _, folder in ipairs({ "plugins", "docs/plugins", "test/plugins" }) do
            for _, path in ipairs(scan.files(folder)) do
                paths[#paths + 1] = path
            end
        end
        assert.same({}, plugin_folders.complaints(paths, rules.plugin))
    end)

    it("says the name of a plugin in its folder only", function()
        local rule, sources = rules.plugin_names, {}
        for path, text in scan.sources(rule.folders) do
            sources[path] = text
        end
        for _, path in ipairs(rule.files) do
            sources[path] = files.read(path)
        end
        assert.same({}, plugin_folders.names_said(sources, registry.bundled(), rule))
    end)

    it("says why where it may name one", function()
        for _, row in ipairs(rules.plugin_names.may) do
            assert.is_truthy(row.why and files.exists(row.path), row.path)
        end
    end)

    it("is described the same way each time", function()
        assert.equal(draw.dot(house), draw.dot(scan.read(".")))
    end)
end)

--- The rules that sources break, with the sound ones of a small house beside.
local function violations(sources)
    local all = {
        ["cli/main.lua"] = 'require("gateway.config")',
        ["gateway/init.lua"] = 'require("gateway.plugin.registry") require("gateway.schema")',
        ["gateway/config/init.lua"] = 'require("gateway.schema.typedefs")',
        ["gateway/schema/typedefs.lua"] = "return {}",
        ["gateway/schema/init.lua"] = "return {}",
        ["gateway/pdk/init.lua"] = "return {}",
        ["gateway/plugin/registry.lua"] = 'pcall(require, "plugins." .. name .. ".handler")',
        ["plugins/one/handler.lua"] = 'require "gateway.pdk" require("gateway.schema.typedefs")',
        ["plugins/two/handler.lua"] = 'require("plugins.two.part") require("sluice.timer")',
        ["plugins/two/part.lua"] = "return {}",
        ["lib/sluice/timer.lua"] = 'require("ffi")',
    }
    for file, source in pairs(sources) do
        all[file] = source
    end
    return (scan.violations(scan.build(all), rules))
end

describe("the scan of the house", function()
    it("has nothing against a house in order", function()
        assert.same({}, violations({}))
    end)

    it("names the file, the line and the module of a require that runs upwards", function()
        assert.same({
            "gateway/schema/init.lua:2 requires gateway.config: "
                .. "runs upwards from gateway.schema to gateway.config",
        }, violations({ ["gateway/schema/init.lua"] = '\nrequire("gateway.config")' }))
        assert.same({
            "lib/sluice/timer.lua:1 requires gateway.schema: "
                .. "runs upwards from lib to gateway.schema",
        }, violations({ ["lib/sluice/timer.lua"] = 'require("gateway.schema")' }))
    end)

    it("finds each way to write a require", function()
        for _, source in ipairs({
            'local c = require("gateway.config")',
            "require'gateway.config'.load()",
            "pcall(require, [[gateway.config]])",
            'if x then y = require( -- why\n "gateway.config") end',
        }) do
            local found = violations({ ["gateway/schema/init.lua"] = source })
            assert.equal(1, #found, source)
            assert.matches("requires gateway.config", found[1], 1, true)
        end
    end)

    it("leaves comments, strings and other names alone", function()
        for _, source in ipairs({
            '-- require("gateway.config")',
            '--[==[ require("gateway.config") ]==]',
            [[local s = "require('gateway.config')"]],
            "local s = [[require('gateway.config')]]",
            'parser:require("gateway.config")',
            'requires("gateway.config")',
        }) do
            assert.same({}, violations({ ["gateway/schema/init.lua"] = source }), source)
        end
    end)

    it("keeps plugins to their interface and out of each other", function()
        local found = violations({
            ["plugins/one/handler.lua"] = 'require("gateway.pdk") require("gateway.schema")',
        })
        assert.matches(
            "plugins/one/handler.lua:1 requires gateway.schema: a plugin uses",
            found[1],
            1,
            true
        )
        found = violations({
            ["plugins/one/handler.lua"] = 'require("plugins.two.part") require("gateway.pdk")',
        })
        assert.matches("rooms of one floor, plugins.one and plugins.two", found[1], 1, true)
    end)

    it("lets only the registry load plugins", function()
        local found = violations({ ["gateway/init.lua"] = 'require("plugins.one.handler")' })
        assert.matches(
            "init.lua:1 requires plugins.one.handler: only the plugin registry",
            found[1],
            1,
            true
        )
    end)

    it("keeps the command line to the gateway's configuration", function()
        local found = violations({ ["cli/main.lua"] = 'require("gateway.schema")' })
        assert.matches(
            "cli/main.lua:1 requires gateway.schema: the command line",
            found[1],
            1,
            true
        )
    end)

    it("lets nobody see the whole gateway", function()
        local found = violations({ ["gateway/pdk/init.lua"] = 'require("gateway")' })
        assert.matches("gateway/pdk/init.lua:1 requires gateway: runs upwards", found[1], 1, true)
    end)

    it("wants a floor for each file of the gateway", function()
        local found = violations({
            ["gateway/init.lua"] = 'require("gateway.new") require("gateway.plugin.registry")',
            ["gateway/new.lua"] = 'require("gateway.schema")',
        })
        assert.same({ "gateway/new.lua has no floor in test/house/rules.lua" }, found)
    end)

    it("finds cycles, also within a room", function()
        assert.same(
            { "cycle: gateway.schema -> gateway.schema.a -> gateway.schema.b -> gateway.schema" },
            violations({
                ["gateway/schema/init.lua"] = 'require("gateway.schema.a")',
                ["gateway/schema/a.lua"] = 'require("gateway.schema.b")',
                ["gateway/schema/b.lua"] = 'require("gateway.schema")',
            })
        )
    end)

    it("finds modules that nobody requires, and required ones that are not there", function()
        assert.same(
            { "gateway/schema/lost.lua is required by nothing" },
            violations({ ["gateway/schema/lost.lua"] = "return {}" })
        )
        assert.same(
            { "gateway/pdk/init.lua:1 requires gateway.gone: no such module" },
            violations({ ["gateway/pdk/init.lua"] = 'require("gateway.gone")' })
        )
    end)

    it("does not accept a name that it cannot know", function()
        assert.same(
            { "gateway/pdk/init.lua:1 requires a name that the scan cannot know" },
            violations({ ["gateway/pdk/init.lua"] = "require(name)" })
        )
    end)

    it("draws a forbidden line in red", function()
        local picture = draw.dot(scan.build({
            ["gateway/entities/init.lua"] = 'require("gateway.config")',
            ["gateway/config/init.lua"] = 'require("gateway.schema")',
            ["gateway/schema/init.lua"] = 'require("sluice.file")',
            ["lib/sluice/file.lua"] = "",
        }))
        assert.matches('"gateway.entities" -> "gateway.config" [color="red"', picture, 1, true)
        assert.matches('"gateway.config" -> "gateway.schema"\n', picture, 1, true)
    end)
end)

describe("a plugin's folders", function()
    local function complaints(without, more)
        local paths = { more }
        for _, path in ipairs({
            "plugins/one/handler.lua",
            "plugins/one/schema.lua",
            "docs/plugins/index.md",
            "docs/plugins/one.md",
            "test/plugins/conftest.py",
            "test/plugins/one/facts.json",
            "test/plugins/one/helper.py",
            "test/plugins/one/test_one.py",
        }) do
            paths[#paths + 1] = path ~= without and path or nil
        end
        return plugin_folders.complaints(paths, rules.plugin)
    end

    it("are complete where each file is there", function()
        assert.same({}, complaints())
        for _, test in ipairs({ "one_spec.lua", "decide_one.c", "test_other.py" }) do
            assert.same({}, complaints("test/plugins/one/test_one.py", "test/plugins/one/" .. test))
        end
    end)

    it("lack a file", function()
        for _, file in ipairs({
            "plugins/one/handler.lua",
            "plugins/one/schema.lua",
            "docs/plugins/one.md",
            "test/plugins/one/facts.json",
        }) do
            assert.same({ file .. " is missing" }, complaints(file))
        end
    end)

    it("lack a test that a runner finds", function()
        local none = { "test/plugins/one has no test (test_*.py, *_spec.lua, *.c)" }
        assert.same(none, complaints("test/plugins/one/test_one.py"))
        for _, other in ipairs({ "one/one.py", "one/one_spec.txt", "test_one.py", "one/a/b.c" }) do
            local found = complaints("test/plugins/one/test_one.py", "test/plugins/" .. other)
            assert.same(none, found, other)
        end
    end)

    it("of tests are those of plugins", function()
        local found = complaints(nil, "test/plugins/two/test_two.py")
        assert.same({ "test/plugins/two: no such plugin" }, found)
    end)
end)

describe("a plugin's name", function()
    local NAMES = { "cors", "http-log", "key-auth" }

    -- What is said of one file, or of several.
    local function said(sources, may, meanings)
        if type(sources) == "string" then
            sources = { ["gateway/a.lua"] = sources }
        end
        return plugin_folders.names_said(sources, NAMES, {
            may = may or {},
            other_meanings = meanings or {},
        })
    end

    it("is found in each spelling, in code, strings and comments", function()
        for line, token in pairs({
            ['if name == "key-auth" then'] = "key-auth",
            ["-- as key-auths are"] = "key-auths",
            ["local has_key_auth = true"] = "has_key_auth",
            ["ngx_http_sluice_key_auth_module"] = "ngx_http_sluice_key_auth_module",
            ["#define SLUICE_KEY_AUTH_SIZE  1"] = "SLUICE_KEY_AUTH_SIZE",
            ["local handler = require('plugins.key-auth.handler')"] = "key-auth",
        }) do
            assert.same({ "gateway/a.lua:2: " .. token }, said("\n" .. line .. "\n"), line)
        end
        for _, line in ipairs({ "monkey_auth", "key_author", "key author", "KeyAuth", "key" }) do
            assert.same({}, said(line), line)
        end
    end)

    it("of one word is found where it is no ordinary word", function()
        for line, token in pairs({
            ['if name == "cors" then'] = "cors",
            ["{ 'cors_rules' }"] = "cors_rules",
            ["as the plugin cors has it"] = "cors",
            ["include plugins/cors/x.h"] = "cors",
            ["sluice_cors_decide(data)"] = "sluice_cors_decide",
            ["SLUICE_CORS_ANY"] = "SLUICE_CORS_ANY",
            ["ngx_http_sluice_plugin_cors"] = "ngx_http_sluice_plugin_cors",
        }) do
            assert.same({ "gateway/a.lua:1: " .. token }, said(line), line)
        end
        for _, line in ipairs({ "without CORS", "cors_codes", "sluice_be_cors", "'no cors'" }) do
            assert.same({}, said(line), line)
        end
    end)

    it("that means something else is found with dashes, and of a plugin", function()
        local meanings = { http_log = "nginx's" }
        local lines = "NGX_HTTP_LOG_PHASE\nsluice_http_log\n'http-log'\nplugin_http_log\n"
        local found = { "gateway/a.lua:3: http-log", "gateway/a.lua:4: plugin_http_log" }
        assert.same(found, said(lines, nil, meanings))
        assert.same({ "http_log has no other meaning" }, said("", nil, meanings))
    end)

    it("may stand in its own folder, and not in another plugin's", function()
        local found = said({
            ["plugins/cors/handler.lua"] = '"cors" "http-log"',
            ["plugins/key-auth/handler.lua"] = "key-auth",
        })
        assert.same({ "plugins/cors/handler.lua:1: http-log" }, found)
    end)

    it("may stand where a rule says so, as long as it does", function()
        local sources = {
            ["cli/a.lua"] = "key_auth_memory http-log",
            ["compat/b/c.lua"] = "key-auth http-log",
        }
        assert.same(
            { "cli/a.lua:1: http-log" },
            said(
                sources,
                { { path = "cli/a.lua", says = { "key_auth_memory" } }, { path = "compat/" } }
            )
        )
        local stale = said(sources, {
            { path = "cli/a.lua" },
            { path = "compat/", says = { "http-log", "key-auth", "cors" } },
            { path = "lib/" },
        })
        assert.same({
            "compat/: nothing there says cors",
            "lib/: nothing there says a plugin's name",
        }, stale)
    end)
end)

describe("the lexer of the house", function()
    it("tells names, strings, comments and their lines", function()
        local seen = {}
        for _, token in ipairs(lexer.tokens("a = 'b\\'c' -- d\n--[[e\nf]] g [=[\nh]=]..1")) do
            seen[#seen + 1] = ("%s %q %d-%d"):format(
                token.kind,
                token.text,
                token.line,
                token.last_line
            )
        end
        assert.same({
            'name "a" 1-1',
            'sign "=" 1-1',
            [[string "b\\'c" 1-1]],
            'comment " d" 1-1',
            'comment "e\\\nf" 2-3',
            'name "g" 3-3',
            'string "\\\nh" 3-4',
            'sign ".." 4-4',
            'number "1" 4-4',
        }, seen)
    end)
end)
