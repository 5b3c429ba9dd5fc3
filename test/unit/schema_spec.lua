--- The validator: types, rules, defaults and checks over several fields.

local cjson = require("cjson")
local rules = require("gateway.schema.rules")
local records = require("test.unit.support.records")
local schema = require("gateway.schema")

local NULL = cjson.null

local record, errors_of = records.record, records.errors_of

local function throws()
    error("boom")
end

local NUMBER_LISTS = { type = "map", keys = { type = "string" }, values = { type = "number" } }

-- field definition, value, message (nil: the value is good)
local CASES = {
    { { type = "string" }, "a" },
    { { type = "string" }, 1, "expected a string" },
    { { type = "string" }, true, "expected a string" },
    { { type = "string" }, {}, "expected a string" },
    { { type = "string" }, "", "length must be at least 1" },
    { { type = "string", len_min = 0 }, "" },
    { { type = "boolean" }, false },
    { { type = "boolean" }, "true", "expected a boolean" },
    { { type = "integer" }, 80 },
    { { type = "integer" }, -3 },
    { { type = "integer" }, 1.5, "expected an integer" },
    { { type = "integer" }, "80", "expected an integer" },
    { { type = "integer" }, math.huge, "expected an integer" },
    { { type = "number" }, math.huge, "expected a number" },
    { { type = "integer" }, 0 / 0, "expected an integer" },
    { { type = "number" }, 1.5 },
    { { type = "number" }, 0 / 0, "expected a number" },
    { { type = "number" }, "1", "expected a number" },
    { { type = "array", elements = { type = "string" } }, "a", "expected an array" },
    { { type = "array", elements = { type = "string" } }, { a = 1 }, "expected an array" },
    { { type = "array", elements = { type = "string" } }, {} },
    { { type = "set", elements = { type = "string" } }, 3, "expected a set" },
    { NUMBER_LISTS, { a = 1 } },
    { NUMBER_LISTS, "a", "expected a map" },
    { record({}), "a", "expected a record" },
    { record({}), { "a" }, "expected a record" },
    { { type = "any" }, { 1, a = 2 } },
    { { type = "function" }, throws },
    { { type = "function" }, 1, "expected a function" },
    { { type = "foreign" }, "name" },
    { { type = "foreign" }, { id = "x", other = 1 } },
    { { type = "foreign" }, { username = "x" } },
    {
        { type = "foreign" },
        "",
        "expected a reference: a name, an id, { id = ... } or { name = ... }",
    },
    {
        { type = "foreign" },
        {},
        "expected a reference: a name, an id, { id = ... } or { name = ... }",
    },
    {
        { type = "foreign" },
        1,
        "expected a reference: a name, an id, { id = ... } or { name = ... }",
    },
    { { type = "integer", between = { 0, 65535 } }, 0 },
    { { type = "integer", between = { 0, 65535 } }, 65535 },
    { { type = "integer", between = { 0, 65535 } }, 65536, "value should be between 0 and 65535" },
    { { type = "integer", between = { 0, 65535 } }, -1, "value should be between 0 and 65535" },
    { { type = "number", gt = 0 }, 0, "value must be greater than 0" },
    { { type = "number", gt = 0 }, 0.1 },
    { { type = "string", eq = "a" }, "b", "value must be a" },
    { { type = "string", ne = "a" }, "a", "value must not be a" },
    { { type = "string", ne = "a" }, "b" },
    { { type = "string", eq = NULL }, "a", "value must be null" },
    { { type = "string", eq = NULL, err = "not here" }, "a", "not here" },
    { { type = "string", one_of = { "a", "b" } }, "b" },
    { { type = "string", one_of = { "a", "b" } }, "c", "expected one of: a, b" },
    { { type = "string", not_one_of = { "a", "b" } }, "b", "must not be one of: a, b" },
    { { type = "string", len_eq = 2 }, "abc", "length must be 2" },
    { { type = "string", len_max = 2 }, "abc", "length must be at most 2" },
    {
        { type = "set", len_min = 1, elements = { type = "string" } },
        {},
        "length must be at least 1",
    },
    {
        { type = "map", len_max = 1, keys = { type = "string" }, values = { type = "any" } },
        { a = 1, b = 1 },
        "length must be at most 1",
    },
    { { type = "string", starts_with = "/" }, "a", "should start with: /" },
    { { type = "string", match = "^%u+$" }, "get", "invalid value: get" },
    { { type = "string", match = "^%u+$", err = "upper case" }, "get", "upper case" },
    { { type = "string", not_match = "%s" }, "ab" },
    { { type = "string", not_match = "%s" }, "a b", "invalid value: a b" },
    {
        {
            type = "string",
            match_all = { { pattern = "a", err = "A" }, { pattern = "b", err = "B" } },
        },
        "a",
        "B",
    },
    { { type = "string", match_none = { { pattern = "a", err = "A" } } }, "a", "A" },
    { { type = "string", match_any = { patterns = { "^a", "^b" }, err = "AB" } }, "b" },
    { { type = "string", match_any = { patterns = { "^a", "^b" }, err = "AB" } }, "c", "AB" },
    {
        { type = "array", elements = { type = "string" }, contains = "x" },
        { "a" },
        "expected to contain: x",
    },
    { { type = "integer", timestamp = true }, 0, "expected a valid timestamp" },
    { { type = "string", is_regex = true }, "(", "not a valid regex: (" },
    { { type = "string", is_regex = true }, "^a+$" },
    { { type = "string", uuid = true }, "3C45ea7d-1e22-587c-ad2f-e4631336c6ba" },
    {
        { type = "string", uuid = true },
        "3c45ea7d-1e22-587c-ad2f-e4631336c6b",
        "expected a valid UUID",
    },
    {
        { type = "string", uuid = true },
        "3c45ea7d1e22587cad2fe4631336c6ba",
        "expected a valid UUID",
    },
    {
        {
            type = "set",
            elements = { type = "string" },
            mutually_exclusive_subsets = { { "a", "b" }, { "c" } },
        },
        { "b", "c" },
        "these sets are mutually exclusive: ('a', 'b'), ('c')",
    },
    { { type = "string", supported = { "a" } }, "a" },
    {
        { type = "string", supported = { "a" } },
        "b",
        "'b' is not supported by this version (supported: a)",
    },
    { { type = "array", elements = { type = "any" }, supported = false }, {} },
    {
        { type = "array", elements = { type = "any" }, supported = false },
        { 1 },
        "this field is not supported by this version",
    },
    {
        { type = "string", referenceable = true },
        "{vault://env/x}",
        "vault references are not looked up here",
    },
    { { type = "string" }, "{vault://env/x}", "a vault reference is not allowed in this field" },
    { { type = "integer" }, "{vault://env/x}", "a vault reference is not allowed in this field" },
    { { type = "string" }, "{vault://", nil },
}

