--- A file beside the last one that was accepted: only elements that differ are decoded and checked,
-- as a file of their own with the same frame, and lead to the changes that bring the store from the
-- one file to the other.
--
-- It accepts what gateway.config would accept, with the same entities, ids and places, or says
-- nothing: then the whole file is to be checked, which alone finds and tells errors. An element
-- that stays may be wrong beside others that changed. Why that is seen:
--
-- - What is unique, and what refers to what is gone: the store refuses it, and the store has all.
--   A name that goes while its id stays is refused there, too (gateway.store.replacing).
-- - Where a changed entity refers to, by the store as it is, less the elements that go.
-- - Ids that follow from what an entity matches: those of elements that stay are not to be had
--   again, and files in which two elements have such alike are not remembered.
-- - Bounds of the whole file are counted on.
-- - All else of a check is about one entity, its frame and its surroundings.
-- @module gateway.config.reuse

local config = require("gateway.config")
local entities = require("gateway.entities")
local ffi = require("ffi")
local json_split = require("gateway.config.json_split")
local references = require("gateway.config.references")
local remembered = require("gateway.config.remembered")
local long_patterns = require("gateway.entities.long_patterns")
local route_pairs = require("gateway.config.route_pairs")
local rules = require("gateway.schema.rules")
local deck = require("gateway.config.deck")

local char = string.char
local concat = table.concat
local each = remembered.each
local id_at = remembered.id_at

-- Bytes of changed elements, and entities that change or move: with more, to check all is as well.
local MAX_BYTES = 256 * 1024
local MAX_CHANGES = 5000
local NEWLINE = 10

local _M = {}

local function count_of(split)
    local count = 0
    for _, list in pairs(split.lists) do
        count = count + #list.from
    end
    return count
end

-- Which elements are those of the last file: each gets `was`, the number of that. The last one's
-- that are gone; and whether any has another place.
local function match(elements, last)
    local by_digest, is_moved = {}, #elements ~= #last - 1
    for i = 2, #last do
        by_digest[last[i].digest] = i - 1
    end
    for i, element in ipairs(elements) do
        local was = by_digest[element.digest]
        if was and last[was + 1].kind == element.kind then
            element.was, by_digest[element.digest] = was, nil
            is_moved = is_moved or was ~= i
        end
    end
    local gone = {}
    for _, was in pairs(by_digest) do
        gone[was] = last[was + 1]
    end
    return gone, is_moved
end

