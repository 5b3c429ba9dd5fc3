--- Schemas of plugins written for Kong: its rules for nulls, conditions, former names, functions.

local path = package.path
package.path = path .. ";./compat/?.lua;./compat/?/init.lua"
require("kong.tools.rand")
require("kong.tools.uuid")
package.path = path

local cjson = require("cjson")
local entities = require("gateway.entities")
local metaschema = require("gateway.schema.metaschema")
local plan = require("gateway.schema.plan")
local refusals = require("gateway.change.refusals")
local schema = require("gateway.schema")

local NULL = cjson.null

-- What a plugin's schema makes of a configuration: the filled one, or the fields of the refusal.
local function outcome(config_fields, config, more)
    local definition = { name = "mine", fields = { { config = { type = "record" } } } }
    definition.fields[1].config.fields = config_fields
    for name, value in pairs(more or {}) do
        definition.fields[1].config[name] = value
    end
    assert.is_nil(metaschema.check(definition))
    plan.require_records(definition)
    definition = plan.adopt(definition)
    local of_plugin = entities.for_plugin({ name = "mine", schema = definition, entities = {} })
    local value = { name = "mine", config = config }
    local filled, errors = schema.validate(of_plugin, value)
    local walked, found = schema.walk(of_plugin, value)
    assert.same({ walked ~= nil, found and #found }, { filled ~= nil, errors and #errors })
    if filled then
        return filled.config, nil, of_plugin
    end
    return nil, refusals.invalid(errors).fields
end

local function refused(...)
    return select(2, outcome(...))
end

describe("a schema written for Kong", function()
    local fields = {
        { kept = { type = "integer", default = 5 } },
        { needed = { type = "integer", required = true, default = 6 } },
        { inner = { type = "record", fields = { { deep = { type = "string", default = "d" } } } } },
    }

    it("fills in defaults, also of records that are not given", function()
        local wanted = { kept = 5, needed = 6, inner = { deep = "d" } }
        assert.same(wanted, (outcome(fields, {})))
        assert.same(wanted, (outcome(fields, nil)))
    end)

    it("takes a null for a value, not for a field left out", function()
        assert.same(
            { needed = 6, inner = {} },
            (outcome(fields, { kept = NULL, inner = { deep = NULL } }))
        )
        local missing = { config = { needed = "required field missing" } }
        assert.same(missing, refused(fields, { needed = NULL }))
    end)

    it("leaves types that others use as they are", function()
        local shared = { type = "record", fields = { { a = { type = "integer", default = 1 } } } }
        local own = { name = "x", fields = { { r = shared } } }
        plan.adopt(own)
        assert.same({ r = { a = 1 } }, (schema.validate(own, { r = { a = NULL } })))
    end)

    it("gives validators of records and lists null for what is not set", function()
        local seen = {}
        local items = {
            type = "array",
            elements = { type = "record", fields = { { a = { type = "string" } } } },
            custom_validator = function(list)
                seen.list = list
                return true
            end,
        }
        local see = function(config)
            seen.config = config
            return nil
        end
        local text = { type = "string" }
        local errors = refused({ { items = items }, { text = text } }, { items = { {} } }, {
            custom_validator = see,
        })
        assert.same({ { a = NULL } }, seen.list)
        assert.same({ items = { { a = NULL } }, text = NULL }, seen.config)
        assert.truthy(errors.config:find("^failed validating: table"))
    end)

    it("places what a validator says in a table", function()
        local errors = refused({
            {
                r = {
                    type = "record",
                    fields = { { a = { type = "string" } } },
                    custom_validator = function()
                        return nil, { a = "bad", ["@entity"] = { "worse" } }
                    end,
                },
            },
        }, { r = { a = "x" } })
        assert.same({ config = { r = { a = "bad", ["@entity"] = { "worse" } } } }, errors)
    end)

    it("gives checks of an entity the fields that they ask for", function()
        local seen
        local checks = {
            {
                custom_entity_check = {
                    field_sources = { "a", "inner.deep", "none" },
                    fn = function(entity)
                        seen = entity
                        return nil, "no"
                    end,
                },
            },
        }
        local some = {
            { a = { type = "string" } },
            { other = { type = "string" } },
            { none = { type = "string" } },
            fields[3],
        }
        local errors = refused(some, { a = "x", other = "y" }, { entity_checks = checks })
        assert.same({ a = "x", inner = { deep = "d" }, none = NULL }, seen)
        assert.same({ config = { ["@entity"] = { "no" } } }, errors)
        assert.same(
            { config = { a = "expected a string" } },
            refused(some, { a = 1 }, {
                entity_checks = checks,
            })
        )
    end)

    local function conditional(more)
        local rule = {
            if_field = "policy",
            if_match = { eq = "redis" },
            then_field = "host",
            then_match = { required = true },
        }
        for name, value in pairs(more or {}) do
            rule[name] = value
        end
        return { entity_checks = { { conditional = rule } } }
    end
    local policy = {
        { policy = { type = "string", one_of = { "local", "redis" } } },
        { host = { type = "string" } },
        { count = { type = "integer", required = true } },
    }

    it("says of a condition what its field lacks, and which condition it was", function()
        local words = "failed conditional validation given value of field 'policy'"
        assert.same(
            { config = { host = "required field missing", ["@entity"] = { words } } },
            refused(policy, { policy = "redis", count = 1 }, conditional())
        )
        local given = { policy = "redis", host = "a", count = 1 }
        local wanted = { then_match = { match = "^b" }, then_err = "as %s has it" }
        assert.same(
            { config = { host = "invalid value: a", ["@entity"] = { "as policy has it" } } },
            refused(policy, given, conditional(wanted))
        )
        assert.same(given, (outcome(policy, given, conditional())))
        -- a field that is not set passes any match but equality
        local any = conditional({ if_match = { one_of = { "redis" } } })
        assert.same(
            { config = { host = "required field missing", ["@entity"] = { words } } },
            refused(policy, { count = 1 }, any)
        )
        assert.same({ count = 1 }, (outcome(policy, { count = 1 }, conditional())))
    end)

    it("does not guess at a check whose field is missing", function()
        local on_count = conditional({ if_field = "count", if_match = { gt = 1 } })
        assert.same(
            { config = { count = "field required for entity check" } },
            refused(policy, { host = "a" }, on_count)
        )
    end)

    it("takes former names, of which today's win", function()
        local shorthands = {
            {
                old = {
                    type = "integer",
                    deprecation = {
                        message = "use new.deep",
                        removal_in_version = "9.0",
                        replaced_with = { { path = { "new", "deep" } } },
                    },
                    func = function(value)
                        return { new = { deep = value } }
                    end,
                },
            },
            {
                older = {
                    type = "string",
                    translate_backwards = { "new", "text" },
                    func = function(value)
                        return { new = { text = value } }
                    end,
                },
            },
        }
        local new = {
            type = "record",
            fields = {
                { deep = { type = "integer", default = 1 } },
                { text = { type = "string" } },
            },
        }
        local more = { shorthand_fields = shorthands }
        local config, _, definition = outcome({ { new = new } }, { old = 3, older = "t" }, more)
        assert.same({ new = { deep = 3, text = "t" } }, config)
        local shown = schema.to_json_entity(definition, { name = "mine", config = config })
        assert.same({ 3, "t" }, { shown.config.old, shown.config.older })
        assert.same({
            config = {
                old = "both deprecated and new field are used but their values mismatch: "
                    .. "old = 3 vs new.deep = 4",
            },
        }, refused({ { new = new } }, { old = 3, new = { deep = 4 } }, more))
        assert.same({ new = { deep = 4 } }, (outcome({ { new = new } }, {
            old = NULL,
            new = { deep = 4 },
        }, more)))
        assert.same(
            { config = { old = "expected an integer" } },
            refused({ { new = new } }, {
                old = "x",
            }, more)
        )
    end)

    it(
        "warns of deprecated fields that are set to something else than their former default",
        function()
            local deprecation = { message = "do not", removal_in_version = "9.0", old_default = 1 }
            local own = {
                { old = { type = "integer", deprecation = deprecation } },
                { r = { type = "record", fields = { { s = { type = "string" } } } } },
            }
            own[2].r.fields[1].s.deprecation = { message = "nor this", removal_in_version = "9.0" }
            for _, case in ipairs({
                { {}, {} },
                { { old = 1 }, {} },
                { { old = 2 }, { { field = "config.old", message = "do not" } } },
                { { r = { s = "x" } }, { { field = "config.r.s", message = "nor this" } } },
            }) do
                local config, _, definition = outcome(own, case[1])
                assert.same(case[2], definition.warnings({ name = "mine", config = config }, 0))
            end
        end
    )

    it("draws texts that nobody gives, each anew", function()
        local own = { { key = { type = "string", auto = true, required = true } } }
        local one, other = outcome(own, {}), outcome(own, nil)
        assert.is_true(#one.key >= 32 and one.key ~= other.key)
        assert.same({ key = "k" }, (outcome(own, { key = "k" })))
    end)
end)

describe("what no schema of Kong's can say", function()
    local function text_of(config, more)
        local definition = { name = "mine", fields = { { config = config } } }
        for name, value in pairs(more or {}) do
            definition[name] = value
        end
        local errors = metaschema.check(definition)
        return errors and metaschema.text(errors) or ""
    end
    local function field(attributes)
        return { type = "record", fields = { { f = attributes } } }
    end

    it("is named", function()
        for _, case in ipairs({
            {
                field({ type = "string", defualt = "a" }),
                "config.f.defualt: unknown field; did you mean default?",
            },
            {
                field({ type = "string", default = "a", one_of = "a" }),
                "config.f.one_of: expected an array",
            },
            {
                field({ type = "strng" }),
                "config.f.type: expected one of: array, boolean, foreign, function, integer, json, "
                    .. "map, number, record, set, string",
            },
            { field({ default = 1 }), "config.f.type: required field missing" },
            {
                field({ type = "array" }),
                "config.f: field of type 'array' must declare 'elements'",
            },
            {
                field({ type = "string", between = { 1, 2 } }),
                "config.f: field of type 'string' cannot have attribute 'between'",
            },
            { field({ type = "integer", default = "x" }), "config.f.default: expected an integer" },
            { field({ type = "string", required = 1 }), "config.f.required: expected a boolean" },
            { field({ type = "integer", between = { 1 } }), "config.f.between: length must be 2" },
            {
                field({ type = "string", description = "short" }),
                "config.f.description: length must " .. "be at least 10",
            },
            {
                {
                    type = "record",
                    fields = { { f = { type = "string" }, g = { type = "string" } } },
                },
                "config.fields: length must be 1",
            },
            {
                { type = "record", fields = {}, entity_checks = { { at_least_one = { "a" } } } },
                "config.entity_checks.at_least_one: unknown field",
            },
            {
                {
                    type = "record",
                    fields = {},
                    entity_checks = { { conditional = { if_feild = "a" } } },
                },
                "config.entity_checks.conditional.if_feild: unknown field; did you mean if_field?",
            },
            {
                {
                    type = "record",
                    fields = {},
                    shorthand_fields = { { s = { type = "string" } } },
                },
                "config.s.func: required field missing",
            },
            {
                field({ type = "map", keys = { type = "string" }, values = { typ = "string" } }),
                "config.f.values.type: required field missing; config.f.values.typ: unknown field; "
                    .. "did you mean type?",
            },
        }) do
            assert.equal(case[2], text_of(case[1]))
        end
    end)

    it("is named at the top, too", function()
        local config = field({ type = "string" })
        assert.equal("", text_of(config))
        local said = "entitychecks: unknown field; did you mean entity_checks?"
        assert.equal(said, text_of(config, { entitychecks = {} }))
        assert.equal("primary_key: unknown field", text_of(config, { primary_key = { "id" } }))
        local of_entity = {
            name = "e",
            primary_key = { "id" },
            endpoint_key = "key",
            cache_key = { "id" },
            fields = { { id = { type = "string" } } },
        }
        local errors = metaschema.check(of_entity, true)
        assert.equal(
            "endpoint_key: value must be a field name; "
                .. "cache_key: a field used as a single cache key must be unique",
            metaschema.text(errors)
        )
    end)
end)
