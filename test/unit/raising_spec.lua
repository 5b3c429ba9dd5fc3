--- What the writer raises of the generations that caches compare.

local C = require("sluice.ffi.core").C
local cache_key = require("gateway.entities.cache_key")
local cjson = require("cjson")
local ffi = require("ffi")
local support = require("test.unit.support.writer")

local function id(number)
    return ("00000000-0000-4000-8000-%012d"):format(number)
end

describe("generations", function()
    it("rise one at a time, and all at once", function()
        local all = ffi.new("sluice_core_generations_t")
        local place = C.sluice_core_generations_place("consumers:bob:::::", 18)
        assert.equal(place, C.sluice_core_generations_place("consumers:bob:::::", 18))
        assert.not_equal(place, C.sluice_core_generations_place("consumers:eve:::::", 18))
        assert.equal(0, C.sluice_core_generations_are_used(all))
        assert.equal(0, C.sluice_core_generations_read(all, place))
        assert.equal(1, C.sluice_core_generations_are_used(all))
        assert.equal(1, C.sluice_core_generations_raise(all, place))
        C.sluice_core_generations_raise_all(all)
        assert.equal(2, C.sluice_core_generations_read(all, place))
        assert.equal(1, C.sluice_core_generations_read(all, 0))
        assert.equal(1, C.sluice_core_generations_read(all, C.SLUICE_CORE_GENERATIONS - 1))
    end)
end)

describe("keys of entities", function()
    it("have the kind, five values and a workspace", function()
        assert.equal("consumers:bob:::::", cache_key.of_values("consumers", "bob"))
        local key = cache_key.of_values("a", "b", cjson.null, 3, nil, "f", "w")
        assert.equal("a:b::3::f:w", key)
        assert.equal(
            "a:b:::::",
            cache_key.of_values("a", "b", nil, nil, nil, nil, cache_key.WORKSPACE)
        )
    end)

    it("are of the fields that the schema says, or else of its primary key", function()
        local schema =
            { name = "acls", primary_key = { "id" }, cache_key = { "consumer", "group" } }
        local entity = { id = "i", consumer = { id = "c" }, group = "g" }
        assert.equal("acls:c:g::::", cache_key.of_entity(schema, entity))
        assert.equal("acls::g::::", cache_key.of_entity(schema, { id = "i", group = "g" }))
        assert.equal("acls:i:::::", cache_key.of_entity(schema, { id = "i", group = cjson.null }))
        schema.cache_key = nil
        assert.equal("acls:i:::::", cache_key.of_entity(schema, entity))
        assert.has_error(function()
            cache_key.of_entity(schema, 3)
        end, "key must be a string or an entity table")
    end)
end)

describe("a change", function()
    local place, opened, all

    before_each(function()
        all = ffi.new("sluice_core_generations_t")
        local address = ffi.cast("uintptr_t", ffi.cast("char *", all))
        place = support.place({ generations = tonumber(address) })
        opened = support.open(place)
        -- Somebody keeps something.
        C.sluice_core_generations_read(all, 0)
    end)

    after_each(function()
        opened:close()
        support.clean()
    end)

    local function word(...)
        local key = cache_key.of_values(...)
        return C.sluice_core_generations_read(all, C.sluice_core_generations_place(key, #key))
    end

    local function words()
        return ffi.string(ffi.cast("const char *", all), ffi.sizeof(all))
    end

    local function put(kind, entity)
        return support.put(opened, kind, entity)
    end

    local function make(...)
        return assert(opened:batch({ { ... } })[1])
    end

    it("raises what an entity was, and what it is", function()
        make(put("consumers", { id = id(1), username = "bob" }))
        local bob, eve = word("consumers", "bob"), word("consumers", "eve")
        local own, other = word("consumers", id(1)), word("consumers", id(2))
        make(put("consumers", { id = id(1), username = "eve" }))
        assert.is_true(word("consumers", "bob") > bob)
        assert.is_true(word("consumers", "eve") > eve)
        assert.is_true(word("consumers", id(1)) > own)
        assert.equal(other, word("consumers", id(2)))
        eve = word("consumers", "eve")
        make({ kind = "consumers", delete = id(1) })
        assert.is_true(word("consumers", "eve") > eve)
    end)

    it("raises what is deleted with what it belongs to", function()
        make(put("consumers", { id = id(1), username = "bob" }))
        local key = { id = id(2), key = "secret", consumer = { id = id(1) } }
        make(put("keyauth_credentials", key))
        local before = word("keyauth_credentials", "secret")
        make({ kind = "consumers", delete = id(1) })
        assert.is_true(word("keyauth_credentials", "secret") > before)
    end)

    it("raises before it publishes, and again after", function()
        make(put("consumers", { id = id(1), username = "bob" }))
        local before = word("consumers", "bob")
        local images, seen = opened.images, {}
        local publish = images.publish
        function images.publish(...)
            seen.before = word("consumers", "bob")
            publish(...)
            seen.after = word("consumers", "bob")
        end
        make(put("consumers", { id = id(1), username = "bob", custom_id = "b" }))
        images.publish = nil
        assert.is_true(seen.before > before)
        assert.equal(seen.before, seen.after)
        assert.is_true(word("consumers", "bob") > seen.after)
    end)

    it("raises nothing where it is refused", function()
        make(put("consumers", { id = id(1), username = "bob" }))
        local before = words()
        local made = opened:batch({ { put("consumers", { id = id(2), username = "bob" }) } })[1]
        assert.is_string(made.err)
        assert.equal(before, words())
    end)

    it("raises all where kinds change that images do not have, and for many entities", function()
        local before = word("consumers", "nobody")
        make(put("key_sets", { id = id(1), name = "set" }))
        assert.is_true(word("consumers", "nobody") > before)
        before = word("consumers", "nobody")
        make({ kind = "key_sets", delete = id(1) })
        assert.is_true(word("consumers", "nobody") > before)
        before = word("consumers", "nobody")
        local changes = {}
        for i = 1, 501 do
            changes[i] = put("consumers", { id = id(i), username = "u" .. i })
        end
        make(unpack(changes))
        assert.is_true(word("consumers", "nobody") > before)
    end)

    it("raises all where the configuration is replaced, and where a writer begins", function()
        local before = word("consumers", "nobody")
        local items = { { kind = "consumers", put = { id = id(9), username = "x" } } }
        assert(opened:replace(items))
        assert.is_true(word("consumers", "nobody") > before)
        before = word("consumers", "nobody")
        opened:close()
        opened = support.open(place)
        assert.is_true(word("consumers", "nobody") > before)
    end)

    it("reads no entity where nobody keeps anything, and raises all if somebody begins", function()
        all.is_used = 0
        local before = words()
        make(put("consumers", { id = id(1), username = "bob" }))
        assert.equal(before, words())
        local images = opened.images
        local publish, begun = images.publish, nil
        function images.publish(...)
            begun = word("services", "nobody")
            publish(...)
        end
        make(put("consumers", { id = id(2), username = "eve" }))
        images.publish = nil
        assert.equal(begun + 1, word("services", "nobody"))
    end)
end)