-- The file with its changed elements alone. Also the numbers that they have in the whole one: kind
-- -> array. Nil: they are large.
local function text_of(memory, split, elements, before)
    local parts, numbers, bytes = {}, {}, 0
    for i, kind in ipairs(split.order) do
        local list, changed = split.lists[kind], {}
        numbers[kind] = {}
        for index = 1, #list.from do
            local number = before[kind] + index
            if not elements[number].was then
                bytes = bytes + list.size[index]
                if bytes > MAX_BYTES then
                    return nil
                end
                changed[#changed + 1] = ffi.string(memory + list.from[index], list.size[index])
                numbers[kind][#changed] = number
            end
        end
        parts[2 * i - 1] = split.frame[i]
        parts[2 * i] = concat(changed, ",")
    end
    parts[#parts + 1] = split.frame[#split.frame]
    return concat(parts), numbers
end

-- Looks up who is not in the text: entities of elements that stay.
local function outside(open, is_gone)
    return function(kind, by, value)
        -- No name is a UUID, and each id is one.
        local store = open()
        local row = store and store:get(kind, value)
        local is_it = row and (row.id == rules.normal_id(value)) == (by == "id")
        return is_it and not is_gone(kind, row.id) and row.id or nil
    end
end

-- The ids of elements that are gone: key -> true; the same kind by kind.
local function ids_of(gone)
    local found = {}
    for _, record in pairs(gone) do
        each(record, function(code, ids, at)
            found[char(code) .. id_at(ids, at)] = true
        end)
    end
    return found
end

-- Whether what holds for each of the two parts holds for both together.
local function fits(head, facts, records, gone, more)
    for _, record in pairs(records) do
        if record.warns then
            return false
        end
    end
    for _, record in pairs(gone) do
        if record.warns then
            return false
        end
    end
    local deck_values = head.deck_values + facts.deck_values
    return remembered.allows(facts)
        and not (head.has_unnamed and facts.has_unnamed_ids)
        and not (head.has_unnamed_ids and facts.has_unnamed)
        and more.count <= more.max_entities
        and more.count <= remembered.MAX_ENTITIES
        and more.pairs <= route_pairs.most(more.size)
        and more.pattern_bytes <= long_patterns.MOST
        and deck_values <= deck.MAX_VALUES
end

-- The places of entities: for each record the number of entities of each kind before it, which it
-- has. `record_of(i)` gives them in their order.
local function starts_of(count, record_of)
    local counts, starts = {}, {}
    for i = 1, count do
        local start = {}
        each(record_of(i), function(code)
            local so_far = counts[code] or 0
            start[code] = start[code] or so_far
            counts[code] = so_far + 1
        end)
        starts[i] = start
    end
    return starts
end

-- Adds those that stay and have other places now.
local function add_moves(changes, record, from, to)
    local is_moved = false
    for code, start in pairs(to) do
        is_moved = is_moved or from[code] ~= start
    end
    if not is_moved then
        return
    end
    local counts = {}
    each(record, function(code, ids, at)
        counts[code] = (counts[code] or 0) + 1
        if from[code] ~= to[code] then
            changes[#changes + 1] = {
                kind = entities.kinds[code],
                move = id_at(ids, at),
                sequence = to[code] + counts[code],
            }
        end
    end)
end

-- The entities of changed elements, in their order.
local function add_puts(changes, facts, numbers, starts, old, complete)
    local counts = {}
    for code, kind in ipairs(entities.kinds) do
        for _, item in ipairs(facts.items[kind]) do
            local number = numbers[item]
            if number then
                local key, place = char(code) .. item.id, number * 256 + code
                counts[place] = (counts[place] or 0) + 1
                local put = references.put(item.entity)
                local sequence = starts[number][code] + counts[place]
                local change = complete({ kind = kind, put = put, sequence = sequence })
                change.is_there = old[key] or false
                old[key] = nil
                changes[#changes + 1] = change
            end
        end
    end
end

-- What there is to do, and what is remembered then.
local function result(elements, last, old, made, complete)
    local function record_of(i)
        local was = elements[i].was
        return was and last[was + 1] or made.records[i]
    end
    local starts = starts_of(#elements, record_of)
    local starts_before = starts_of(#last - 1, function(i)
        return last[i + 1]
    end)
    local changes = {}
    add_puts(changes, made.facts, made.numbers, starts, old, complete)
    for i, element in ipairs(elements) do
        if element.was then
            add_moves(changes, last[element.was + 1], starts_before[element.was], starts[i])
        end
        if #changes > MAX_CHANGES then
            return nil
        end
    end
    for key in pairs(old) do
        changes[#changes + 1] = { kind = entities.kinds[key:byte()], delete = key:sub(2) }
    end
    local list = { made.head }
    for i, element in ipairs(elements) do
        local record = record_of(i)
        record.digest, record.kind = element.digest, element.kind
        list[i + 1] = record
    end
    return #changes <= MAX_CHANGES and { changes = changes, remembered = list } or nil
end

local function sum(records, of)
    local total = 0
    for _, record in pairs(records) do
        total = total + of(record)
    end
    return total
end

local function pairs_of(record)
    return record.pairs
end

local function pattern_bytes_of(record)
    return record.pattern_bytes
end

-- The head of what is remembered, of the last one's.
local function next_head(head, facts, more)
    local found = {}
    for name, value in pairs(head) do
        found[name] = value
    end
    found.count, found.pairs = more.count, more.pairs
    found.pattern_bytes = more.pattern_bytes
    found.deck_values = head.deck_values + facts.deck_values
    found.has_unnamed = head.has_unnamed or facts.has_unnamed
    found.has_unnamed_ids = head.has_unnamed_ids or facts.has_unnamed_ids
    return found
end

--- Whether a warning of a file can be that of the next one: it names the place of an entity, and
-- its line, unless the text is one or is long.
-- @tparam cdata memory its text, `const uint8_t *`
-- @tparam number size bytes of it
-- @treturn boolean
function _M.keeps_warnings(memory, size)
    return size <= config.MAX_WARNED and not json_split.has_byte(memory, size, NEWLINE)
end

--- Checks a file beside the last one.
-- @tparam cdata memory its text, `const uint8_t *`
-- @tparam number size bytes of it
-- @tparam table split of gateway.config.json_split
-- @tparam {table,...} last what is remembered of the last file (gateway.config.remembered)
-- @tparam table registry of plugins
-- @tparam table opts those of gateway.config's `parse`; `open`, which gives the store with the last
-- file's entities, or nil; `complete(change)` of gateway.writer, which throws
-- @treturn table|nil `changes`: upserts as of `complete`, each with `is_there`: whether there is an
-- entity with this id; deletions; and `{ kind =, move = id, sequence = }`. `remembered`: of it.
-- Nil: the whole file is to be checked
function _M.run(memory, size, split, last, registry, opts)
    local head = last[1]
    local is_alike = math.abs(count_of(split) - (#last - 1)) <= MAX_CHANGES
    if not is_alike or head.frame ~= concat(split.frame, "\0") then
        return nil
    end
    json_split.digest(memory, split, opts.pause)
    local elements, before = remembered.elements(split)
    local gone, is_moved = match(elements, last)
    if #head.warnings > 0 and (is_moved or not _M.keeps_warnings(memory, size)) then
        return nil
    end
    local text, numbers_in = text_of(memory, split, elements, before)
    if not text then
        return nil
    end
    local old = ids_of(gone)
    local codes = {}
    for code, kind in ipairs(entities.kinds) do
        codes[kind] = char(code)
    end
    opts.size, opts.keeps_items = size, true
    opts.outside = outside(opts.open, function(kind, id)
        return old[codes[kind] .. id]
    end)
    local snapshot = config.parse(text, "json", registry, opts)
    if not snapshot then
        return nil
    end
    local facts = snapshot.facts
    local records, numbers = remembered.records(facts.items, function(root)
        return numbers_in[root.kind] and numbers_in[root.kind][root.index]
    end)
    local more = {
        count = head.count + sum(records, remembered.count) - sum(gone, remembered.count),
        pairs = head.pairs + sum(records, pairs_of) - sum(gone, pairs_of),
        pattern_bytes = head.pattern_bytes
            + sum(records, pattern_bytes_of)
            - sum(gone, pattern_bytes_of),
        size = size,
        max_entities = opts.max_entities,
    }
    if not fits(head, facts, records, gone, more) then
        return nil
    end
    local made = {
        facts = facts,
        records = records,
        numbers = numbers,
        head = next_head(head, facts, more),
    }
    return result(elements, last, old, made, opts.complete)
end

return _M
