--- References that are taken away with what they lead to: `on_delete = "null"`.

local database = require("gateway.store.database")
local entity_text = require("gateway.store.entity_text")
local layout = require("gateway.store.layout")
local support = require("test.unit.support.store")

local put, delete, to = support.put, support.delete, support.to

local ID = { id = { type = "string" } }

local function foreign(reference, on_delete)
    return { type = "foreign", reference = reference, on_delete = on_delete }
end

-- boxes stand in rooms; a thing that has lost its box is nowhere
local SCHEMAS = {
    { name = "rooms", fields = { ID } },
    { name = "boxes", fields = { ID, { room = foreign("rooms", "cascade") } } },
    {
        name = "things",
        cache_key = { "box", "label" },
        fields = {
            ID,
            { updated_at = { type = "integer" } },
            { box = foreign("boxes", "null") },
            { other = foreign("boxes", "null") },
            { label = { type = "string" } },
        },
    },
}

describe("a reference that is taken away", function()
    local s

    before_each(function()
        local path = support.folder() .. "/store.db"
        s = assert(database.open(path, { layouts = layout.derive(SCHEMAS) }))
        assert(s:transaction({
            put("rooms", { id = "r" }),
            put("boxes", { id = "b", room = to("r") }),
            put("boxes", { id = "c" }),
            put("things", { id = "t", box = to("b"), other = to("c"), updated_at = 7 }),
            put("things", { id = "u", box = to("c"), label = "l", updated_at = 8 }),
        }))
    end)

    after_each(function()
        s:close()
        support.clean()
    end)

    local function thing(id)
        local row = s:get("things", id)
        return row and entity_text.decode(row.text), row
    end

    local function refused(err, fn, ...)
        local before = s:revision()
        local done, why = s[fn](s, ...)
        assert.is_nil(done)
        assert.equal(err, why.err)
        assert.same(before, s:revision())
        assert.is_true(s:check())
        assert.same({ id = "b" }, thing("t").box)
    end

    it("goes with what was deleted, and nothing else changes", function()
        local _, before = thing("t")
        local _, other = thing("u")
        local done = assert(s:transaction({ delete("boxes", "b") }))
        local entity, row = thing("t")
        assert.same({ id = "t", other = to("c"), updated_at = 7 }, entity)
        assert.equal(done.revision, row.revision)
        assert.same(
            { before.sequence, before.slot, before.generation },
            { row.sequence, row.slot, row.generation }
        )
        assert.same(other, select(2, thing("u")))
        assert.is_true(s:check())
        assert.equal("t", s:list("things", { where = { other = "c" } })[1].id)
        assert.same({}, s:list("things", { where = { box = "b" } }))
        -- both of one, and what is unique with it
        assert(s:transaction({ put("things", { id = "t", box = to("c"), other = to("c") }) }))
        assert(s:transaction({ delete("boxes", "c") }))
        assert.same({ id = "t" }, (thing("t")))
        assert.same({ id = "u", label = "l", updated_at = 8 }, (thing("u")))
    end)

    it("goes with what went by cascade", function()
        assert(s:transaction({ delete("rooms", "r") }))
        assert.is_nil((s:get("boxes", "b")))
        assert.is_nil(thing("t").box)
    end)

    it("is no reference that is put with it: that one leads nowhere", function()
        local moved = put("things", { id = "t", box = to("b"), label = "new" })
        refused("reference missing", "transaction", { delete("boxes", "b"), moved })
        local added = put("things", { id = "v", box = to("b"), label = "v" })
        refused("reference missing", "transaction", { delete("boxes", "b"), added })
        local same = put("things", thing("t"))
        refused("referenced", "transaction", { delete("boxes", "b"), same })
        local free = put("things", { id = "t", label = "new" })
        assert(s:transaction({ delete("boxes", "b"), free }))
        assert.same({ id = "t", label = "new" }, (thing("t")))
    end)

    it("is an error where a file has what refers, and not what it refers to", function()
        local items = { put("boxes", { id = "c" }), put("things", thing("t")) }
        refused("reference missing", "replace", items, "origin")
        items[2] = put("things", { id = "t", other = to("c") })
        assert(s:replace(items, "origin"))
        assert.same({ id = "t", other = to("c") }, (thing("t")))
    end)

    it("has a file checked whole that differs in what others refer to", function()
        assert(s:replace({
            put("boxes", { id = "b" }),
            put("things", { id = "t", box = to("b") }),
        }, "one"))
        local function patch(...)
            return { before = "one", origin = "two", changes = { ... } }
        end
        refused("changed", "patch", patch(delete("boxes", "b")))
        local free = put("things", { id = "t" })
        free.is_there = true
        assert(s:patch(patch(delete("boxes", "b"), free)))
        assert.same({ id = "t" }, (thing("t")))
    end)
end)
