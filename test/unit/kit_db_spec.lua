--- `kong.db` without nginx: what needs no configuration.

local cache_key = require("gateway.entities.cache_key")
local cjson = require("cjson")
local entities = require("gateway.entities")
local kit = require("gateway.kit")
local layout = require("gateway.store.layout")

describe("kong.db.<entity>:cache_key", function()
    local db = kit.install().db

    it("has an empty piece for each value that is missing, and goes on behind it", function()
        assert.equal("plugins:key-auth:::::", db.plugins:cache_key("key-auth"))
        assert.equal("plugins:key-auth:::c::", db.plugins:cache_key("key-auth", nil, nil, "c"))
        local key = db.plugins:cache_key("key-auth", cjson.null, "s", nil, 5, "w")
        assert.equal("plugins:key-auth::s::5:w", key)
    end)

    it("has no workspace where it is the only one", function()
        local key = db.plugins:cache_key("a", nil, nil, nil, nil, cache_key.WORKSPACE)
        assert.equal("plugins:a:::::", key)
    end)

    it("is one of those that the writer raises", function()
        local of = layout.by_kind(layout.derive(entities.stored())).targets
        for key, entity in pairs({
            ["targets:u:host:1::::"] = { id = "i", upstream = { id = "u" }, target = "host:1" },
            ["targets::host:1::::"] = { id = "i", upstream = cjson.null, target = "host:1" },
            ["targets:i:::::"] = { id = "i" },
        }) do
            assert.equal(key, db.targets:cache_key(entity))
            local raised = {}
            for _, each in ipairs(cache_key.all(of, entity)) do
                raised[each] = true
            end
            assert.is_true(raised[key])
        end
    end)

    it("is of a text or an entity", function()
        for _, value in ipairs({ 3, true }) do
            local ok, err = pcall(function()
                return (db.plugins:cache_key(value))
            end)
            assert.is_false(ok)
            assert.matches("kit_db_spec.lua:%d+: key must be a string or an entity table$", err)
        end
        assert.has_error(function()
            db.plugins:cache_key()
        end, "key must be a string or an entity table")
    end)
end)
