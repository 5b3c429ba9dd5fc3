--- The history of the store: what is noted, and the way back.

local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local layout = require("gateway.store.layout")
local support = require("test.unit.support.store")

local put, delete, to = support.put, support.delete, support.to

describe("the history of the store", function()
    local s, path

    before_each(function()
        path = support.folder() .. "/store/store.db"
        s = assert(support.open(path, { history = 5 }))
    end)

    after_each(function()
        s:close()
        support.clean()
    end)

    local function by(who, changes)
        changes.by = who
        return assert(s:transaction(changes)).revision
    end

    -- Everything that the store holds, as text.
    local function state()
        local found = {}
        for _, kind in ipairs({ "services", "routes" }) do
            for _, row in ipairs(assert(s:list(kind, {}))) do
                found[#found + 1] = kind .. " " .. row.id .. " " .. row.text
            end
        end
        table.sort(found)
        return found
    end

    local function go_back(revision)
        local changes, now = s:changes_back(revision)
        if not changes then
            return nil, now
        end
        changes.at_revision = now.revision
        return s:transaction(changes)
    end

    it("tells who changed what, the newest first", function()
        local from = os.time()
        by("ann", { put("services", { id = "s", name = "a" }), put("services", { id = "t" }) })
        by("bob", { put("services", { id = "s", name = "b" }), delete("services", "t") })
        local page, offset = s:changes_made({ size = 1 })
        assert.equal(1, #page)
        assert.same({ 2, "bob", 0, 1, 1 }, {
            page[1].revision,
            page[1].by,
            page[1].created,
            page[1].changed,
            page[1].deleted,
        })
        assert.is_true(from - 1 <= page[1].at and page[1].at <= os.time() + 1)
        page, offset = s:changes_made({ size = 1, offset = offset })
        assert.same({ 1, "ann", 2 }, { page[1].revision, page[1].by, page[1].created })
        assert.is_nil(offset)
        assert.equal("invalid size", select(2, s:changes_made({ size = 0 })).err)
        assert.equal("invalid offset", select(2, s:changes_made({ offset = "x" })).err)
    end)

    it("goes on where none begins, and is forgotten where none is kept", function()
        local function open_again(opts)
            s:close()
            s = assert(support.open(path, opts))
        end
        local function count()
            return #assert(s:changes_made({}))
        end
        by("ann", { put("services", { id = "s", name = "a" }) })
        local before = state()
        open_again({ history = 5, begins_history = false })
        by("file", { put("services", { id = "s", name = "b" }) })
        assert.equal(2, count())
        open_again({ history = 5 })
        assert(go_back(1))
        assert.same(before, state())
        open_again({ history = 0 })
        open_again({ history = 5, begins_history = false })
        by("file", { put("services", { id = "s", name = "c" }) })
        assert.equal(0, count())
    end)

    it("has what a revision changed, and the first of it by name", function()
        by("ann", { put("services", { id = "s", name = "a" }), put("services", { id = "t" }) })
        by("ann", { put("services", { id = "s", name = "b" }) })
        by("ann", { delete("services", "s"), put("services", { id = "t", name = "t" }) })
        local function changed(revision)
            local list = {}
            for i, each in ipairs(assert(s:changed_in(revision))) do
                local before = each.before and entity_text.decode(each.before)
                local after = each.after and entity_text.decode(each.after)
                list[i] = { before and before.name or false, after and after.name or false }
            end
            return list
        end
        assert.same({ { false, "a" }, { false, false } }, changed(1))
        assert.same({ { "a", "b" } }, changed(2))
        assert.same({ { "b", false }, { false, "t" } }, changed(3))
        local page = assert(s:changes_made({}))
        local first = page[3].named
        assert.equal("a", entity_text.decode(first[1].text).name)
        assert.equal("created", first[1].what)
        local _, err = s:changed_in(9)
        assert.same({ "not found", "there is no revision 9: the history has 1 to 3" }, {
            err.err,
            err.message,
        })
        assert.equal("not found", select(2, s:changed_in(0)).err)
        _, err = s:changes_back(9)
        assert.equal("there is no revision 9 to go back to: there are 0 to 3", err.message)
    end)

    it("leads back to before the file that filled the store", function()
        local route = put("routes", { id = "r", service = to("s") })
        local items = { put("services", { id = "s" }), route }
        assert.equal(1, assert(s:replace(items, nil, "a file")).revision)
        local filled = state()
        local page = assert(s:changes_made())
        assert.same({ 1, "a file", 2 }, { page[1].revision, page[1].by, page[1].created })
        assert.equal(2, assert(go_back(0)).revision)
        assert.same({}, state())
        assert.equal(3, assert(go_back(1)).revision)
        assert.same(filled, state())
    end)

    it("leads back to what was, cascades and places among them", function()
        local states = { [0] = state() }
        by("a", {
            put("services", { id = "s", name = "one", host = "h" }),
            put("services", { id = "t" }),
        })
        states[1] = state()
        by("a", { put("routes", { id = "r", service = to("s") }) })
        states[2] = state()
        by("a", {
            put("services", { id = "s", name = "two" }),
            put("services", { id = "u", name = "one" }),
        })
        states[3] = state()
        by("a", { delete("routes", "r"), delete("services", "s") })
        states[4] = state()
        for _, revision in ipairs({ 1, 3, 0, 2, 4 }) do
            -- The history goes on, so that each step back can be taken back.
            s:close()
            s = assert(support.open(path, { history = 100 }))
            assert(go_back(revision))
            assert.same(states[revision], state())
        end
        assert(go_back(2))
        local places = {}
        for i, row in ipairs(s:list("services", {})) do
            places[i] = row.id
        end
        assert.same({ "s", "t" }, places)
        assert.is_true(s:check())
    end)

    it("refuses what it does not reach, and what was overtaken", function()
        for i = 1, 8 do
            by("a", { put("services", { id = "s", name = "n" .. i }) })
        end
        assert(s:compact(0))
        assert.equal(5, #s:changes_made({}))
        assert.equal("too old", select(2, go_back(2)).err)
        assert.equal("not found", select(2, go_back(9)).err)
        assert(go_back(3))
        assert.equal("n3", entity_text.decode(s:get("services", "s").text).name)
        local changes, now = s:changes_back(4)
        by("b", { put("services", { id = "z" }) })
        changes.at_revision = now.revision
        assert.equal("changed", select(2, s:transaction(changes)).err)
    end)

    it("says of a revision that is not there what there is", function()
        local function said(verb, revision)
            return select(2, s[verb](s, revision)).message
        end
        s:close()
        -- With the kind that is no file's.
        s = assert(support.open(path, { history = 5, layouts = layout.derive(entities.stored()) }))
        assert.equal("no changes yet", said("changes_back", 1))
        assert.equal("no changes yet", said("changed_in", 0))
        by("a", { put("services", { id = "s" }) })
        by(nil, { put("names", { id = "x", name = "x", addresses = {} }) })
        assert.equal("revision 2 changed no entity: the history has 1 to 1", said("changed_in", 2))
        assert.equal("there is no revision 3: the history has 1 to 1", said("changed_in", 3))
        assert.equal("there is no revision 0: the history has 1 to 1", said("changed_in", 0))
        s:close()
        s = assert(support.open(path))
        assert.equal("the store keeps no history", said("changed_in", 1))
        assert.equal("the store keeps no history", said("changes_back", 1))
    end)

    it("is forgotten where a writer keeps none", function()
        by("a", { put("services", { id = "s" }) })
        s:close()
        s = assert(support.open(path))
        assert.same({}, s:changes_made({}))
        by("a", { put("services", { id = "t" }) })
        assert.equal("too old", select(2, go_back(1)).err)
        s:close()
        s = assert(support.open(path, { history = 5 }))
        assert.equal("too old", select(2, go_back(1)).err)
        by("a", { put("services", { id = "u" }) })
        assert(go_back(2))
        assert.is_nil((s:get("services", "u")))
    end)

    it("has replacements, and nothing of internal kinds", function()
        by("a", { put("services", { id = "s" }) })
        assert(s:replace({ put("services", { id = "t" }) }, "origin", "file"))
        local page = s:changes_made({})
        assert.same({ "file", 1, 1 }, { page[1].by, page[1].created, page[1].deleted })
        assert(go_back(1))
        assert.is_truthy((s:get("services", "s")))
        assert.is_nil((s:get("services", "t")))
    end)
end)
