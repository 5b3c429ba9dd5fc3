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

    -- Where a plugin's name may stand outside of its folder, and why.
    local MAY_NAME = {
        ["cli/options/init.lua"] = "the help says which plugin a setting is for",
        ["gateway/entities/ca_certificates.lua"] = "a description for users",
        ["gateway/entities/consumer_groups.lua"] = "an example for users",
        ["gateway/entities/plugins.lua"] = "an example for users",
        ["gateway/entities/vaults.lua"] = "an example for users",
    }

    it("says the name of a plugin in its folder only", function()
        local found, met = {}, {}
        for _, module in pairs(house.modules) do
            for _, token in ipairs(module.file:match("^plugins/") and {} or module.code or {}) do
                for _, name in ipairs(registry.bundled()) do
                    local pattern = "%f[%w_-]" .. name:gsub("%-", "%%-") .. "%f[^%w_-]"
                    if token.kind == "string" and token.text:find(pattern) then
                        met[module.file] = true
                        local line = ("%s:%d: %s"):format(module.file, token.line, name)
                        found[#found + 1] = not MAY_NAME[module.file] and line or nil
                    end
                end
            end
        end
        for file in pairs(MAY_NAME) do
            found[#found + 1] = not met[file] and file .. " names none" or nil
        end
        assert.same({}, found)
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
