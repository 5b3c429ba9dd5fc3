--- The second pass: references become ids, entities get theirs, and what must
-- be unique is.
-- @module gateway.config.link

local collect = require("gateway.config.collect")
local entities = require("gateway.entities")
local identity = require("gateway.config.identity")
local lists = require("gateway.entities.lists")
local migrate = require("gateway.config.migrate")
local route_pairs = require("gateway.config.route_pairs")
local rules = require("gateway.schema.rules")
local schema = require("gateway.schema")

local concat = table.concat
local format = string.format
local ipairs = ipairs
local next = next
local normal_id = rules.normal_id
local path_of = collect.path
local type = type

local new_table = require("table.new")

-- Whether an entity has created_at, and updated_at -> which of them nobody gave.
local UNDATED = {
    [true] = { [false] = { created_at = false, updated_at = true } },
    [false] = {
        [true] = { created_at = true, updated_at = false },
        [false] = { created_at = true, updated_at = true },
    },
}

local _M = {}

local function add_error(state, path, message)
    state.errors:add(path, message)
end

-- Lookup tables of a kind with so many items: id -> item, identity -> item and how often it has
-- come again, field -> value -> item.
local function new_index(kind, count)
    local index = {
        by_id = new_table(0, count),
        by_key = new_table(0, count),
        again = {},
        by = {},
        unique = {},
        auto = {},
    }
    for _, entry in ipairs(entities.get(kind).fields) do
        local name, field = next(entry)
        if field.unique then
            index.by[name] = new_table(0, count)
            index.unique[#index.unique + 1] = { name = name, secret = field.encrypted }
        end
        if field.auto and field.type == "string" and not field.uuid then
            index.auto[#index.auto + 1] = name
        end
    end
    return index
end

-- Stands for the index of names of a kind that has none.
local NO_NAMES = {}

local function find(state, kind, reference)
    local index = state.index[kind]
    local names = index.by[entities.get(kind).endpoint_key] or NO_NAMES
    if type(reference) == "string" then
        return names[reference] or index.by_id[normal_id(reference)]
    elseif reference.id then
        return index.by_id[normal_id(reference.id)]
    end
    return names[reference.name or reference.username]
end

local function reference_text(reference)
    if type(reference) == "string" then
        return reference
    end
    return reference.id or reference.name or reference.username
end

-- The reference of a field as far as it is one: of an entity with errors, what was written.
local function given_reference(item, name)
    if item.entity then
        return item.entity[name]
    end
    local raw = item.raw[name]
    if type(raw) == "table" then
        return type(reference_text(raw)) == "string" and raw or nil
    end
    return type(raw) == "string" and raw or nil
end

local function resolve(state, item, field)
    local reference = given_reference(item, field.name)
    local found
    if field.name == item.parent_field then
        found = item.parent
    elseif reference ~= nil then
        found = find(state, field.reference, reference)
    end
    if found and item.entity then
        -- One for all who refer to it.
        found.reference = found.reference or { id = found.id }
        item.entity[field.name] = found.reference
    elseif found then
        return true
    elseif reference ~= nil then
        local message = "invalid reference '%s: %s' (no such entry in '%s')"
        add_error(
            state,
            path_of(item) .. "." .. field.name,
            format(message, field.name, reference_text(reference), field.reference)
        )
        return false
    end
    return true
end

local function check_ids(state, item)
    for _, list in ipairs(entities.id_lists(item.kind)) do
        local known = state.index[list.reference].by_id
        for i, id in ipairs(lists.items(item.entity, list)) do
            if not known[id] then
                local path = format("%s.%s[%d]", path_of(item), list.name, i - 1)
                local message = "invalid reference '%s' (no such entry in '%s')"
                add_error(state, path, format(message, id, list.reference))
            end
        end
    end
end

local function taken(state, item, field, value, other)
    local message = "uniqueness violation: '%s' entity with %s set to '%s' already declared (%s)"
    local path = path_of(item) .. "." .. field
    add_error(state, path, format(message, item.kind, field, value, path_of(other)))
end

local function check_unique(state, item)
    local index = state.index[item.kind]
    for _, field in ipairs(index.unique) do
        local seen, value = index.by[field.name], (item.entity or item.raw)[field.name]
        if type(value) == "string" and seen[value] then
            taken(state, item, field.name, field.secret and "***" or value, seen[value])
        elseif type(value) == "string" then
            seen[value] = item
        end
    end
end

-- The key of an unnamed entity may come again: the second one gets "#2".
local function distinct_key(state, item)
    local definition = entities.get(item.kind)
    local index = state.index[item.kind]
    local key, is_unique = identity.key(definition, item.entity)
    local other = index.by_key[key]
    if not other then
        index.by_key[key] = item
        return key
    end
    -- a field of its own that is unique has been reported as such
    if is_unique and definition.cache_key and #definition.cache_key > 1 then
        local names = concat(definition.cache_key, ", ")
        local message = "uniqueness violation: '%s' entity with the same %s already declared (%s)"
        add_error(state, path_of(item), format(message, item.kind, names, path_of(other)))
    end
    index.again[key] = (index.again[key] or 1) + 1
    return key .. "#" .. index.again[key]
end

local function assign_id(state, item)
    local index = state.index[item.kind]
    local key = distinct_key(state, item)
    local id = item.entity.id or identity.uuid(item.kind, key)
    if index.by_id[id] then
        taken(state, item, "id", id, index.by_id[id])
        return
    end
    index.by_id[id] = item
    item.entity.id, item.id = id, id
end

-- An entity with errors is still known by its id, as by its name, so that references
-- to it are not reported as well.
local function remember_broken(state, item)
    local index = state.index[item.kind]
    local id = item.raw.id
    item.id = type(id) == "string" and normal_id(id) or identity.uuid(item.kind, path_of(item))
    index.by_id[item.id] = index.by_id[item.id] or item
end

local function require_given(state, item)
    for _, name in ipairs(state.index[item.kind].auto) do
        if item.entity[name] == nil then
            -- a drawn one would differ on each node and load, a derived one be guessed
            local message = "required field missing: a declarative file must give it"
            add_error(state, path_of(item) .. "." .. name, message)
        end
    end
end

local function count_pairs(state, item)
    local ok, message = state.pairs:add(item.entity)
    if not ok then
        add_error(state, path_of(item), message)
    end
end

local function warn_of_regex(state, item)
    for i, path in ipairs(state.old_format and {} or item.entity.paths or {}) do
        if path:sub(1, 1) ~= "~" and migrate.looks_like_regex(path) then
            state.warnings[#state.warnings + 1] = format(
                "%s.paths[%d]: '%s' looks like a regex, but without a leading ~ it is a fixed path",
                path_of(item),
                i - 1,
                path
            )
        end
    end
end

-- Says once of each kind and field that it has no effect.
local function warn_of_unused(state, kind, list)
    local definition = entities.get(kind)
    local unused = definition.unused and #list > 0 and { kind } or {}
    for _, entry in ipairs(definition.fields) do
        local name, field = next(entry)
        for _, entity in ipairs(field.unused and list or {}) do
            if entity[name] ~= nil then
                unused[#unused + 1] = kind .. "." .. name
                break
            end
        end
    end
    for _, name in ipairs(unused) do
        local message = "%s: checked and stored, without an effect in this version"
        state.warnings[#state.warnings + 1] = format(message, name)
    end
end

-- Says once that upstreams may be anybody.
local function warn_of_unverified(state, services)
    local count, first = 0, nil
    for _, service in ipairs(services) do
        if service.protocol == "https" and service.tls_verify ~= true then
            count, first = count + 1, first or service
        end
    end
    if count > 0 then
        state.warnings[#state.warnings + 1] = format(
            "services.tls_verify: upstreams of %d https services are not verified, such as '%s'",
            count,
            first.name or first.id
        )
    end
end

-- Dates that the file does not give. It is noted: of an entity that it has, the store knows better.
local function finish(item, now)
    local entity = item.entity
    local has_both = schema.fields(entities.get(item.kind)).updated_at ~= nil
    local has_created = entity.created_at ~= nil
    local has_updated = not has_both or entity.updated_at ~= nil
    entity.__undated = UNDATED[has_created][has_updated]
    entity.created_at = entity.created_at or now
    entity.updated_at = has_both and (entity.updated_at or now) or nil
    return entity
end

--- Links the collected entities.
-- Errors and warnings are added to the state's.
-- @tparam table state as returned by `gateway.config.collect`
-- @tparam number now seconds, for timestamps that the file does not give
-- @tparam number size bytes of the file
-- @treturn table kind -> array of finished entities
function _M.run(state, now, size)
    state.index = {}
    state.pairs = route_pairs.new(size)
    local out = {}
    for _, kind in ipairs(entities.kinds) do
        local items = state.items[kind]
        state.index[kind] = new_index(kind, #items)
        out[kind] = new_table(#items, 0)
        for _, item in ipairs(items) do
            if state.pause then
                state.pause()
            end
            local linked = item.entity ~= nil
            for _, field in ipairs(entities.foreign(kind)) do
                linked = resolve(state, item, field) and linked
            end
            if linked then
                check_ids(state, item)
                require_given(state, item)
            end
            check_unique(state, item)
            if linked then
                assign_id(state, item)
                if kind == "routes" then
                    count_pairs(state, item)
                    warn_of_regex(state, item)
                end
                out[kind][#out[kind] + 1] = finish(item, now)
            else
                remember_broken(state, item)
            end
        end
        warn_of_unused(state, kind, out[kind])
    end
    warn_of_unverified(state, out.services)
    return out
end

return _M
