--- What is remembered of a file whose entities the store has, so that the next one is checked where
-- it differs (gateway.config.reuse): a digest of each element at its top, and the ids of the
-- entities that it made. Neither their texts nor their secrets.
--
-- It is a list of plain data, for gateway.threads.blocks: a head, and behind it an element each, in
-- the order in which their entities have their places: kind by kind. Some 60 bytes an entity.
-- @module gateway.config.remembered

local entities = require("gateway.entities")
local route_pairs = require("gateway.config.route_pairs")

local byte = string.byte
local char = string.char
local concat = table.concat

-- Bytes of an id, and of an entity in `ids`: the number of its kind before it.
local ID_BYTES = 36
local ENTITY_BYTES = ID_BYTES + 1
-- Bytes of what stands around the elements.
local MAX_FRAME = 65536

local _M = {}

--- Entities of a file that is remembered, 6 MB of memory.
_M.MAX_ENTITIES = 100000

--- Lists whose elements are remembered. Vaults are not: what others refer to changes with them.
-- @treturn table kind -> true
function _M.kinds()
    local found = {}
    for _, kind in ipairs(entities.kinds) do
        found[kind] = kind ~= "vaults" or nil
    end
    return found
end

--- The elements of a file in their order.
-- @tparam table split of gateway.config.json_split, with digests
-- @treturn {table,...} `{ kind =, index =, digest = }`
-- @treturn table kind -> elements before its own
function _M.elements(split)
    local list, before = {}, {}
    for _, kind in ipairs(entities.kinds) do
        local found = split.lists[kind]
        before[kind] = found and #list
        for i = 1, found and #found.from or 0 do
            list[#list + 1] = { kind = kind, index = i, digest = found.digests[i] }
        end
    end
    return list, before
end

-- The item at the top of the file in which one stands.
local function root_of(item)
    while item.parent do
        item = item.parent
    end
    return item
end

local function pairs_of(item)
    return item.kind == "routes" and route_pairs.of(item.entity) or 0
end

--- Records of elements, by the number of each: of those for which there are items.
-- @tparam table items kind -> items of gateway.config.collect, linked
-- @tparam function number_of `(item)` -> the number of an element at the top, nil: it is in no list
-- @treturn table number -> `{ ids =, pairs =, warns = }`
-- @treturn table item -> number
function _M.records(items, number_of)
    local records, numbers = {}, {}
    for code, kind in ipairs(entities.kinds) do
        for _, item in ipairs(items[kind]) do
            local number = number_of(root_of(item))
            if number then
                local record = records[number] or { ids = {}, pairs = 0 }
                records[number], numbers[item] = record, number
                assert(#item.id == ID_BYTES, "an id that is no UUID")
                record.ids[#record.ids + 1] = char(code) .. item.id
                record.pairs = record.pairs + pairs_of(item)
                record.warns = record.warns or item.warns
            end
        end
    end
    for _, record in pairs(records) do
        record.ids = concat(record.ids)
    end
    return records, numbers
end

--- Whether what is known of entities allows to remember them: each of those that stay as they are
-- would be checked alike beside any others.
-- @tparam table facts of gateway.config
-- @treturn boolean
function _M.allows(facts)
    return not (facts.is_crossed or facts.has_id_names or facts.expires or facts.workspace)
end

--- How many entities a record has.
-- @tparam table record
-- @treturn number
function _M.count(record)
    return #record.ids / ENTITY_BYTES
end

--- Calls a function with each entity of a record.
-- @tparam table record
-- @tparam function fn `(code, ids, at)`: the number of its kind, and where its id is (`id_at`)
function _M.each(record, fn)
    local ids = record.ids
    for at = 1, #ids, ENTITY_BYTES do
        fn(byte(ids, at), ids, at)
    end
end

--- The id of an entity.
-- @tparam string ids of a record
-- @tparam number at as `each` has it
-- @treturn string
function _M.id_at(ids, at)
    return ids:sub(at + 1, at + ID_BYTES)
end

--- What is remembered of a file.
-- @tparam table split of gateway.config.json_split, with digests
-- @tparam table snapshot of gateway.config, with facts
-- @tparam table more its `warnings`, and how many `more_warnings`
-- @treturn {table,...}|nil nil: it is not to be remembered
function _M.of(split, snapshot, more)
    local facts, count = snapshot.facts, 0
    for _, kind in ipairs(entities.kinds) do
        count = count + #snapshot[kind]
    end
    local frame = concat(split.frame, "\0")
    if not _M.allows(facts) or count > _M.MAX_ENTITIES or #frame > MAX_FRAME then
        return nil
    end
    local elements, before = _M.elements(split)
    local records = _M.records(facts.items, function(root)
        return before[root.kind] and before[root.kind] + root.index
    end)
    local head = {
        frame = frame,
        count = count,
        pairs = facts.pairs,
        deck_values = facts.deck_values,
        has_unnamed = facts.has_unnamed,
        has_unnamed_ids = facts.has_unnamed_ids,
        warnings = more.warnings,
        more_warnings = more.more_warnings,
    }
    local list, seen = { head }, {}
    for i, element in ipairs(elements) do
        local record = records[i]
        -- An element without entities is none; of two that are the same, which stays is not known.
        if not record or seen[element.digest] then
            return nil
        end
        seen[element.digest] = true
        record.digest, record.kind = element.digest, element.kind
        list[i + 1] = record
    end
    return list
end

return _M
