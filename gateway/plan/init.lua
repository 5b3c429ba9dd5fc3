--- What changes of entities change, as all that make some show it: which entities are created,
-- changed and deleted, with their names, owners and the fields that differ.
-- @module gateway.plan
-- @usage
-- local plan = plans.new(registry, find)
-- plan:add("routes", before, after)
-- print(plan.changed, plan.entities[1].fields[1].field)

local differences = require("gateway.plan.differences")
local entities = require("gateway.entities")
local json = require("gateway.schema.json")
local schema = require("gateway.schema")

local NULL = json.null
-- Entities that are named; more are counted.
local MAX_ENTITIES = 100000

local _M = {}
local methods = {}
local mt = { __index = methods }

--- What an entity is known by to people, and is no secret.
-- @tparam string kind
-- @tparam table entity
-- @treturn string|nil
function _M.name_of(kind, entity)
    if kind == "plugins" then
        return entity.name
    end
    local definition = entities.get(kind)
    local name = not definition.has_secret_name and entity[definition.endpoint_key]
    return name ~= NULL and name or nil
end

--- Begins a plan without changes.
-- @tparam table registry of plugins
-- @tparam function find `(kind, id)` -> an entity that others refer to, or nil; may yield
-- @treturn table `entities`, an array of `{ kind = its name in paths, name =, id =, owners = array
-- of { kind =, name = }, change = "created", "changed", "deleted" or "unchanged", fields = those of
-- gateway.plan.differences where it is changed }`; `created`, `changed`, `deleted`, `unchanged`:
-- how many. Names are cjson's null where there are none. Of more than 100,000 the rest is counted
-- alone. `blocked`: who cannot go, and `by` whom it is referred to, both as in `entities`
function _M.new(registry, find)
    return setmetatable({
        registry = registry,
        find = find,
        names = {},
        entities = json.array({}),
        created = 0,
        changed = 0,
        deleted = 0,
        unchanged = 0,
    }, mt)
end

-- The name of what is referred to, or its id.
local function name_of_other(self, kind, id)
    local names = self.names[kind] or {}
    self.names[kind] = names
    if not names[id] then
        local other = self.find(kind, id)
        names[id] = other and _M.name_of(kind, other) or id
    end
    return names[id]
end

-- A reference to the kind by whose name it is called owns what refers to it: a certificate of a
-- service, `client_certificate`, does not.
local function owners_of(self, kind, entity)
    local list = json.array({})
    for _, field in ipairs(entities.foreign(kind)) do
        local reference = entity[field.name]
        if field.name .. "s" == field.reference and type(reference) == "table" then
            list[#list + 1] = {
                kind = entities.path_name(field.reference),
                name = name_of_other(self, field.reference, reference.id),
            }
        end
    end
    return list
end

-- References by name.
local function name_references(self, kind, fields)
    for _, field in ipairs(entities.foreign(kind)) do
        for _, each in ipairs(fields) do
            for _, side in ipairs(each.field == field.name and { "old", "new" } or {}) do
                local reference = each[side]
                each[side] = type(reference) == "table"
                        and name_of_other(self, field.reference, reference.id)
                    or NULL
            end
        end
    end
    return fields
end

-- An entity by its kind, names and owners.
local function describe(self, kind, entity)
    return {
        kind = entities.path_name(kind),
        name = _M.name_of(kind, entity) or NULL,
        id = entity.id,
        owners = owners_of(self, kind, entity),
    }
end

-- Of a kind without tags, such as membership in a group, too.
local function has_tags(kind, entity, tags)
    if not schema.field(entities.get(kind), "tags") then
        return true
    end
    local is_there = {}
    for _, tag in ipairs(type(entity.tags) == "table" and entity.tags or {}) do
        is_there[tag] = true
    end
    for _, tag in ipairs(tags) do
        if not is_there[tag] then
            return false
        end
    end
    return true
end

--- Has deleted entities that lack some of these tags counted, as `untagged`.
-- @tparam {string,...}|nil tags
function methods:count_untagged(tags)
    self.tags, self.untagged = tags, tags and 0
end

--- Adds what becomes of an entity.
-- @tparam string kind
-- @tparam table|nil before as it is in the store
-- @tparam table|nil after as it is to be there
-- @tparam[opt] boolean is_same it does not change
function methods:add(kind, before, after, is_same)
    local entity = after or before
    local change = is_same and "unchanged"
        or not before and "created"
        or not after and "deleted"
        or "changed"
    self[change] = self[change] + 1
    if change == "deleted" and self.tags and not has_tags(kind, entity, self.tags) then
        self.untagged = self.untagged + 1
    end
    if #self.entities >= MAX_ENTITIES then
        return
    end
    local entry = describe(self, kind, entity)
    entry.change = change
    if change == "changed" then
        local definition = entities.definition(kind, entity, self.registry)
        local fields = differences.find(definition, before, after)
        entry.fields = json.array(name_references(self, kind, fields))
    end
    self.entities[#self.entities + 1] = entry
end

--- Notes that an entity cannot go, since another one that stays refers to it.
-- @tparam string kind
-- @tparam table entity
-- @tparam string by_kind
-- @tparam table by
function methods:block(kind, entity, by_kind, by)
    self.blocked = describe(self, kind, entity)
    self.blocked.by = describe(self, by_kind, by)
end

--- What was added, for an answer.
-- @treturn table plain data, for `encode` of gateway.schema.json
function methods:result()
    return {
        entities = self.entities,
        created = self.created,
        changed = self.changed,
        deleted = self.deleted,
        unchanged = self.unchanged,
        untagged = self.untagged,
        blocked = self.blocked,
    }
end

--- The same as JSON.
-- @treturn string
function methods:encode()
    return json.encode(self:result())
end

return _M
