--- The second pass: references become ids, entities get theirs, and what must
-- be unique is.
-- @module gateway.config.link

local collect = require("gateway.config.collect")
local entities = require("gateway.entities")
local identity = require("gateway.config.identity")
local lifetime = require("gateway.schema.lifetime")
local lists = require("gateway.entities.lists")
local nearest = require("sluice.nearest")
local patterns = require("gateway.entities.patterns")
local route_pairs = require("gateway.config.route_pairs")
local rules = require("gateway.schema.rules")
local schema = require("gateway.schema")
local secrets = require("gateway.schema.secrets")
local transformations = require("gateway.schema.transformations")

local concat = table.concat
local format = string.format
local normal_id = rules.normal_id
local path_of = collect.path

local new_table = require("table.new")

-- Whether an entity has created_at, and updated_at -> which of them nobody gave.
local UNDATED = {
    [true] = { [false] = { created_at = false, updated_at = true } },
    [false] = {
        [true] = { created_at = true, updated_at = false },
        [false] = { created_at = true, updated_at = true },
    },
}

-- References to no entry of which a file is told what was meant, and the names of a kind that each
-- is compared with at most.
local MAX_COMPARED, MAX_NAMES = 10, 1000

local _M = {}

local function add_error(state, path, message)
    return state.errors:add(path, message)
end

