--- Plans of what is about to be done with a store, or was: read from it, nothing is changed.
--
-- A store is one of gateway.store.database; every function blocks on the disk. A failure is nil and
-- the store's error.
-- @module gateway.plan.sources

local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local plans = require("gateway.plan")
local schema = require("gateway.schema")

local decode = entity_text.decode

-- Rows that are read at a time.
local PAGE = 10000

local _M = {}

-- Finds what others refer to: in the store, unless `known` has it.
local function finder(store, known)
    return function(kind, id)
        local entity = known and known(kind, id)
        local row = not entity and store:get(kind, id)
        return entity or (row and row.id == id and decode(row.text)) or nil
    end
end

-- Throws where there is an error.
local function must(value, err)
    return value or error({ is_of_store = true, err = err }, 0)
end

-- Calls a function; what `must` has thrown is nil and the error.
local function caught(fn, ...)
    local ok, value = pcall(fn, ...)
    if ok then
        return value
    elseif type(value) == "table" and value.is_of_store then
        return nil, value.err
    end
    error(value, 0)
end

-- Calls `fn(row)` with each entity of a kind for which `where` holds.
local function each_row(store, kind, where, fn)
    local offset
    repeat
        local options = { size = PAGE, offset = offset, where = where }
        local rows, next_offset = store:list(kind, options)
        for _, row in ipairs(must(rows, next_offset)) do
            fn(row)
        end
        offset = next_offset
    until not offset
end

-- The text that the store would have, with its dates where the file gives none.
local function text_of(entity, row)
    local text, undated = entity_text.encode(entity), entity.__undated
    if not row or not undated then
        return text
    end
    return entity_text.with_dates(
        text,
        undated.created_at and row.created_at or entity.created_at,
        undated.updated_at and row.updated_at or entity.updated_at
    )
end

-- Kind -> id -> entity, of items.
local function by_kind_and_id(items)
    local known = {}
    for _, item in ipairs(items) do
        known[item.kind] = known[item.kind] or {}
        known[item.kind][item.put.id] = item.put
    end
    return known
end

-- Adds what an entity of a file changes. Of a new one no text is made: OpenResty's LuaJIT hashes a
-- text of 128 bytes or more by a few places, drawn by each process. In one of some hundred
-- processes 100,000 texts that look alike have one hash, and take two minutes.
local function add_put(plan, kind, entity, row)
    local text = row and text_of(entity, row)
    if not row then
        plan:add(kind, nil, entity)
    elseif row.text == text then
        plan.unchanged = plan.unchanged + 1
    else
        plan:add(kind, decode(row.text), decode(text))
    end
end

