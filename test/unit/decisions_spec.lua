-- What plugins decide of requests, judged without nginx: configurations as their pack() writes
-- them, through the core as a library (judge.h). test/core/decide*.c has the hostile requests.

local files = require("test.house.files")
local registry = require("gateway.plugin.registry")
local support = require("test.unit.support.judge")

local judge, lib = support.judge, support.lib

--- What stands in a plugin's folder of tests, decisions.lua: `cases`, each a configuration, what is
-- given of a request (test/unit/support/judge.lua; `own = "compiled"`: what `compiled()` makes),
-- what is decided, and what stands in the result.
local function of_plugin(name)
    local path = ("test/plugins/%s/decisions.lua"):format(name)
    return files.exists(path) and require(("test.plugins.%s.decisions"):format(name)) or nil
end

local function given_of(plugin, given)
    local found = {}
    for name, value in pairs(given) do
        found[name] = value
    end
    found.own = given.own == "compiled" and plugin.compiled() or nil
    return found
end

describe("a request without nginx", function()
    it("is judged by each plugin", function()
        for _, name in ipairs(registry.bundled()) do
            local plugin = of_plugin(name) or { cases = {} }
            for i, case in ipairs(plugin.cases) do
                local config, given, expected, result = unpack(case, 1, 4)
                local shown = ("%s, case %d"):format(name, i)
                local ok, decision, found = pcall(judge, name, config, given_of(plugin, given))
                assert.is_true(ok, ("%s: %s"):format(shown, tostring(decision)))
                assert.equal(expected, decision, shown)
                for field, value in pairs(result or {}) do
                    assert.same(value, found[field], ("%s: %s"):format(shown, field))
                end
            end
        end
    end)

    it("has cases of each plugin, or a plugin in Lua has tests of its own", function()
        local lacking = {}
        for _, name in ipairs(registry.bundled()) do
            local own = ("test/plugins/%s/%s_spec.lua"):format(name, (name:gsub("-", "_")))
            local plugin = of_plugin(name)
            local has_cases = plugin and #plugin.cases > 0
            if not has_cases and not files.exists(own) then
                lacking[#lacking + 1] = ("write test/plugins/%s/decisions.lua"):format(name)
            end
        end
        assert.same({}, lacking)
    end)

    it("has no judge of another name, nor of other bytes", function()
        local decision, rc = judge("no-such", "", {})
        assert.is_nil(decision)
        assert.equal(lib.SLUICE_CORE_NONE, rc)
        decision, rc = judge("key-auth", "\1", {})
        assert.is_nil(decision)
        assert.equal(lib.SLUICE_CORE_BAD, rc)
    end)
end)
