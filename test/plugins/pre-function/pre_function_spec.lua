-- pre-function without nginx: which phases a configuration needs, and when its code runs.

local handler = require("plugins.pre-function.handler")
local support = require("test.unit.support.config")

local function errors(config)
    return support.errors("plugins:\n- name: pre-function\n  config: " .. config .. "\n")
end

describe("plugins.pre-function", function()
    -- One for all: functions have what was there when the first of them was compiled.
    local kong = { configuration = { untrusted_lua = "sandbox" } }

    before_each(function()
        rawset(_G, "kong", kong)
        require("compat.kong.tools.sandbox").configuration:clear()
    end)

    after_each(function()
        rawset(_G, "kong", nil)
    end)

    it("needs the phases that have functions", function()
        local null = require("cjson").null
        local config = { access = { "x = 1" }, log = { "x = 1" }, rewrite = {}, certificate = null }
        assert.same({ "access", "log" }, handler.lua_phases(config))
        assert.same({}, handler.lua_phases({}))
    end)

    it("calls a function that a chunk returns, and makes it once", function()
        local seen = {}
        function kong.note(what)
            seen[#seen + 1] = what
        end
        local made = "kong.note('made') local n = 0 return function() n = n + 1 kong.note(n) end"
        local conf = { access = { made, "kong.note('each')" } }
        for _ = 1, 3 do
            handler:access(conf)
        end
        assert.same({ "made", 1, "each", 2, "each", 3, "each" }, seen)
        -- Another configuration has functions of its own.
        handler:access({ access = { made } })
        assert.same({ "made", 1 }, { seen[8], seen[9] })
    end)

    it("runs a chunk again that has thrown", function()
        local failing = true
        local passed = 0
        function kong.check()
            if failing then
                error("not yet")
            end
        end
        function kong.pass()
            passed = passed + 1
        end
        local conf = { access = { "kong.check() return function() kong.pass() end" } }
        assert.has_error(function()
            handler:access(conf)
        end)
        failing = false
        handler:access(conf)
        assert.equal(1, passed)
    end)

    it("refuses code that does not compile, and a configuration without any", function()
        assert.truthy(errors("{access: ['print(']}"):find("error parsing pre-function: ", 1, true))
        assert.truthy(errors("{access: []}"):find("at least one of these fields", 1, true))
        assert.equal("", errors("{access: ['error()']}"))
    end)
end)
