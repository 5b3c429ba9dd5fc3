--- What is kept in place of what a file gives, as schemas written for Kong say it.

local config = require("gateway.config")
local registry = require("gateway.plugin.registry")
local support = require("test.unit.support.config")

local function kept(secret, owner)
    if secret == "bad" then
        return nil, "no such secret"
    end
    return { secret = secret .. "@" .. owner }
end

package.preload["kong.plugins.hasher.handler"] = function()
    return { VERSION = "1.0.0", PRIORITY = 1 }
end
package.preload["kong.plugins.hasher.schema"] = function()
    local secret = { secret = { type = "string" } }
    return {
        name = "hasher",
        fields = { { config = { type = "record", fields = { secret } } } },
        transformations = {
            {
                input = { "config.secret" },
                on_write = function(given)
                    local made, err = kept(given, "all")
                    return made and { config = made }, err
                end,
            },
        },
    }
end
package.preload["kong.plugins.hasher.daos"] = function()
    return {
        {
            name = "badges",
            primary_key = { "id" },
            endpoint_key = "name",
            fields = {
                { id = { type = "string", uuid = true, auto = true } },
                { name = { type = "string", unique = true } },
                { consumer = { type = "foreign", reference = "consumers" } },
                { secret = { type = "string" } },
            },
            transformations = {
                { input = { "secret" }, needs = { "consumer.id" }, on_write = kept },
            },
        },
    }
end

local ID = "00000000-0000-4000-8000-000000000001"

local FILE = [[
_format_version: "3.0"
_transform: %s
consumers:
- username: ann
  id: ]] .. ID .. [[

  badges:
  - name: one
    secret: %s
    %s
plugins:
- name: hasher
  config: { secret: %s }
]]

describe("what is kept of a file", function()
    local plugins = assert(registry.load({ "bundled", "hasher" }))

    local function parse(...)
        return config.parse(FILE:format(...), "yaml", plugins)
    end

    local function secrets(...)
        local snapshot = assert(parse(...))
        return { snapshot.badges[1].secret, snapshot.plugins[1].config.secret }
    end

    it("is made once references are ids, of plugins' configurations, too", function()
        assert.same({ "s@" .. ID, "t@all" }, secrets("true", "s", "", "t"))
    end)

    it("is what the file has, where it says so", function()
        assert.same({ "s", "t" }, secrets("false", "s", "", "t"))
        assert.same({ "s", "t@all" }, secrets("true", "s", "_transform: false", "t"))
        assert.same({ "s@" .. ID, "t" }, secrets("false", "s", "_transform: true", "t"))
    end)

    it("refuses the file where it cannot be made", function()
        local snapshot, errors = parse("true", "bad", "", "t")
        assert.is_nil(snapshot)
        assert.equal(
            "consumers[0].badges[0]: transformation failed: no such secret",
            support.lines(errors)
        )
        snapshot, errors = parse("true", "s", "", "bad")
        assert.is_nil(snapshot)
        assert.equal("plugins[0]: transformation failed: no such secret", support.lines(errors))
    end)

    it("wants all that it is made of", function()
        local text = '_format_version: "3.0"\nbadges: [{ name: one, secret: s }]'
        local snapshot, errors = config.parse(text, "yaml", plugins)
        assert.is_nil(snapshot)
        assert.equal(
            "badges[0]: all or none of these fields must be set: 'secret', 'consumer.id'",
            support.lines(errors)
        )
    end)
end)
