--- What the store derives from schemas, and the texts that it keeps.

local cjson = require("cjson")
local entity_text = require("gateway.store.entity_text")
local layout = require("gateway.store.layout")
local support = require("test.unit.support.store")

local function kind(name, fields, more)
    local schema = { name = name, fields = fields }
    for key, value in pairs(more or {}) do
        schema[key] = value
    end
    return schema
end

local function columns(of)
    local out = {}
    for i, column in ipairs(of.columns) do
        out[i] = column.column
    end
    return table.concat(out, " ")
end

describe("gateway.store.layout", function()
    it("derives the gateway's kinds, plugins' own ones among them", function()
        local by_kind = layout.by_kind(support.layouts())
        assert.equal("u_name f_client_certificate_restrict", columns(by_kind.services))
        assert.equal("u_name f_service_restrict", columns(by_kind.routes))
        assert.equal("u_username u_custom_id", columns(by_kind.consumers))
        assert.equal("f_upstream_cascade n_target k_upstream_target", columns(by_kind.targets))
        assert.equal(
            "u_instance_name f_route_cascade f_service_cascade f_consumer_cascade "
                .. "f_consumer_group_cascade k_name_route_service_consumer_consumer_group",
            columns(by_kind.plugins)
        )
        assert.equal("f_consumer_cascade u_key n_expires_at", columns(by_kind.keyauth_credentials))
        assert.is_true(by_kind.routes.has_tags)
    end)

    it("leaves out references to kinds that are unknown, and tags of who has none", function()
        local of = layout.derive({
            kind("things", { { id = {} }, { other = { type = "foreign", reference = "none" } } }),
        })[1]
        assert.same({ kind = "things", space = "things", columns = {}, has_tags = false }, of)
    end)

    it("gives credentials of all kinds one space of slots, and no other kind", function()
        local by_kind = layout.by_kind(support.layouts())
        assert.equal("credentials", by_kind.keyauth_credentials.space)
        for _, name in ipairs({ "plugins", "consumers", "routes" }) do
            assert.equal(name, by_kind[name].space)
        end
    end)

    it("refuses what could not be a column", function()
        local id = { { id = {} } }
        local bad = { { ["a b"] = { type = "string", unique = true } } }
        for _, schemas in ipairs({
            { kind("a;b", id) },
            { kind("", id) },
            { kind("a", bad) },
            { kind("a", id), kind("a", id) },
            {
                kind("a", { { a = { type = "foreign", reference = "a", on_delete = "none" } } }),
            },
        }) do
            assert.is_false(pcall(layout.derive, schemas))
        end
    end)

    it("makes one text of several fields, never the same of others", function()
        local column = { fields = { "a", "b" } }
        local seen = {}
        for _, a in ipairs({ "", "1:", "-", "x,1:y", "x", false }) do
            for _, b in ipairs({ "", "1:", "-", "x,1:y", "x", false }) do
                local text = layout.value(column, { a = a or nil, b = b or nil })
                assert.is_nil(seen[text])
                seen[text] = true
            end
        end
        assert.equal("7", layout.value({ fields = { "n" } }, { n = 7 }))
        assert.equal("i", layout.value({ fields = { "n" } }, { n = { id = "i" } }))
        assert.is_nil(layout.value({ fields = { "n" } }, { n = cjson.null }))
        assert.is_nil(layout.value({ fields = { "n" } }, { n = { id = 1 } }))
    end)
end)

describe("gateway.store.entity_text", function()
    it("writes equal entities as equal texts, and what it writes is read again", function()
        local entity = {
            id = "x",
            list = { 1, 2, { deep = true } },
            map = { b = 'q"\\\n\0\127', a = false },
            none = cjson.null,
            large = 2 ^ 53 - 1,
            exact = 0.1,
            __references = { "left out" },
        }
        local text = assert(entity_text.encode(entity))
        entity.__references = nil
        local read = entity_text.decode(text)
        assert.same(entity, read)
        assert.equal(text, entity_text.encode(read))
        assert.truthy(text:find('"large":9007199254740991', 1, true))
        local empty = { id = "x", list = setmetatable({}, { __jsontype = "array" }) }
        assert.equal('{"id":"x","list":[]}', entity_text.encode(empty))
    end)

    it("says what it cannot write", function()
        local deep = {}
        for _ = 1, 200 do
            deep = { deep }
        end
        for reason, value in pairs({
            ["a function"] = print,
            ["not a finite number"] = 0 / 0,
            ["a key that is no string"] = { [1.5] = 1 },
            ["deeper than 100"] = deep,
        }) do
            local text, err = entity_text.encode({ value = value })
            assert.is_nil(text)
            assert.equal(reason, err)
        end
        assert.is_nil(entity_text.decode("{"))
        assert.is_nil(entity_text.decode("7"))
    end)
end)
