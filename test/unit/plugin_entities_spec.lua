--- Plugins' own entities: their schemas as Kong has them, and what images find them by.

local C = require("sluice.ffi.core").C
local ffi = require("ffi")
local layout = require("gateway.store.layout")
local of_plugin = require("gateway.entities.of_plugin")
local records = require("gateway.image.records")
local rows = require("gateway.image.rows")
local store_support = require("test.unit.support.store")
local support = require("test.unit.support.writer")
local typedefs = require("gateway.schema.typedefs")

local function id(number)
    return ("00000000-0000-4000-8000-%012d"):format(number)
end

local function schema(more)
    local made = {
        name = "gadgets",
        primary_key = { "id" },
        endpoint_key = "name",
        fields = {
            { id = typedefs.uuid },
            { name = { type = "string", unique = true } },
            { serial = { type = "integer", unique = true } },
            { owner = { type = "foreign", reference = "consumers", on_delete = "cascade" } },
            { place = { type = "string" } },
            { twin = { type = "foreign", reference = "consumers", on_delete = "null" } },
        },
    }
    for key, value in pairs(more or {}) do
        made[key] = value
    end
    return made
end

describe("the schema of a plugin's entities", function()
    it("is the same for the same", function()
        local given = schema()
        assert.equal(of_plugin.read(given), of_plugin.read(given))
        assert.is_nil(given.of_plugin)
    end)

    it("has a ttl where it says so", function()
        local made = of_plugin.read(schema({ ttl = true }))
        assert.is_true(made.expires)
        assert.is_table(made.fields[#made.fields].ttl)
        assert.is_nil(of_plugin.read(schema()).expires)
    end)

    it("has a unique field where that is its cache key", function()
        local made = of_plugin.read(schema({ cache_key = { "place" } }))
        assert.is_true(made.fields[5].place.unique)
    end)

    it("says what is not supported", function()
        for words, more in pairs({
            ['primary_key: only { "id" } is supported'] = { primary_key = { "id", "name" } },
            ["endpoint_key: there is no field 'nmae'"] = { endpoint_key = "nmae" },
            ["cache_key: there is no field 'x'"] = { cache_key = { "x" } },
            ["cache_key: names of fields expected"] = { cache_key = {} },
            ["fields: table expected"] = { fields = 1 },
            ["fields: `{ name = definition }` expected"] = { fields = { { 1 } } },
            ["field 'x': on_delete: cascade, null or restrict expected"] = {
                fields = {
                    { id = typedefs.uuid },
                    { name = { type = "string" } },
                    { x = { type = "foreign", reference = "routes", on_delete = "explode" } },
                },
            },
            ["field 'x': reference: string expected"] = {
                fields = {
                    { id = typedefs.uuid },
                    { name = { type = "string" } },
                    { x = { type = "foreign" } },
                },
            },
        }) do
            local made, err = of_plugin.read(schema(more))
            assert.is_nil(made)
            assert.equal("'gadgets': " .. words, err)
        end
    end)

    it("comes in a list or by name", function()
        local a, b = schema({ name = "a" }), schema({ name = "b" })
        assert.same({ a, b }, of_plugin.list({ a, b }))
        assert.same({ b, a }, of_plugin.list({ second = a, first = b }))
        a.fields[#a.fields + 1] = { b = { type = "foreign", reference = "b" } }
        assert.same({ b, a }, of_plugin.list({ a, b }))
        local found, err = of_plugin.list({ 1 })
        assert.is_nil(found)
        assert.equal("schemas with a name expected", err)
    end)
end)

describe("images find plugins' entities", function()
    local place, opened, by_kind, uuid

    before_each(function()
        local schemas = store_support.schemas()
        schemas[#schemas + 1] =
            of_plugin.read(schema({ name = "gizmos", cache_key = { "owner", "place" } }))
        schemas[#schemas + 1] = of_plugin.read(schema({ ttl = true }))
        local layouts = layout.derive(schemas)
        by_kind = layout.by_kind(layouts)
        place = support.place({ layouts = layouts })
        opened = support.open(place)
        uuid = rows.uuid_bytes(opened.store:revision().uuid)
    end)

    after_each(function()
        opened:close()
        support.clean()
    end)

    local function make(...)
        local results, err = opened:batch({ { ... } })
        assert.is_table(results, err and err.message)
        assert.is_nil(results[1].err, results[1].message)
    end

    local function put(kind, entity)
        return support.put(opened, kind, entity)
    end

    local function body(found)
        if found.record == nil then
            return nil
        end
        local text = C.sluice_core_body(found)
        return ffi.string(text.data, text.length):match('"name":"([^"]*)"')
    end

    -- The name of what a look-up finds.
    local function find(name, key)
        return (
            support.with_view(place, function(view)
                local digest = records.digest(uuid, name, key)
                return body(C.sluice_core_by_key(view, C.SLUICE_CORE_ENTITY, digest, #digest))
            end)
        )
    end

    local function find_id(kind, number)
        return (
            support.with_view(place, function(view)
                local of, bytes = by_kind[kind].number, rows.uuid_bytes(id(number))
                return body(C.sluice_core_of_kind(view, C.SLUICE_CORE_ENTITY, of, bytes))
            end)
        )
    end

    local function check_all()
        assert.equal("one", find("gadgets.name", "one"))
        assert.equal("one", find("gadgets.serial", "7"))
        assert.equal("two", find("gadgets.name", "two"))
        assert.equal("other", find("gizmos.name", "other"))
        assert.equal("other", find("gizmos.cache_key", id(9) .. ":here"))
        -- none of another field, or of another kind
        assert.is_nil(find("gadgets.serial", "one"))
        assert.is_nil(find("gizmos.name", "one"))
        assert.is_nil(find("gadgets.name", "\0"))
        -- one id is two entities'
        assert.equal("one", find_id("gadgets", 1))
        assert.equal("other", find_id("gizmos", 1))
        assert.is_nil(find_id("gizmos", 2))
    end

    local function fill()
        make(
            put("consumers", { id = id(9), username = "u" }),
            put("gadgets", { id = id(1), name = "one", serial = 7 }),
            put("gadgets", { id = id(2), name = "two" }),
            put("gizmos", { id = id(1), name = "other", owner = { id = id(9) }, place = "here" })
        )
    end

    it("by each of their look-ups, in a delta and in a base", function()
        fill()
        check_all()
        opened:close()
        place.forget()
        opened = support.open(place)
        check_all()
        assert.equal(support.built(opened), (support.published(place)))
    end)

    it("by what they have now", function()
        fill()
        make(
            put("gadgets", { id = id(1), name = "uno", serial = 8 }),
            put("gadgets", { id = id(2), name = "one" })
        )
        assert.equal("uno", find("gadgets.serial", "8"))
        assert.is_nil(find("gadgets.serial", "7"))
        assert.equal("one", find("gadgets.name", "one"))
        assert.equal("uno", find_id("gadgets", 1))
        make({ kind = "gadgets", delete = id(1) })
        assert.is_nil(find("gadgets.name", "uno"))
        assert.is_nil(find_id("gadgets", 1))
        assert.equal("other", find_id("gizmos", 1))
    end)

    it("no more once what they belong to is gone", function()
        fill()
        make({ kind = "consumers", delete = id(9) })
        assert.is_nil(find("gizmos.cache_key", id(9) .. ":here"))
        assert.is_nil(find_id("gizmos", 1))
    end)

    it("without their reference where that goes alone", function()
        fill()
        make(put("gadgets", {
            id = id(3),
            name = "three",
            twin = { id = id(9) },
            created_at = 5,
        }))
        make({ kind = "consumers", delete = id(9) })
        local row = assert(opened.store:get("gadgets", id(3)))
        assert.equal('{"id":"' .. id(3) .. '","name":"three","created_at":5}', row.text)
        assert.same({}, opened.store:list("gadgets", { where = { twin = id(9) } }))
        assert.equal("three", find_id("gadgets", 3))
        assert.is_true(opened.store:check())
        assert.equal(support.built(opened), (support.published(place)))
    end)

    it("in as many slots as there are kinds", function()
        assert.equal(2, by_kind.gadgets.turns)
        assert.same({ 0, 1 }, { by_kind.gizmos.turn, by_kind.gadgets.turn })
        assert.is_nil(by_kind.keyauth_credentials.turn)
        assert.same({}, by_kind.keyauth_credentials.look_ups)
    end)
end)
