-- Which fields are secrets: gateway/schema/secrets.lua.

local differences = require("gateway.plan.differences")
local entities = require("gateway.entities")
local json = require("gateway.schema.json")
local schema = require("gateway.schema")
local secrets = require("gateway.schema.secrets")
local support = require("test.unit.support.store")

-- Calls `visit(path, field, name)` for all fields below a definition; of an item of a list or map
-- the name is nil.
local function walk(path, definition, visit)
    for _, entry in ipairs(definition.fields or {}) do
        local name, field = next(entry)
        local at = path .. "." .. name
        visit(at, field, name)
        for _, part in ipairs({ field, field.elements or {}, field.values or {} }) do
            if part ~= field and part.type then
                visit(at .. ".*", part, nil)
            end
            walk(at, part, visit)
        end
    end
end

-- The same of every kind of entity and every bundled plugin.
local function walk_all(visit)
    for _, kind in ipairs(entities.kinds) do
        walk(kind, entities.get(kind), visit)
    end
    for _, plugin in ipairs(support.registry:list()) do
        walk(plugin.name, plugin.schema, visit)
    end
end

describe("a field", function()
    it("of ours is a secret because its schema says so, not because of its name", function()
        local undecided = {}
        walk_all(function(path, field, name)
            if secrets.is_secret(field, name) ~= secrets.is_secret(field) then
                undecided[#undecided + 1] = path
            end
        end)
        assert.same({}, undecided)
    end)

    it("of ours is one of these", function()
        local found = {}
        walk_all(function(path, field)
            found[#found + 1] = secrets.is_secret(field) and path or nil
        end)
        table.sort(found)
        assert.same({
            "basicauth_credentials.password",
            "certificates.key",
            "certificates.key_alt",
            "hmacauth_credentials.secret",
            "http-log.config.headers.*",
            "http-log.config.http_endpoint",
            "jwt_secrets.secret",
            "keyauth_credentials.key",
            "keys.jwk",
            "keys.pem.private_key",
            "rate-limiting.config.redis.cloud_authentication.aws_secret_access_key",
            "rate-limiting.config.redis.cloud_authentication.azure_client_secret",
            "rate-limiting.config.redis.cloud_authentication.gcp_service_account_json",
            "rate-limiting.config.redis.password",
            "rate-limiting.config.redis.sentinel_password",
        }, found)
    end)

    it("of others' plugins is one by its name where the schema does not say", function()
        local text = { type = "string" }
        for _, name in ipairs({ "password", "client_secret", "Authorization", "X-Token" }) do
            assert.is_true(secrets.is_secret(text, name), name)
            assert.is_true(secrets.is_secret(nil, name), name)
        end
        assert.is_true(secrets.is_secret({ type = "string", referenceable = true }, "api_key"))
        assert.is_true(secrets.is_secret({ type = "string", encrypted = true }, "pin"))
        assert.is_true(secrets.is_secret({ type = "integer", secret = true }, "pin"))
        assert.is_false(secrets.is_secret({ type = "string", secret = false }, "cookie_name"))
        assert.is_false(secrets.is_secret({ type = "boolean" }, "hide_credentials"))
        assert.is_false(secrets.is_secret(text, "key_claim_name"))
        assert.is_false(secrets.is_secret(nil, nil))
    end)
end)

describe("a secret", function()
    local text = { type = "string" }
    local definition = {
        name = "example",
        fields = {
            { plain = text },
            { pin = { type = "string", secret = true } },
            { pins = { type = "array", elements = { type = "string", encrypted = true } } },
            { by_name = { type = "map", values = { type = "string", secret = true } } },
            { headers = { type = "map", values = text } },
            { store = { type = "record", fields = { { password = text }, { host = text } } } },
            {
                nodes = {
                    type = "array",
                    elements = { type = "record", fields = { { token = text } } },
                },
            },
            { cookie = { type = "string", secret = false } },
        },
    }

    local function entity(secret)
        return {
            plain = "p",
            pin = secret,
            pins = { secret },
            by_name = { a = secret },
            headers = { Authorization = secret, Accept = "shown" },
            store = { password = secret, host = "h" },
            nodes = { { token = secret } },
            cookie = "session",
        }
    end

    it("is in no difference", function()
        for _, pair in ipairs({
            { entity("HIDE-1"), entity("HIDE-2") },
            { {}, entity("HIDE-1") },
            { entity("HIDE-1"), {} },
        }) do
            local shown = json.encode(differences.find(definition, pair[1], pair[2]))
            assert.is_nil(shown:find("HIDE", 1, true), shown)
        end
        local before, after = entity("HIDE-1"), entity("HIDE-1")
        after.cookie = "other"
        assert.same(
            { { field = "cookie", old = "session", new = "other" } },
            differences.find(definition, before, after)
        )
    end)

    it("is a private key wherever it stands", function()
        local key = "-----BEGIN EC PRIVATE KEY-----\nHIDE\n-----END EC PRIVATE KEY-----\n"
        for _, pair in ipairs({ { "p", key }, { key, "p" }, { nil, key } }) do
            local shown = differences.find(definition, { plain = pair[1] }, { plain = pair[2] })
            assert.same({ { field = "plain", secret = true } }, shown)
        end
        local within = { store = { host = key } }
        local shown = json.encode(differences.find(definition, {}, within))
        assert.is_nil(shown:find("HIDE", 1, true), shown)
        local hidden = schema.to_json_entity(definition, { plain = key }, true)
        assert.equal(json.null, hidden.plain)
        local public = "-----BEGIN PUBLIC KEY-----\nshown\n-----END PUBLIC KEY-----\n"
        assert.equal(public, schema.to_json_entity(definition, { plain = public }, true).plain)
    end)

    it("is null in an answer that hides secrets", function()
        local shown = json.encode(schema.to_json_entity(definition, entity("HIDE"), true))
        assert.is_nil(shown:find("HIDE", 1, true), shown)
        assert.is_truthy(shown:find('"Accept":"shown"', 1, true), shown)
        assert.is_truthy(shown:find('"cookie":"session"', 1, true), shown)
        local _, count = json.encode(schema.to_json_entity(definition, entity("HIDE"), false))
            :gsub("HIDE", "")
        assert.equal(6, count)
    end)
end)
