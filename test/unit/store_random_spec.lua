--- The store against a plain table: random transactions, what each answers, and what stands then.
--- `SEED` repeats a run.

local database = require("gateway.store.database")
local entity_text = require("gateway.store.entity_text")
local layout = require("gateway.store.layout")
local support = require("test.unit.support.store")

local ROUNDS = 1500
local seed = require("test.unit.support.seed")("store_random")
local ID = { id = { type = "string" } }
local NAME = { name = { type = "string", unique = true } }
local TAGS = { tags = { type = "set" } }

local function foreign(reference, on_delete)
    return { type = "foreign", reference = reference, on_delete = on_delete }
end

-- things refuse that their parent goes; notes go with their thing, and with their parent, and lose
-- their twin
local SCHEMAS = {
    { name = "parents", endpoint_key = "name", fields = { ID, NAME, TAGS } },
    {
        name = "things",
        endpoint_key = "label",
        cache_key = { "parent", "label" },
        fields = { ID, { parent = foreign("parents") }, { label = { type = "string" } }, TAGS },
    },
    {
        name = "notes",
        endpoint_key = "name",
        fields = {
            ID,
            NAME,
            { thing = foreign("things", "cascade") },
            { parent = foreign("parents", "cascade") },
            { twin = foreign("parents", "null") },
        },
    },
}
local KINDS = { "parents", "things", "notes" }
local UNIQUE = {
    parents = { { "name" } },
    things = { { "parent", "label" } },
    notes = { { "name" } },
}
local FOREIGN = {
    parents = {},
    things = { parent = { "parents" } },
    notes = {
        thing = { "things", "cascade" },
        parent = { "parents", "cascade" },
        twin = { "parents", "null" },
    },
}

-- state: kind -> id -> { entity, sequence, slot, generation }
local function copy(state)
    local out = {}
    for _, kind in ipairs(KINDS) do
        out[kind] = {}
        for id, row in pairs(state[kind]) do
            out[kind][id] = row
        end
    end
    return out
end

-- Removes what refers by cascade to something that is not there, until nothing more goes.
local function cascade(state, kept)
    local again = true
    while again do
        again = false
        for _, kind in ipairs(KINDS) do
            for id, row in pairs(state[kind]) do
                for field, target in pairs(FOREIGN[kind]) do
                    local to = row.entity[field]
                    local is_gone = to and not state[target[1]][to.id] and not kept[row]
                    if is_gone and target[2] == "cascade" then
                        state[kind][id], again = nil, true
                    end
                end
            end
        end
    end
end

-- Takes references away that lead to nothing, where their kind wants that; not from what was put.
local function clear(state, kept)
    for id, row in pairs(state.notes) do
        local to = row.entity.twin
        if to and not state.parents[to.id] and not kept[row] then
            local entity = {}
            for name, value in pairs(row.entity) do
                entity[name] = name ~= "twin" and value or nil
            end
            state.notes[id] = { entity = entity }
        end
    end
end

local function broken_reference(state)
    for _, kind in ipairs(KINDS) do
        for _, row in pairs(state[kind]) do
            for field, target in pairs(FOREIGN[kind]) do
                local to = row.entity[field]
                if to and not state[target[1]][to.id] then
                    return true
                end
            end
        end
    end
end

local function twice(state)
    for _, kind in ipairs(KINDS) do
        for _, fields in ipairs(UNIQUE[kind]) do
            local seen = {}
            for _, row in pairs(state[kind]) do
                local parts, any = {}, #fields > 1
                for i, field in ipairs(fields) do
                    local value = row.entity[field]
                    value = type(value) == "table" and value.id or value
                    parts[i] = value or "-"
                    any = any or value
                end
                local key = table.concat(parts, " ")
                if any and seen[key] then
                    return true
                end
                seen[key] = true
            end
        end
    end
end

-- What the changes lead to: a new state, or a set of words that would be true.
local function model(state, changes)
    local after, kept, words = copy(state), {}, {}
    for _, change in ipairs(changes) do
        if change.delete then
            if not state[change.kind][change.delete] then
                return nil, { ["not found"] = true }
            end
            after[change.kind][change.delete] = nil
        else
            local row = { entity = entity_text.decode(change.put) }
            after[change.kind][row.entity.id] = row
            kept[row] = true
        end
    end
    cascade(after, kept)
    clear(after, kept)
    if broken_reference(after) then
        words["reference missing"], words.referenced = true, true
    end
    words["unique violation"] = twice(after)
    return not next(words) and after or nil, words
end

local function draw_entity(random, kind, id)
    local entity = { id = id, note = random(3) }
    entity.name = random(3) > 1 and "n" .. random(6) or nil
    entity.label = random(3) > 1 and "l" .. random(3) or nil
    for field, target in pairs(FOREIGN[kind]) do
        entity[field] = random(3) > 1 and { id = target[1]:sub(1, 1) .. random(6) } or nil
    end
    for tag = 1, 3 do
        if random(4) == 1 then
            entity.tags = entity.tags or {}
            table.insert(entity.tags, "t" .. tag)
        end
    end
    return entity
end

