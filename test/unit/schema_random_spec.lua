--- Generated checks beside a walk over the schema: random values, right ones and wrong ones.
--- `SEED` repeats a run.

local cjson = require("cjson")
local entities = require("gateway.entities")
local generated = require("gateway.schema.generated")
local is_equal = require("gateway.schema.equal")
local pem = require("test.unit.support.pem")
local schema = require("gateway.schema")

local registry = require("test.unit.support.config").registry

local CASES = 20000
local seed = require("test.unit.support.seed")("schema_random")
local NULL = cjson.null

-- What fields of all kinds may be given.
local ODD = {
    NULL,
    true,
    false,
    0,
    1,
    -1,
    0.5,
    80,
    65536,
    1 / 0,
    "",
    "a",
    "a.example",
    "*.a.example",
    "a:1",
    "/",
    "/a",
    "//",
    "/%41",
    "~/a(b",
    "GET",
    "127.0.0.1",
    "::1",
    "10.0.0.0/8",
    "http://a:81/b?c",
    "https://a",
    "{vault://env/a}",
    "{vault://env/a} ",
    "00000000-0000-4000-8000-000000000001",
    "\255",
    {},
    { "a" },
    { "a", "a" },
    { "http", "https" },
    { "http", "grpc" },
    { 1, 2, 3 },
    { NULL },
    { [2] = "a" },
    { "a", b = "c" },
    { a = "b" },
    { a = { "b" } },
    { ["a b"] = { "c" } },
    { host = { "a" } },
    { id = "a" },
    { id = "", name = "a" },
    { username = "a" },
    { id = 1 },
}

ODD[#ODD + 1], ODD[#ODD + 2] = pem.pair("ec", { is_ca = true })

-- Rules and types that no kind of ours has.
local OTHERS = {
    name = "others",
    fields = {
        {
            tally = {
                type = "map",
                keys = { type = "string", len_eq = 1 },
                values = {
                    type = "integer",
                    gt = 0,
                },
            },
        },
        {
            pairs = {
                type = "array",
                len_max = 2,
                elements = {
                    type = "record",
                    fields = {
                        { a = { type = "number", ne = 1, default = 0 } },
                        {
                            b = {
                                type = "set",
                                elements = { type = "string", not_one_of = { "a" } },
                            },
                        },
                    },
                    entity_checks = { { mutually_required = { "a", "b" } } },
                },
            },
        },
        { maybe = { type = "record", required = false, fields = { { c = { type = "any" } } } } },
        { always = { type = "record", fields = { { d = { type = "boolean", default = true } } } } },
        { lower = { type = "string", normalize = string.lower, match = "%a", len_min = 0 } },
        { free = { type = "record" } },
        { secret = { type = "string", referenceable = true, not_match = "^/" } },
        {
            thrower = {
                type = "string",
                custom_validator = function(text)
                    return text ~= "/" or error("thrown")
                end,
            },
        },
        { nobody = { type = "foreign", reference = "routes", eq = NULL } },
    },
    entity_checks = {
        {
            custom_entity_check = {
                fn = function(entity)
                    return entity.lower ~= "a.example" or nil, "is a.example"
                end,
            },
        },
        { distinct = { "lower", "secret" } },
        { only_one_of = { "free", "maybe" } },
        {
            conditional = {
                if_field = "lower",
                if_match = { eq = "get" },
                then_field = "secret",
                then_match = { required = true, len_min = 2 },
            },
        },
    },
    shorthand_fields = {
        {
            short = {
                type = "string",
                func = function(text)
                    return { lower = text, free = text == "a" and NULL or { e = text } }
                end,
            },
        },
        {
            thrown = {
                type = "string",
                func = function(text)
                    error(text)
                end,
            },
        },
    },
}

local function schemas()
    local found = { OTHERS }
    for _, kind in ipairs(entities.kinds) do
        found[#found + 1] = entities.get(kind)
    end
    for _, plugin in ipairs(registry:list()) do
        found[#found + 1] = entities.for_plugin(plugin)
    end
    return found
end

local function one_of(list)
    return list[math.random(#list)]
end

-- Mostly one that the field takes.
local function right_one(field)
    local value
    for _ = 1, 40 do
        value = one_of(ODD)
        if not schema.first_error(field, value) then
            break
        end
    end
    return value
end

local random_record

-- Mostly what the field takes.
local function random_value(field, depth)
    local kind, dice = field.type, math.random(20)
    if dice == 1 or depth > 4 then
        return one_of(ODD)
    elseif kind == "record" and field.fields then
        return random_record(field, depth)
    elseif (kind == "array" or kind == "set") and dice > 3 then
        local out = {}
        for i = 1, math.random(0, 3) do
            out[i] = random_value(field.elements, depth + 1)
        end
        return out
    elseif kind == "map" and dice > 3 then
        local key = random_value(field.keys, depth + 1)
        key = type(key) == "string" and key or "a"
        return { [key] = random_value(field.values, depth + 1) }
    elseif field.one_of and dice > 3 then
        return one_of(field.one_of)
    elseif field.between and dice > 3 then
        return math.random(field.between[1], math.min(field.between[2], 2 ^ 30))
    elseif kind == "boolean" and dice > 3 then
        return dice % 2 == 0
    end
    return right_one(field)
end

local function entries_of(definition)
    local entries = {}
    for _, list in ipairs({ definition.fields, definition.shorthand_fields or {} }) do
        for _, entry in ipairs(list) do
            entries[#entries + 1] = entry
        end
    end
    return entries
end

random_record = function(definition, depth)
    local value = {}
    for _, entry in ipairs(entries_of(definition)) do
        local name, field = next(entry)
        local is_wanted = field.required and field.default == nil and math.random(20) > 1
        if is_wanted or math.random(12) == 1 then
            value[name] = random_value(field, depth + 1)
        end
    end
    if math.random(40) == 1 then
        value[one_of({ "unknown", 1, 7 })] = one_of(ODD)
    end
    return value
end

describe("generated checks", function()
    it("take what a walk takes, and make the same of it", function()
        math.randomseed(seed)
        local all, taken = schemas(), {}
        for case = 1, CASES do
            local definition = all[case % #all + 1]
            local value = random_record(definition, 1)
            local what = ("SEED=%d, case %d, %s"):format(seed, case, definition.name)
            local wanted = schema.walk(definition, value, "")
            local ok, filled = pcall(generated.record(definition), value)
            filled = ok and value[1] == nil and filled or nil
            assert(is_equal(wanted, filled), what)
            taken[definition] = (taken[definition] or 0) + (filled and 1 or 0)
        end
        for _, kind in ipairs({ "services", "routes", "upstreams", "consumers", "targets" }) do
            assert(taken[entities.get(kind)] >= 10, kind)
        end
        assert(taken[OTHERS] >= 10)
    end)
end)
