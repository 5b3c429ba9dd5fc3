-- post-function without nginx: it is pre-function behind all other plugins.

local handler = require("plugins.post-function.handler")
local registry = require("gateway.plugin.registry")

describe("plugins.post-function", function()
    it("runs last, and pre-function before whatever can refuse", function()
        local plugins = assert(registry.load({ "bundled" })):list()
        assert.equal("post-function", plugins[#plugins].name)
        for i, plugin in ipairs(plugins) do
            if plugin.name == "pre-function" then
                assert.truthy(i <= 2)
            end
        end
    end)

    it("has the phases of its own configuration", function()
        assert.same({ "body_filter" }, handler.lua_phases({ body_filter = { "local x" } }))
        assert.equal(-1000, handler.PRIORITY)
    end)
end)