describe("gateway.schema", function()
    describe("validate: one field", function()
        for i, case in ipairs(CASES) do
            local field, value, message = case[1], case[2], case[3]
            local title = ("%d: %s %s"):format(i, field.type, message or "is valid")
            it(title, function()
                local want = message and "x.f: " .. message or ""
                assert.equal(want, errors_of(record({ { f = field } }), { f = value }, "x"))
            end)
        end

        it("has every rule in a case above", function()
            local seen = { custom_validator = true, len_min = true }
            for _, case in ipairs(CASES) do
                for name in pairs(case[1]) do
                    seen[name] = true
                end
            end
            for _, name in ipairs(rules.order) do
                assert.is_true(seen[name], name)
            end
        end)
    end)

    describe("validate: presence and defaults", function()
        local fields = {
            { needed = { type = "string", required = true } },
            { with_default = { type = "string", required = true, default = "d" } },
            { plain = { type = "string" } },
            { drawn = { type = "string", auto = true, required = true } },
            { list = { type = "array", elements = { type = "integer" }, default = { 1, 2 } } },
            {
                group = record({
                    { a = { type = "integer", default = 3 } },
                    { b = { type = "string" } },
                }, { required = true }),
            },
            { maybe = record({ { a = { type = "integer", default = 3 } } }) },
        }
        local definition = record(fields)

        it("fills what is left out, and takes null for left out", function()
            local want = { needed = "n", with_default = "d", list = { 1, 2 }, group = { a = 3 } }
            assert.same(want, schema.validate(definition, { needed = "n" }))
            local nulls =
                { needed = "n", with_default = NULL, plain = NULL, list = NULL, group = NULL }
            assert.same(want, schema.validate(definition, nulls))
        end)

        it("does not share defaults between values, nor change what was given", function()
            local given = { needed = "n", group = {} }
            local first = schema.validate(definition, given)
            first.list[1] = "changed"
            first.group.a = "changed"
            local second = schema.validate(definition, given)
            assert.same({ 1, 2 }, second.list)
            assert.same({ a = 3 }, second.group)
            assert.same({ needed = "n", group = {} }, given)
        end)

        it("keeps false where the default is true", function()
            local flag = record({ { f = { type = "boolean", default = true, required = true } } })
            assert.same({ f = false }, schema.validate(flag, { f = false }))
        end)

        it("reports what is required", function()
            assert.equal("needed: required field missing", errors_of(definition, {}))
            assert.equal("needed: required field missing", errors_of(definition, { needed = NULL }))
        end)

        it("reports every error, in the schema's order, unknown fields last", function()
            local value = {
                plain = 1,
                list = { 1, "x", NULL },
                group = { a = "x", z = 1 },
                zz = 1,
                aa = NULL,
            }
            assert.equal(
                table.concat({
                    "s[2].needed: required field missing",
                    "s[2].plain: expected a string",
                    "s[2].list[1]: expected an integer",
                    "s[2].list[2]: required field missing",
                    "s[2].group.a: expected an integer",
                    "s[2].group.z: unknown field",
                    "s[2].aa: unknown field",
                    "s[2].zz: unknown field",
                }, "\n"),
                errors_of(definition, value, "s[2]")
            )
        end)

        it("refuses what is not a record", function()
            for _, value in ipairs({ "a", 1, true, { "a" }, NULL }) do
                assert.equal("x: expected a record", errors_of(definition, value, "x"))
            end
        end)

        it("quotes strange keys in paths", function()
            assert.equal(
                'x["a b\\x0a"]: unknown field',
                errors_of(record({}), { ["a b\n"] = 1 }, "x")
            )
        end)

        it("drops what stands twice in a set and keeps the order", function()
            local set = record({ { s = { type = "set", elements = { type = "string" } } } })
            assert.same({ s = { "b", "a" } }, schema.validate(set, { s = { "b", "a", "b" } }))
        end)

        it("checks keys and values of a map", function()
            local keys = { type = "string", match = "^%l+$" }
            local map =
                record({ { m = { type = "map", keys = keys, values = { type = "integer" } } } })
            assert.same({ m = { a = 1 } }, schema.validate(map, { m = { a = 1 } }))
            assert.equal(
                "m.B: invalid value: B\nm.a: expected an integer\nm.c: required field missing",
                errors_of(map, { m = { B = 1, a = "x", c = NULL } })
            )
        end)

        it("normalises a valid value only", function()
            local field = { type = "string", starts_with = "a", normalize = string.upper }
            assert.same({ f = "AB" }, schema.validate(record({ { f = field } }), { f = "ab" }))
            assert.equal(
                "f: should start with: a",
                errors_of(record({ { f = field } }), { f = "b" })
            )
        end)

        it("reports a validator that throws", function()
            local definition_ = record({ { f = { type = "string", custom_validator = throws } } })
            assert.matches("^f: cannot be checked: .*boom$", errors_of(definition_, { f = "x" }))
        end)

        it("runs the validator of a record once its fields are right", function()
            local calls = 0
            local function refuse()
                calls = calls + 1
                return nil, "no"
            end
            local inner = record({ { a = { type = "integer" } } }, { custom_validator = refuse })
            local outer = record({ { r = inner } })
            assert.equal("r: no", errors_of(outer, { r = { a = 1 } }))
            assert(calls > 0)
            calls = 0
            assert.equal("r.a: expected an integer", errors_of(outer, { r = { a = "" } }))
            assert.equal(0, calls)
        end)
    end)

    describe("validate: shorthands", function()
        local function split(text)
            local a, b = text:match("^(%d+)-(%d+)$")
            if not a then
                return nil, "expected a range"
            end
            return { from = tonumber(a), to = tonumber(b) }
        end
        local definition = record({
            { from = { type = "integer", required = true } },
            { to = { type = "integer", required = true } },
        }, { shorthand_fields = { { range = { type = "string", func = split } } } })

        it("stand for their fields and win over them", function()
            assert.same({ from = 1, to = 2 }, schema.validate(definition, { range = "1-2" }))
            assert.same(
                { from = 1, to = 2 },
                schema.validate(definition, { range = "1-2", to = 9 })
            )
            assert.same(
                { from = 1, to = 2 },
                schema.validate(definition, { range = NULL, from = 1, to = 2 })
            )
        end)

        it("report their own errors, and nothing that follows from them", function()
            assert.equal("range: expected a range", errors_of(definition, { range = "x" }))
            assert.equal("range: expected a string", errors_of(definition, { range = 1 }))
            assert.equal(
                "range: expected a range\nz: unknown field",
                errors_of(definition, { range = "x", z = 1 })
            )
        end)

        it("give way to their fields when deprecated", function()
            local old = {
                type = "string",
                deprecation = {},
                func = function(value)
                    return { new = { host = value, port = 1 } }
                end,
            }
            local new = record({ { host = { type = "string" } }, { port = { type = "integer" } } })
            local both = record({ { new = new } }, { shorthand_fields = { { old = old } } })
            assert.same({ new = { host = "a", port = 1 } }, schema.validate(both, { old = "a" }))
            assert.same(
                { new = { host = "b", port = 1 } },
                schema.validate(both, { old = "a", new = { host = "b" } })
            )
        end)

        it("stand beside what they are a former name of, with the same value alone", function()
            local old = {
                type = "string",
                deprecation = { replaced_with = { { path = { "new", "host" } } } },
                func = function(value)
                    return { new = { host = value } }
                end,
            }
            local secret = setmetatable({ referenceable = true }, { __index = old })
            local new = record({ { host = { type = "string" } } })
            local shorthands = { shorthand_fields = { { old = old }, { secret = secret } } }
            local both = record({ { new = new } }, shorthands)
            local value = { new = { host = "a" } }
            assert.same(value, schema.validate(both, { old = "a", new = { host = "a" } }))
            assert.same(value, schema.validate(both, { old = "a", new = { host = NULL } }))
            local mismatch = "both deprecated and new field are used but their values mismatch: "
            assert.equal(
                "old: " .. mismatch .. "old = a vs new.host = b",
                errors_of(both, { old = "a", new = { host = "b" } })
            )
            assert.equal(
                "secret: " .. mismatch .. "secret vs new.host",
                errors_of(both, { secret = "a", new = { host = "b" } })
            )
            local shown = { new = { host = "a" }, old = "a", secret = "a" }
            assert.same(shown, schema.to_json_entity(both, value))
            assert.same({ new = NULL, old = NULL, secret = NULL }, schema.to_json_entity(both, {}))
        end)
    end)

    it("finds fields by dotted names", function()
        local leaf = { type = "string" }
        local definition = record({ { a = record({ { b = leaf } }) } })
        assert.equal(leaf, schema.field(definition, "a.b"))
        assert.is_nil(schema.field(definition, "a.c"))
        assert.is_nil(schema.field(definition, "x.y.z"))
    end)

    describe("to_json_entity", function()
        local strings = { type = "array", elements = { type = "string" } }
        local definition = record({
            { a = { type = "string" } },
            { list = strings },
            { map = { type = "map", keys = { type = "string" }, values = strings } },
            { r = record({ { b = { type = "integer" } }, { c = { type = "boolean" } } }) },
            {
                rs = {
                    type = "set",
                    elements = record({
                        { ip = { type = "string" } },
                        { port = { type = "integer" } },
                    }),
                },
            },
            { f = { type = "foreign", reference = "x" } },
        })

        it("has every field, null where unset, nothing else", function()
            assert.same(
                { a = NULL, list = NULL, map = NULL, r = NULL, rs = NULL, f = NULL },
                schema.to_json_entity(definition, { other = 1 })
            )
            local entity = {
                a = "1",
                list = { "x" },
                map = { k = { "v" } },
                r = { c = false, __id = "hidden" },
                rs = { { port = 1 } },
                f = { id = "i" },
            }
            assert.same({
                a = "1",
                list = { "x" },
                map = { k = { "v" } },
                r = { b = NULL, c = false },
                rs = { { ip = NULL, port = 1 } },
                f = { id = "i" },
            }, schema.to_json_entity(definition, entity))
        end)

        it("keeps what was given as empty: a list as [], a map as {}", function()
            local entity = schema.to_json_entity(definition, { list = {}, map = {}, rs = {} })
            assert.equal(
                '{"a":null,"f":null,"list":[],"map":{},"r":null,"rs":[]}',
                require("gateway.schema.json").encode(entity)
            )
        end)
    end)

    it("sorts some of very many unknown fields: to sort all takes a second", function()
        local value = {}
        for i = 1, 20000 do
            value["k" .. i] = 1
        end
        assert.equal(10000, #schema.sorted_keys(value, {}))
        assert.equal(20000, #schema.sorted_keys(value))
        assert.equal(101, #select(2, schema.validate({ fields = {} }, value, "")))
    end)
end)
