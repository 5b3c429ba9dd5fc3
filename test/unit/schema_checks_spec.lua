--- Checks over several fields of a record.

local cjson = require("cjson")
local records = require("test.unit.support.records")

local NULL = cjson.null

local record, errors_of = records.record, records.errors_of

local function throws()
    error("boom")
end

-- Long on purpose: one table of cases after the other, each a line or two.
describe("gateway.schema.entity_checks", function()
    local function check(name, argument)
        local fields = {}
        for i, field in ipairs({ "a", "b", "c" }) do
            fields[i] = { [field] = { type = "string", len_min = 0 } }
        end
        fields[4] = { r = record({ { d = { type = "string" } } }) }
        fields[5] = { s = { type = "set", elements = { type = "string" } } }
        return record(fields, { entity_checks = { { [name] = argument } } })
    end
    local conditional = {
        if_field = "a",
        if_match = { one_of = { "x", "y" } },
        then_field = "r.d",
        then_match = { required = true },
    }
    local forbids = {
        if_field = "a",
        if_match = { not_one_of = { "x" } },
        then_field = "b",
        then_match = { eq = NULL },
    }
    local elements = {
        if_field = "s",
        if_match = { elements = { type = "string", not_one_of = { "tls" } } },
        then_field = "b",
        then_match = { len_eq = 0 },
        then_err = "b needs tls in %s",
    }
    local either = {
        if_field = "s",
        if_match = { contains = "x" },
        then_at_least_one_of = { "a", "b" },
        then_err = "x wants one of %s",
        else_match = { contains = "y" },
        else_then_at_least_one_of = { "a" },
    }
    local custom = {
        field_sources = { "a" },
        fn = function(entity)
            return entity.a ~= "bad" or nil, "a is bad"
        end,
    }
    local some = "at least one of these fields must be non-empty: 'a', 'r.d'"
    local exactly = "exactly one of these fields must be non-empty: 'a', 'b'"
    local all = "all or none of these fields must be set: 'a', 'b'"
    local one = "only one or none of these fields must be set: 'a', 'b'"
    local sets = "only one or none of these fields must be set: ('a'), ('b', 'c')"
    local needed = "r.d: required field missing (given the value of field 'a')"
    for i, case in ipairs({
        { "at_least_one_of", { "a", "r.d" }, { r = { d = "1" } }, "" },
        { "at_least_one_of", { "a", "r.d" }, { a = "" }, ": " .. some },
        { "at_least_one_of", { "a", "r.d" }, { a = 1 }, "a: expected a string" },
        { "only_one_of", { "a", "b" }, { a = "1" }, "" },
        { "only_one_of", { "a", "b" }, { a = "1", b = "1" }, ": " .. exactly },
        { "only_one_of", { "a", "b" }, {}, ": " .. exactly },
        { "mutually_required", { "a", "b" }, {}, "" },
        { "mutually_required", { "a", "b" }, { a = "1", b = "2" }, "" },
        { "mutually_required", { "a", "b" }, { b = "2" }, ": " .. all },
        { "mutually_exclusive", { "a", "b" }, { a = "1" }, "" },
        { "mutually_exclusive", { "a", "b" }, { a = "1", b = "2" }, ": " .. one },
        {
            "mutually_exclusive_sets",
            { set1 = { "a" }, set2 = { "b", "c" } },
            { b = "1", c = "1" },
            "",
        },
        {
            "mutually_exclusive_sets",
            { set1 = { "a" }, set2 = { "b", "c" } },
            { a = "1", c = "1" },
            ": " .. sets,
        },
        { "distinct", { "a", "b" }, { a = "1", b = "2" }, "" },
        { "distinct", { "a", "b" }, {}, "" },
        {
            "distinct",
            { "a", "b" },
            { a = "1", b = "1" },
            ": values of these fields must be distinct: 'a', 'b'",
        },
        { "conditional", conditional, {}, "" },
        { "conditional", conditional, { a = "z" }, "" },
        { "conditional", conditional, { a = "x", r = { d = "1" } }, "" },
        { "conditional", conditional, { a = "x" }, needed },
        { "conditional", conditional, { a = "x", c = 1 }, "c: expected a string" },
        { "conditional", forbids, { a = "x", b = "1" }, "" },
        { "conditional", forbids, { a = "z" }, "" },
        {
            "conditional",
            forbids,
            { a = "z", b = "1" },
            "b: value must be null (given the value of field 'a')",
        },
        { "conditional", elements, { s = { "tls" }, b = "1" }, "" },
        { "conditional", elements, { s = { "tcp" } }, "" },
        { "conditional", elements, { s = { "tcp" }, b = "1" }, "b: b needs tls in s" },
        { "conditional_at_least_one_of", either, {}, "" },
        { "conditional_at_least_one_of", either, { s = { "z" } }, "" },
        { "conditional_at_least_one_of", either, { s = { "x" }, b = "1" }, "" },
        { "conditional_at_least_one_of", either, { s = { "x" } }, ": x wants one of 'a', 'b'" },
        {
            "conditional_at_least_one_of",
            either,
            { s = { "y" }, b = "1" },
            ": at least one of these fields must be non-empty: 'a'",
        },
        { "custom_entity_check", custom, { a = "good" }, "" },
        { "custom_entity_check", custom, { a = "bad" }, ": a is bad" },
        { "custom_entity_check", custom, { a = "bad", b = 1 }, "b: expected a string" },
    }) do
        it(("%d: %s"):format(i, case[1]), function()
            local definition = check(case[1], case[2])
            assert.equal(case[4], errors_of(definition, case[3]))
            -- a second time: what the first one compiled is used again
            assert.equal(case[4], errors_of(definition, case[3]))
        end)
    end

    it("reports a check that throws", function()
        local definition = check("custom_entity_check", { fn = throws })
        assert.matches("^: cannot be checked: .*boom$", errors_of(definition, {}))
    end)
end)
