--- `kong.db.schema` and its kin, as plugins call them.

local path = package.path
package.path = path .. ";./compat/?.lua;./compat/?/init.lua"
require("kong.tools.rand")
require("kong.tools.uuid")
package.path = path

local cjson = require("cjson")
local Entity = require("gateway.schema.class_entity")
local MetaSchema = require("gateway.schema.class_meta")
local Schema = require("gateway.schema.class")
local transformations = require("gateway.schema.transformations")
local typedefs = require("gateway.schema.kong_typedefs")

local NULL = cjson.null

describe("kong.db.schema", function()
    local definition = {
        name = "things",
        primary_key = { "id" },
        fields = {
            { id = typedefs.uuid },
            { created_at = typedefs.auto_timestamp_s },
            { name = { type = "string", required = true } },
            { count = { type = "integer", default = 3, between = { 1, 9 } } },
            { tags = { type = "set", elements = { type = "string" } } },
            { by = { type = "map", keys = { type = "string" }, values = { type = "integer" } } },
            {
                inner = {
                    type = "record",
                    required = true,
                    fields = {
                        { a = { type = "string", default = "x" } },
                        { b = { type = "string" } },
                    },
                    entity_checks = { { at_least_one_of = { "a", "b" } } },
                },
            },
            { secret = { type = "string", referenceable = true } },
            { fixed = { type = "array", elements = { type = "string" }, immutable = true } },
        },
        entity_checks = { { mutually_required = { "count", "tags" } } },
    }
    local things = assert(Schema.new(definition))

    it("fills in what is to be written, and leaves out what is read", function()
        local given = { name = "n", tags = { "a", "a" } }
        local filled = assert(things:process_auto_fields(given, "insert"))
        assert.same({ "a", "a" }, given.tags)
        assert.matches("^%x+%-%x+%-%x+%-%x+%-%x+$", filled.id)
        assert.equal("number", type(filled.created_at))
        filled.id, filled.created_at = nil, nil
        assert.same({
            name = "n",
            count = 3,
            tags = { "a" },
            by = NULL,
            inner = { a = "x", b = NULL },
            secret = NULL,
            fixed = NULL,
        }, filled)
        filled.more = 1
        local read = things:process_auto_fields(filled, "select", false)
        assert.same({ name = "n", count = 3, tags = { "a" }, inner = { a = "x" } }, read)
        assert.same({ count = 4 }, (things:process_auto_fields({ count = 4 }, "update")))
    end)

    it("validates what is there, and fills in nothing", function()
        local whole = { name = "n", count = 3, tags = { "a" }, inner = { a = "x" } }
        assert.is_true(things:validate(whole))
        whole.name = nil
        assert.same({ nil, { name = "required field missing" } }, { things:validate(whole) })
        assert.is_true(things:validate_update({ count = 3, tags = { "a" } }))
        local bad = {
            name = 1,
            count = 12,
            tags = { "a", 2 },
            by = { k = "v" },
            inner = { a = NULL },
            more = 1,
        }
        assert.same({
            name = "expected a string",
            count = "value should be between 1 and 9",
            tags = { NULL, "expected a string" },
            by = "expected an integer",
            inner = {
                ["@entity"] = { "at least one of these fields must be non-empty: 'a', 'b'" },
            },
            more = "unknown field",
        }, select(2, things:validate(bad)))
        local words = "all or none of these fields must be set: 'count', 'tags'"
        assert.same(
            { ["@entity"] = { words } },
            select(
                2,
                things:validate_insert({
                    name = "n",
                    tags = { "a" },
                    inner = { a = "x" },
                })
            )
        )
        assert.equal(
            "Validation error: " .. words .. "; name: expected a string",
            things:errors_to_string({ ["@entity"] = { words }, name = "expected a string" })
        )
    end)

    it("keeps references to vaults where they may be", function()
        local whole = { name = "{vault://env/n}", secret = "{vault://env/s}", inner = { a = "x" } }
        assert.is_true(things:validate(whole))
        assert.same({ nil, "expected a string" }, { things:validate_field(things.fields.name, 1) })
        assert.is_true(things:validate_field(things.fields.secret, "{vault://env/s}"))
    end)

    it("knows keys, fields and what may not change", function()
        local names = {}
        for name in things:each_field() do
            names[#names + 1] = name
        end
        assert.equal(
            "id created_at name count tags by inner secret fixed",
            table.concat(names, " ")
        )
        assert.same({ id = "i" }, things:extract_pk_values({ id = "i", name = "n" }))
        assert.same({ id = "missing primary key" }, select(2, things:validate_primary_key({})))
        local fixed = { fixed = { "b", "a" } }
        assert.is_true((things:validate_immutable_fields({ fixed = { "a", "b" } }, fixed)))
        assert.same(
            { fixed = "immutable field cannot be updated" },
            select(2, things:validate_immutable_fields({ fixed = { "a" } }, fixed))
        )
        assert.same(
            { name = "m", inner = { a = "1", b = "2" }, tags = { "z" } },
            things:merge_values(
                { name = "m", inner = { a = "1" }, tags = { "z" } },
                { name = "n", inner = { b = "2" }, tags = { "y" } }
            )
        )
    end)

    it("makes field types that are called with attributes", function()
        local name = Schema.define({ type = "string", len_max = 3 })
        assert.same({ type = "string", len_max = 3, required = true }, name({ required = true }))
        assert.same({ type = "string", len_max = 4 }, name({ len_max = 4 }))
        assert.is_true(Schema.validators.is_regex("^a$"))
        assert.is_nil((Schema.validators.is_regex("(")))
    end)

    it("says what is no schema", function()
        assert.same({ nil, "expected a definition table" }, { Schema.new() })
        local words = "error in schema definition: no 'fields' table"
        assert.same({ nil, words }, { Schema.new({}) })
    end)

    it("chooses subschemas by a field", function()
        local parent = assert(Entity.new({
            name = "parents",
            primary_key = { "name" },
            subschema_key = "name",
            subschema_error = "plugin '%s' not enabled",
            fields = {
                { name = { type = "string", required = true } },
                { config = { type = "record", abstract = true } },
            },
        }))
        local config = { type = "record", fields = { { n = { type = "integer", default = 1 } } } }
        assert.is_true(
            parent:new_subschema("one", { name = "one", fields = { { config = config } } })
        )
        assert.same(
            { nil, "error in definition of 'two': more: cannot create a new field" },
            { parent:new_subschema("two", { name = "two", fields = { { more = config } } }) }
        )
        local filled = parent:process_auto_fields({ name = "one" }, "insert")
        assert.same({ name = "one", config = { n = 1 } }, filled)
        assert.is_true(parent:validate_insert(filled))
        assert.same(
            { config = { n = "expected an integer" } },
            select(2, parent:validate({ name = "one", config = { n = "x" } }))
        )
        assert.same(
            { name = "plugin 'three' not enabled" },
            select(2, parent:validate({ name = "three" }))
        )
    end)
end)

describe("kong.db.schema.metaschema", function()
    it("nests its errors as Kong does", function()
        local plugin = {
            name = "p",
            fields = {
                {
                    config = {
                        type = "record",
                        fields = { { f = { type = "string", requried = true } } },
                    },
                },
            },
        }
        assert.same(
            { nil, { fields = { { fields = { { requried = "unknown field" } } } } } },
            { MetaSchema.MetaSubSchema:validate(plugin) }
        )
        plugin.fields[1].config.fields[1].f.requried = nil
        assert.is_true(MetaSchema.MetaSubSchema:validate(plugin))
        assert.same(
            { nil, { primary_key = "required field missing" } },
            { MetaSchema:validate(plugin) }
        )
    end)
end)

describe("transformations", function()
    local calls
    local credentials = assert(Schema.new({
        name = "credentials",
        fields = {
            { owner = { type = "record", fields = { { id = { type = "string" } } } } },
            { password = { type = "string" } },
            { note = { type = "string" } },
        },
        transformations = {
            {
                input = { "password" },
                needs = { "owner.id" },
                on_write = function(password, owner)
                    calls = calls + 1
                    if password == "bad" then
                        return nil, "no"
                    end
                    return { password = password .. "@" .. owner }
                end,
            },
        },
    }))
    before_each(function()
        calls = 0
    end)

    it("run where all that they name is set", function()
        local entity = { owner = { id = "o" }, password = "p", note = "n" }
        assert.same(
            { owner = { id = "o" }, password = "p@o", note = "n" },
            credentials:transform(entity, nil, "insert")
        )
        assert.same({ note = "n" }, credentials:transform({ note = "n" }, nil, "insert"))
        assert.same({ nil, "transformation failed: no" }, {
            credentials:transform({ owner = { id = "o" }, password = "bad" }, nil, "insert"),
        })
    end)

    it("run once: not when another field is changed, nor on what a file kept", function()
        local entity = { owner = { id = "o" }, password = "p@o", note = "n" }
        assert.is_nil(transformations.run(credentials, entity, { note = "n" }))
        transformations.keep(credentials, entity)
        assert.is_nil(transformations.run(credentials, entity, entity))
        assert.same({ "p@o", 0 }, { entity.password, calls })
        assert.is_nil(transformations.run(credentials, entity, { password = "p" }))
        assert.same({ "p@o@o", 1 }, { entity.password, calls })
    end)

    it("need no more than what they had, also where that is a table", function()
        local definition = {
            fields = {},
            transformations = {
                {
                    input = { "password" },
                    needs = { "salts" },
                    on_write = function() end,
                },
            },
        }
        local entity = { password = "kept", salts = { "a" } }
        local stored = { password = "kept", salts = { "a" } }
        assert.is_nil(transformations.run(definition, entity, { note = "n" }, stored))
        stored.salts[1] = "b"
        assert.equal(
            "all or none of these fields must be set: 'password', 'salts'",
            transformations.run(definition, entity, { salts = { "a" } }, stored)
        )
    end)

    it("want what they read given together", function()
        assert.same(
            { "all or none of these fields must be set: 'password', 'owner.id'" },
            transformations.check(credentials, { password = "p" })
        )
        assert.same({}, transformations.check(credentials, { note = "n" }))
    end)
end)
