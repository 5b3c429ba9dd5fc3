--- What clients of the admin listener send as texts, and are told when it is wrong.

local cjson = require("cjson")
local refusals = require("gateway.change.refusals")
local texts = require("gateway.schema.texts")

require("test.unit.support.config") -- loads the plugins, which add kinds

local NULL = cjson.null

local DEFINITION = {
    fields = {
        { word = { type = "string" } },
        { flag = { type = "boolean" } },
        { count = { type = "integer" } },
        { share = { type = "number" } },
        { list = { type = "array", elements = { type = "integer" } } },
        { map = { type = "map", keys = { type = "string" }, values = { type = "integer" } } },
        { inner = { type = "record", fields = { { flag = { type = "boolean" } } } } },
    },
}

describe("a form's texts", function()
    local function typed(name, value)
        return texts.typed(DEFINITION, { [name] = value })[name]
    end

    it("become what the schema says", function()
        for _, case in ipairs({
            { "word", "5", "5" },
            { "word", "true", "true" },
            { "flag", "true", true },
            { "flag", "false", false },
            { "flag", "yes", "yes" },
            { "count", "5", 5 },
            { "count", "-5", -5 },
            { "count", "0x10", "0x10" },
            { "count", " 5", " 5" },
            { "share", "0.5", 0.5 },
            { "share", "1e9", "1e9" },
            { "list", "5", { 5 } },
            { "list", { "5", "x" }, { 5, "x" } },
            { "map", { a = "5" }, { a = 5 } },
            { "inner", { flag = "true", other = "5" }, { flag = true, other = "5" } },
            { "inner", "5", "5" },
            { "other", { "5" }, { "5" } },
        }) do
            assert.same(case[3], typed(case[1], case[2]))
        end
    end)

    it("are null where they are empty", function()
        for _, name in ipairs({ "word", "flag", "count", "list", "map", "inner", "other" }) do
            assert.equal(NULL, typed(name, ""))
        end
    end)
end)

describe("a refusal", function()
    it("has the fields as they stand in the entity", function()
        local found = refusals.invalid({
            { keys = {}, message = "one" },
            { keys = { "a" }, message = "two" },
            { keys = { "b", "c" }, message = "three" },
            { keys = { "d", 2 }, message = "four" },
            { keys = { "b" }, message = "five" },
            { keys = { "a", "e" }, message = "six" },
        })
        assert.same({
            ["@entity"] = { "one" },
            a = { ["@entity"] = { "two" }, e = "six" },
            b = { c = "three", ["@entity"] = { "five" } },
            d = { NULL, NULL, "four" },
        }, found.fields)
        assert.equal(
            "6 schema violations (one; a: two; b.c: three; d.3: four; b: five; a.e: six)",
            found.message
        )
    end)

    it("says which values another entity has, but no secret", function()
        local entity = { name = "key-auth", service = { id = "s" }, key = "sesame" }
        local err = { err = "unique violation", kind = "plugins", field = "name, route, service" }
        local found = refusals.of(err, entity)
        local message =
            'UNIQUE violation detected on \'{name="key-auth",route=null,service={id="s"}}\''
        assert.equal(message, found.message)
        assert.same({ name = "key-auth", route = NULL, service = { id = "s" } }, found.fields)
        err = { err = "unique violation", kind = "keyauth_credentials", field = "key" }
        found = refusals.of(err, entity)
        assert.equal("UNIQUE violation detected on '{key=\"***\"}'", found.message)
    end)

    it("has a status for each word of the store", function()
        for word, status in pairs({
            full = 507,
            ["no memory"] = 507,
            ["not ready"] = 503,
            ["read only"] = 503,
            busy = 503,
            corrupt = 500,
            ["disk error"] = 500,
        }) do
            local found = refusals.of({ err = word, message = "why" })
            assert.same({ status = status, message = "why", name = word }, found)
        end
    end)

    it("of a limit of images is about a field", function()
        local err = { err = "unbuildable", kind = "consumers", id = "x", field = "custom_id" }
        err.reason, err.message = "is too long", "consumers 'x': custom_id is too long"
        local found = refusals.of(err)
        assert.same({ custom_id = "is too long" }, found.fields)
        assert.same({ 400, 2 }, { found.status, found.code })
    end)
end)