local function add_kind(plan, store, kind, items)
    local rows, order = {}, {}
    each_row(store, kind, nil, function(row)
        rows[row.id] = row
        order[#order + 1] = row
    end)
    for _, item in ipairs(items) do
        if item.kind == kind then
            add_put(plan, kind, item.put, rows[item.put.id])
            rows[item.put.id] = nil
        end
    end
    for _, row in ipairs(order) do
        if rows[row.id] then
            plan:add(kind, decode(row.text), nil)
        end
    end
end

--- The store of a running gateway.
-- @tparam function read of gateway.writer.role
-- @treturn table a store whose functions yield
function _M.of_reader(read)
    return setmetatable({}, {
        __index = function(_, verb)
            return function(_, ...)
                return read(verb, ...)
            end
        end,
    })
end

--- A store that has nothing, where there is none yet.
_M.EMPTY = {
    find = function() end,
    get = function() end,
    list = function()
        return {}
    end,
}

--- What a replacement of all entities changes.
-- @tparam table store
-- @tparam table registry of plugins
-- @tparam {table,...} items of gateway.config.items
-- @tparam[opt] {string,...} tags deleted entities without all of them are counted, as `untagged`
-- @treturn table|nil plan
-- @treturn nil|table error
function _M.replacement(store, registry, items, tags)
    local known = by_kind_and_id(items)
    local plan = plans.new(
        registry,
        finder(store, function(kind, id)
            return known[kind] and known[kind][id]
        end)
    )
    plan:count_untagged(tags)
    return caught(function()
        for _, kind in ipairs(entities.kinds) do
            add_kind(plan, store, kind, items)
        end
        return plan
    end)
end

-- A plan of which nobody counts what stays.
local function without_rest(registry, store, known)
    local plan = plans.new(registry, finder(store, known))
    plan.unchanged = nil
    return plan
end

-- A plan of pairs: `{ kind, before, after }`. `known`: kind and id -> entity.
local function plan_of(store, registry, list, known)
    local plan = without_rest(registry, store, function(kind, id)
        return known[kind .. " " .. id]
    end)
    for _, kind in ipairs(entities.kinds) do
        for _, each in ipairs(list) do
            if each[1] == kind and (each[2] or each[3]) then
                plan:add(kind, each[2], each[3])
            end
        end
    end
    return plan
end

-- Calls `fn(kind, field)` with each kind that can refer to one.
local function each_reference(kind, fn)
    for _, child in ipairs(entities.kinds) do
        local field = entities.children(kind)[child]
        if field then
            fn(child, field)
        end
    end
end

-- Adds an entity and what goes with it. `seen`: kind and id of those that were added; `left`: what
-- refers to them and does not go by itself.
local function add_deleted(plan, store, kind, row, seen, left)
    local key, entity = kind .. " " .. row.id, decode(row.text)
    if seen[key] then
        return
    end
    seen[key] = true
    plan:add(kind, entity, nil)
    each_reference(kind, function(child, field)
        local goes = schema.field(entities.get(child), field).on_delete == "cascade"
        each_row(store, child, { [field] = row.id }, function(other)
            if goes then
                add_deleted(plan, store, child, other, seen, left)
            else
                left[#left + 1] = { kind, entity, child, decode(other.text) }
            end
        end)
    end)
end

--- What the deletion of entities deletes, with all that belongs to them.
-- @tparam table store
-- @tparam table registry of plugins
-- @tparam {table,...} targets `{ kind =, id = }`; one that is not there is left out
-- @treturn table|nil plan; it is `blocked` where an entity that stays refers to one
-- @treturn nil|table error
function _M.deletion(store, registry, targets)
    local plan, seen, left = without_rest(registry, store), {}, {}
    return caught(function()
        for _, target in ipairs(targets) do
            local row, err = store:get(target.kind, target.id)
            if not row and err.err ~= "not found" then
                must(row, err)
            elseif row and row.id == target.id then
                add_deleted(plan, store, target.kind, row, seen, left)
            end
        end
        for _, each in ipairs(left) do
            if not seen[each[3] .. " " .. each[4].id] then
                plan:block(unpack(each))
                break
            end
        end
        return plan
    end)
end

--- What changes of gateway.change.run would change.
-- @tparam table store
-- @tparam table registry of plugins
-- @tparam {table,...} changes of gateway.change.draft
-- @tparam {table,...} gone `{ kind =, id = }` of all that would be deleted
-- @treturn table|nil plan
-- @treturn nil|table error
function _M.changes(store, registry, changes, gone)
    return caught(function()
        local find, list, known = finder(store), {}, {}
        for _, it in ipairs(gone) do
            list[#list + 1] = { it.kind, find(it.kind, it.id) }
        end
        for _, change in ipairs(changes) do
            local kind, entity = change.kind, change.put
            -- What is lenient stays as it is, or is of no interest to people.
            local row = entity and not change.lenient and store:get(kind, entity.id)
            row = row and row.id == entity.id and row or nil
            local text = entity and not change.lenient and text_of(entity, row)
            if text and not (row and row.text == text) then
                known[kind .. " " .. entity.id] = entity
                list[#list + 1] = { kind, row and decode(row.text), decode(text) }
            end
        end
        return plan_of(store, registry, list, known)
    end)
end

--- What going back to a revision changes.
-- @tparam table store
-- @tparam table registry of plugins
-- @tparam number revision
-- @treturn table|nil plan
-- @treturn nil|table error: "not found", "too old"
function _M.rollback(store, registry, revision)
    return caught(function()
        local changes = must(store:changes_back(revision))
        local list, known = {}, {}
        for i, change in ipairs(changes) do
            local after = change.put and decode(change.put)
            local id = after and after.id or change.delete
            local row = store:get(change.kind, id)
            list[i] = { change.kind, row and row.id == id and decode(row.text) or nil, after }
            known[change.kind .. " " .. id] = after
        end
        return plan_of(store, registry, list, known)
    end)
end

--- What a revision has changed.
-- @return as `rollback`
function _M.revision(store, registry, revision)
    return caught(function()
        local list, known = {}, {}
        for i, each in ipairs(must(store:changed_in(revision))) do
            local before = each.before and decode(each.before)
            local after = each.after and decode(each.after)
            list[i] = { each.kind, before, after }
            known[each.kind .. " " .. (after or before).id] = after or before
        end
        return plan_of(store, registry, list, known)
    end)
end

return _M