-- Who applies a file to a store finds there what the file does not have.
local function add_reference_error(state, path, message)
    local added = add_error(state, path, message)
    added.is_reference = true
    return added
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
            index.unique[#index.unique + 1] =
                { name = name, secret = secrets.is_secret(field, name) }
        end
        if field.auto and field.type == "string" and not field.uuid then
            index.auto[#index.auto + 1] = name
        end
    end
    return index
end

-- Stands for the index of names of a kind that has none.
local NO_NAMES = {}

-- What has an id, or a name, of those that are known outside of the text (`outside`).
local function find_outside(state, kind, by, value)
    local id = state.outside and state.outside(kind, by, value)
    return id and { id = id } or nil
end

local function find_named(state, kind, name)
    local index = state.index[kind]
    local names = index.by[entities.get(kind).endpoint_key] or NO_NAMES
    return names[name] or find_outside(state, kind, "name", name)
end

local function find_by_id(state, kind, id)
    id = normal_id(id)
    return state.index[kind].by_id[id] or find_outside(state, kind, "id", id)
end

local function find(state, kind, reference)
    if type(reference) == "string" then
        -- As in paths of the Admin API: a name may look like an id, and an id goes first.
        local found = rules.check.uuid(reference) and find_by_id(state, kind, reference)
        return found or find_named(state, kind, reference)
    elseif reference.id then
        return find_by_id(state, kind, reference.id)
    end
    return find_named(state, kind, reference.name or reference.username)
end

local function reference_text(reference)
    if type(reference) == "string" then
        return reference
    end
    return reference.id or reference.name or reference.username
end

-- What was probably meant by a reference to a name, of few errors and few names: each is compared.
local function near_name(state, kind, reference)
    local name = type(reference) == "string" and reference or reference.name or reference.username
    state.compared = (state.compared or 0) + 1
    if not name or state.compared > MAX_COMPARED then
        return nil
    end
    local names = {}
    for each in pairs(state.index[kind].by[entities.get(kind).endpoint_key] or NO_NAMES) do
        if #names == MAX_NAMES then
            return nil
        end
        names[#names + 1] = each
    end
    table.sort(names)
    local near = nearest.guess(name, names)
    return near and format("; did you mean %s?", (near:gsub("%c", "?"))) or nil
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
        local added = add_reference_error(
            state,
            path_of(item) .. "." .. field.name,
            format(message, field.name, reference_text(reference), field.reference)
        )
        added.hint = near_name(state, field.reference, reference)
        return false
    end
    return true
end

local function check_ids(state, item)
    for _, list in ipairs(entities.id_lists(item.kind)) do
        local known = state.index[list.reference].by_id
        for i, id in ipairs(lists.items(item.entity, list)) do
            if not known[id] and not find_outside(state, list.reference, "id", id) then
                local path = format("%s.%s[%d]", path_of(item), list.name, i - 1)
                local message = "invalid reference '%s' (no such entry in '%s')"
                add_reference_error(state, path, format(message, id, list.reference))
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
            taken(state, item, field.name, field.secret and secrets.HIDDEN or value, seen[value])
        elseif type(value) == "string" then
            seen[value] = item
        end
    end
end

-- The entity at the top of the file in which one stands.
local function root_of(item)
    while item.parent do
        item = item.parent
    end
    return item
end

-- The key of an unnamed entity may come again: the second one gets "#2".
local function distinct_key(state, item)
    local definition = entities.get(item.kind)
    local index = state.index[item.kind]
    local key, is_unique = identity.key(definition, item.entity)
    local other = index.by_key[key]
    if not is_unique then
        local facts = state.facts
        facts.has_unnamed = facts.has_unnamed or item.entity.id == nil
        facts.has_unnamed_ids = facts.has_unnamed_ids or item.entity.id ~= nil
    end
    if not other then
        index.by_key[key] = item
        return key
    end
    state.facts.is_crossed = state.facts.is_crossed or root_of(other) ~= root_of(item)
    -- a field of its own that is unique has been reported as such
    if is_unique and definition.cache_key and #definition.cache_key > 1 then
        local names = concat(definition.cache_key, ", ")
        local message = "uniqueness violation: '%s' entity with the same %s already declared (%s)"
        add_error(state, path_of(item), format(message, item.kind, names, path_of(other)))
    end
    index.again[key] = (index.again[key] or 1) + 1
    return key .. "#" .. index.again[key]
end

-- The ids that entities of a kind give themselves.
local function given_ids(state, kind)
    local given = {}
    for _, item in ipairs(state.items[kind]) do
        local id = item.entity and item.entity.id
        given[id or 0] = true
    end
    return given
end

-- The id of the entity that is known by the same name, unless another one of the file has it.
local function known_id(state, item)
    local id = state.known_id and state.known_id(item.kind, item.entity)
    local index = state.index[item.kind]
    if not id or index.by_id[id] then
        return nil
    end
    index.given = index.given or given_ids(state, item.kind)
    return not index.given[id] and id or nil
end

local function assign_id(state, item)
    local index = state.index[item.kind]
    local key = distinct_key(state, item)
    local id = item.entity.id or known_id(state, item) or identity.uuid(item.kind, key)
    -- Also of one that is reported: others may refer to it.
    item.id = id
    if index.by_id[id] then
        taken(state, item, "id", id, index.by_id[id])
        return
    end
    index.by_id[id] = item
    item.entity.id = id
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
    local fields = schema.fields(entities.get(item.kind))
    for _, name in ipairs(state.index[item.kind].auto) do
        local unless = fields[name].unless
        if item.entity[name] == nil and not (unless and unless(item.entity)) then
            -- a drawn one would differ on each node and load, a derived one be guessed
            local message = "required field missing: a declarative file must give it"
            add_error(state, path_of(item) .. "." .. name, message)
        end
    end
end

-- Puts what is kept into the place of what was given.
local function keep(state, item)
    local definition = entities.definition(item.kind, item.entity, state.registry)
    local err = transformations.run(definition, item.entity, item.entity)
    if err then
        add_error(state, path_of(item), err)
    end
end

local function count_pairs(state, item)
    local ok, message = state.pairs:add(item.entity)
    if not ok then
        add_error(state, path_of(item), message)
    end
end

-- Whether its service serves nothing.
local function is_hidden(state, route)
    local service = route.service and state.index.services.by_id[route.service.id]
    local entity = service and service.entity
    return entity and entity.enabled == false
end

-- What is refused is the first that is too much. Whether it is.
local function add_patterns(state, bytes)
    local before = state.pattern_bytes
    state.pattern_bytes = before + bytes
    return before <= patterns.MOST and state.pattern_bytes > patterns.MOST
end

local function count_patterns(state, item)
    if is_hidden(state, item.entity) then
        return
    end
    if add_patterns(state, patterns.bytes(item.entity)) then
        add_error(state, path_of(item), patterns.too_much(state.pattern_bytes))
    end
end

local function count_plugin_patterns(state, item)
    local plugin = state.registry:get(item.entity.name)
    if not plugin or not plugin.handler or item.entity.enabled == false then
        return
    end
    local list = patterns.of_plugin(plugin.handler, item.entity.config)
    if add_patterns(state, patterns.bytes_of_plugin(list)) then
        local path = path_of(item) .. "." .. patterns.field_of_plugin(list)
        add_error(state, path, patterns.too_much(state.pattern_bytes))
    end
end

local function add_warning(state, path, message)
    state.warnings[#state.warnings + 1] = { path = path, message = message }
end

-- Warns once of what some entities of a kind have in common: of the first of them for which `is`
-- says so, and how many others there are.
local function warn_once(state, kind, field, message, is)
    local first, others = nil, 0
    for _, item in ipairs(state.items[kind]) do
        if item.entity and is(item.entity) then
            others = first and others + 1 or 0
            first, item.warns = first or item, true
        end
    end
    if first then
        if others > 0 then
            message =
                format("%s; the same for %d other%s", message, others, others > 1 and "s" or "")
        end
        add_warning(state, path_of(first) .. field, message)
    end
end

-- Says once of each kind and field that it has no effect.
local function warn_of_unused(state, kind)
    local definition, message = entities.get(kind), "stored, but has no effect in this version"
    if definition.unused then
        warn_once(state, kind, "", message, function()
            return true
        end)
    end
    for _, entry in ipairs(definition.fields) do
        local name, field = next(entry)
        if field.unused then
            warn_once(state, kind, "." .. name, message, function(entity)
                return entity[name] ~= nil
            end)
        end
    end
end

-- Says once that upstreams may be anybody.
local function warn_of_unverified(state)
    local message = "the certificate of the upstream is not verified"
    warn_once(state, "services", ".tls_verify", message, function(service)
        return service.protocol == "https" and service.tls_verify ~= true
    end)
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

-- Notes of an entity what keeps its file from being remembered, or that of another to be checked
-- beside it alone.
local function note(facts, definition, entity)
    local name = entity[definition.endpoint_key]
    facts.has_id_names = facts.has_id_names or (type(name) == "string" and rules.is_uuid(name))
    facts.expires = facts.expires or entity.expires_at ~= nil
end

-- Whether a configuration is of a plugin that is not Sluice's own: what that packs, it may refuse.
local function packs_as_it_likes(state, item)
    local plugin = item.kind == "plugins" and state.registry:get(item.entity.name)
    return plugin and not plugin.is_bundled and plugin.handler ~= nil and plugin.handler.pack ~= nil
end

-- What images cannot have is refused here, where it can be said which line that is. What is small
-- has nothing that the bundled plugins refuse.
local function check_limit(state, item)
    if state.limit and (item.is_large or packs_as_it_likes(state, item)) then
        local field, reason = state.limit(item.kind, item.entity)
        if reason then
            add_error(state, path_of(item) .. (field and "." .. field or ""), reason)
        end
    end
end

--- Links the collected entities.
-- Errors and warnings are added to the state's.
-- @tparam table state as returned by `gateway.config.collect`
-- @tparam number now seconds, for timestamps that the file does not give
-- @tparam number size bytes of the file
-- @treturn table kind -> array of finished entities
-- @treturn table facts of all of them, for gateway.config.reuse: `has_unnamed` and
-- `has_unnamed_ids`, entities that are known by nothing that is unique, without and with an id of
-- their own; `is_crossed`: such that are the same stand in different ones at the top;
-- `has_id_names`: a name is a UUID; `expires`: one ends by itself
function _M.run(state, now, size)
    state.index, state.facts = {}, {}
    state.pairs = route_pairs.new(size)
    state.pattern_bytes = 0
    local out = {}
    for _, kind in ipairs(entities.kinds) do
        local items, definition = state.items[kind], entities.get(kind)
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
                keep(state, item)
                lifetime.begin(definition, item.entity, now)
            end
            check_unique(state, item)
            if linked then
                assign_id(state, item)
                if kind == "routes" then
                    count_pairs(state, item)
                    count_patterns(state, item)
                elseif kind == "plugins" then
                    count_plugin_patterns(state, item)
                end
                out[kind][#out[kind] + 1] = finish(item, now)
                check_limit(state, item)
                note(state.facts, definition, item.entity)
            else
                remember_broken(state, item)
            end
        end
        warn_of_unused(state, kind)
    end
    warn_of_unverified(state)
    return out, state.facts
end

return _M