local function draw_changes(random)
    local changes, seen = {}, {}
    for _ = 1, random(4) do
        local kind = KINDS[random(3)]
        local id = kind:sub(1, 1) .. random(6)
        if not seen[id] then
            seen[id] = true
            changes[#changes + 1] = random(3) == 1 and support.delete(kind, id)
                or support.put(kind, draw_entity(random, kind, id))
        end
    end
    return changes
end

local function by_sequence(rows)
    local list = {}
    for _, row in pairs(rows) do
        list[#list + 1] = row
    end
    table.sort(list, function(a, b)
        return a.sequence < b.sequence
    end)
    return list
end

describe("the store, at random", function()
    local s, state, revision

    -- What stands in the store is what the table has; new rows are noted in it.
    local function compare()
        for _, kind in ipairs(KINDS) do
            local rows, count = s:list(kind, { size = 10000 }), 0
            for _, row in ipairs(rows) do
                local known = state[kind][row.id]
                assert.is_truthy(known, row.id)
                assert.equal(entity_text.encode(known.entity), row.text)
                assert.equal(known.sequence or row.sequence, row.sequence)
                assert.equal(known.slot or row.slot, row.slot)
                assert.equal(known.generation or row.generation, row.generation)
                known.sequence, known.slot = row.sequence, row.slot
                known.generation = row.generation
            end
            for _ in pairs(state[kind]) do
                count = count + 1
            end
            assert.equal(count, #rows)
        end
    end

    local function compare_lists(random)
        local kind, tag = KINDS[random(2)], "t" .. random(3)
        local expected = {}
        for _, row in ipairs(by_sequence(state[kind])) do
            for _, has in ipairs(row.entity.tags or {}) do
                expected[#expected + 1] = has == tag and row.entity.id or nil
            end
        end
        local found, offset = {}, nil
        repeat
            local page
            page, offset = s:list(kind, { size = random(3), tags = tag, offset = offset })
            for _, row in ipairs(page) do
                found[#found + 1] = row.id
            end
        until not offset
        assert.same(expected, found)
    end

    -- Whoever follows the log has what the store has.
    local function follow(mirror)
        local changes, now = s:changes_since(mirror.revision)
        assert.is_truthy(changes)
        for _, change in ipairs(changes) do
            mirror[change.kind .. change.id] = not change.gone and change.text or nil
        end
        mirror.revision = now
        local count = 0
        for _, kind in ipairs(KINDS) do
            for id, row in pairs(state[kind]) do
                assert.equal(entity_text.encode(row.entity), mirror[kind .. id])
                count = count + 1
            end
        end
        for _ in pairs(mirror) do
            count = count - 1
        end
        assert.equal(-1, count)
    end

    local function keep_slots(before, after)
        for _, kind in ipairs(KINDS) do
            for id, row in pairs(after[kind]) do
                local old = before[kind][id]
                if old and row ~= old then
                    row.sequence, row.slot = row.sequence or old.sequence, old.slot
                    row.generation = old.generation
                end
            end
        end
    end

    -- Everything anew, most of it as it is.
    local function draw_items(random)
        local items = {}
        for _, kind in ipairs(KINDS) do
            for i = 1, 6 do
                local id = kind:sub(1, 1) .. i
                local known = state[kind][id]
                local entity = random(5) > 1 and known and known.entity
                if entity or random(5) == 1 then
                    entity = entity or draw_entity(random, kind, id)
                    table.insert(items, random(#items + 1), support.put(kind, entity))
                end
            end
        end
        return items
    end

    local function model_of_items(items)
        local nothing = { parents = {}, things = {}, notes = {} }
        local after, words = model(nothing, items)
        local counts = { parents = 0, things = 0, notes = 0 }
        for _, item in ipairs(after and items or {}) do
            local id = entity_text.decode(item.put).id
            counts[item.kind] = counts[item.kind] + 1
            after[item.kind][id].sequence = counts[item.kind]
        end
        return after, words
    end

    local function step(random)
        local is_whole = random(20) == 1
        local changes = is_whole and draw_items(random) or draw_changes(random)
        local after, words
        if is_whole then
            after, words = model_of_items(changes)
        else
            after, words = model(state, changes)
        end
        local done, err = (is_whole and s.replace or s.transaction)(s, changes)
        if after then
            assert.is_truthy(done, err and err.err)
            assert.is_true(done.revision >= revision)
            revision = done.revision
            keep_slots(state, after)
            state = after
        else
            assert.is_nil(done)
            assert.is_true(words[err.err], err.err)
        end
        assert.equal(revision, s:revision().revision)
    end

    it(("does what a table would do, seed %d"):format(seed), function()
        math.randomseed(seed)
        local random = math.random
        local path = support.folder() .. "/store.db"
        local opts = { layouts = layout.derive(SCHEMAS), synchronous = "off" }
        s, state, revision =
            assert(database.open(path, opts)), copy({
                parents = {},
                things = {},
                notes = {},
            }), 0
        local mirror = { revision = s:revision() }
        for round = 1, ROUNDS do
            step(random)
            compare()
            compare_lists(random)
            if round % 20 == 0 then
                follow(mirror)
                assert(s:release(mirror.revision.revision))
            end
            if round % 100 == 0 then
                assert.is_true(s:compact(mirror.revision.revision))
                assert.is_true(s:check())
                s:close()
                s = assert(database.open(path, opts))
            end
        end
        s:close()
        support.clean()
    end)
end)
