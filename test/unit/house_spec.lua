-- The dependency rule: who may require whom (test/house/rules.lua), and that
-- docs/house.svg shows it as it is.

local draw = require("test.house.draw")
local lexer = require("test.house.lexer")
local rules = require("test.house.rules")
local scan = require("test.house.scan")

describe("the house", function()
    local house = scan.read(".")

    it("keeps its rules", function()
        local found, idle_debts = scan.violations(house, rules)
        assert.same({}, found)
        assert.same({}, idle_debts)
    end)

    it("has been read: some known lines are there", function()
        local modules = house.modules
        assert.is_truthy(modules["gateway.proxy.entities"].uses["gateway.proxy.image"])
        assert.is_truthy(modules["gateway.plugin.registry"].uses["plugins.key-auth"])
        assert.is_truthy(modules["plugins.http-log"].uses["gateway.plugin.pdk"])
        assert.is_nil(modules["gateway.plugin.registry"].uses["plugins.key-auth.schema"])
    end)

    it("is drawn in docs/house.svg as it is", function()
        local file = assert(io.open("docs/house.svg"))
        local shown, expected = draw.shown(file:read("*a")), draw.expected(house)
        file:close()
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

    it("is described the same way each time", function()
        assert.equal(draw.dot(house), draw.dot(scan.read(".")))
    end)
end)

--- The rules that sources break, with the sound ones of a small house beside.
local function violations(sources)
    local all = {
        ["cli/main.lua"] = 'require("gateway.config")',
        ["gateway/init.lua"] = 'require("gateway.plugin.registry") require("gateway.router")',
        ["gateway/config/init.lua"] = 'require("gateway.schema.typedefs")',
        ["gateway/schema/typedefs.lua"] = "return {}",
        ["gateway/router/init.lua"] = "return {}",
        ["gateway/plugin/pdk.lua"] = "return {}",
        ["gateway/plugin/registry.lua"] = 'local ok = pcall(require, "plugins." .. name)',
        ["plugins/one.lua"] = 'require "gateway.plugin.pdk" require("gateway.schema.typedefs")',
        ["plugins/two/init.lua"] = 'require("plugins.two.part") require("sluice.timer")',
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
            "gateway/router/init.lua:2 requires gateway.config: "
                .. "runs upwards from gateway.router to gateway.config",
        }, violations({ ["gateway/router/init.lua"] = '\nrequire("gateway.config")' }))
        assert.same({
            "lib/sluice/timer.lua:1 requires gateway.router: "
                .. "runs upwards from lib to gateway.router",
        }, violations({ ["lib/sluice/timer.lua"] = 'require("gateway.router")' }))
    end)

    it("finds each way to write a require", function()
        for _, source in ipairs({
            'local c = require("gateway.config")',
            "require'gateway.config'.load()",
            "pcall(require, [[gateway.config]])",
            'if x then y = require( -- why\n "gateway.config") end',
        }) do
            local found = violations({ ["gateway/router/init.lua"] = source })
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
            assert.same({}, violations({ ["gateway/router/init.lua"] = source }), source)
        end
    end)

    it("keeps plugins to their interface and out of each other", function()
        local found = violations({
            ["plugins/one.lua"] = 'require("gateway.plugin.pdk") require("gateway.router")',
        })
        assert.matches(
            "plugins/one.lua:1 requires gateway.router: a plugin uses",
            found[1],
            1,
            true
        )
        found = violations({
            ["plugins/one.lua"] = 'require("plugins.two.part") require("gateway.plugin.pdk")',
        })
        assert.matches("rooms of one floor, plugins.one and plugins.two", found[1], 1, true)
    end)

    it("lets only the registry load plugins", function()
        local found = violations({ ["gateway/init.lua"] = 'require("plugins.one")' })
        assert.matches(
            "init.lua:1 requires plugins.one: only the plugin registry",
            found[1],
            1,
            true
        )
    end)

    it("keeps the command line to the gateway's configuration", function()
        local found = violations({ ["cli/main.lua"] = 'require("gateway.router")' })
        assert.matches(
            "cli/main.lua:1 requires gateway.router: the command line",
            found[1],
            1,
            true
        )
    end)

    it("lets nobody see the whole gateway", function()
        local found = violations({ ["gateway/plugin/pdk.lua"] = 'require("gateway")' })
        assert.matches("gateway/plugin/pdk.lua:1 requires gateway: runs upwards", found[1], 1, true)
    end)

    it("wants a floor for each file of the gateway", function()
        local found = violations({
            ["gateway/init.lua"] = 'require("gateway.new") require("gateway.plugin.registry")',
            ["gateway/new.lua"] = 'require("gateway.router")',
        })
        assert.same({ "gateway/new.lua has no floor in test/house/rules.lua" }, found)
    end)

    it("finds cycles, also within a room", function()
        assert.same(
            { "cycle: gateway.router -> gateway.router.a -> gateway.router.b -> gateway.router" },
            violations({
                ["gateway/router/init.lua"] = 'require("gateway.router.a")',
                ["gateway/router/a.lua"] = 'require("gateway.router.b")',
                ["gateway/router/b.lua"] = 'require("gateway.router")',
            })
        )
    end)

    it("finds modules that nobody requires, and required ones that are not there", function()
        assert.same(
            { "gateway/router/lost.lua is required by nothing" },
            violations({ ["gateway/router/lost.lua"] = "return {}" })
        )
        assert.same(
            { "gateway/plugin/pdk.lua:1 requires gateway.gone: no such module" },
            violations({ ["gateway/plugin/pdk.lua"] = 'require("gateway.gone")' })
        )
    end)

    it("does not accept a name that it cannot know", function()
        assert.same(
            { "gateway/plugin/pdk.lua:1 requires a name that the scan cannot know" },
            violations({ ["gateway/plugin/pdk.lua"] = "require(name)" })
        )
    end)

    it("draws a forbidden line in red", function()
        local picture = draw.dot(scan.build({
            ["gateway/router/init.lua"] = 'require("gateway.config")',
            ["gateway/config/init.lua"] = 'require("gateway.schema")',
            ["gateway/schema/init.lua"] = 'require("sluice.file")',
            ["lib/sluice/file.lua"] = "",
        }))
        assert.matches('"gateway.router" -> "gateway.config" [color="red"', picture, 1, true)
        assert.matches('"gateway.config" -> "gateway.schema"\n', picture, 1, true)
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
