--- The schema of a plugin's own entities (`daos.lua`), as Kong takes it, as one of ours.
--
-- | of Kong's | here |
-- |---|---|
-- | `ttl = true` | a field `ttl`, and an end that look-ups check (gateway.schema.lifetime) |
-- | `cache_key` of one field | a field that is unique |
-- | `dao`, `workspaceable`, `db_export` | for `kong.db`, nothing, no export |
-- | no `endpoint_key`, no `cache_key` | an id of a file's entity is made of all its fields |
-- @module gateway.entities.of_plugin

local typedefs = require("gateway.schema.typedefs")

local _M = {}

local ON_DELETE = { cascade = true, restrict = true, null = true }

-- No part of what makes an entity the one that it is.
local FLEETING = { id = true, created_at = true, updated_at = true, tags = true, ttl = true }

-- made of a schema; one is the same each time
local made = setmetatable({}, { __mode = "k" })

-- kind -> field -> definition
local function fields_of(schema)
    local found = {}
    for _, entry in ipairs(schema.fields) do
        local name, field = next(entry)
        if type(name) ~= "string" or type(field) ~= "table" then
            return nil
        end
        found[name] = field
    end
    return found
end

local function check_reference(name, field)
    if type(field.reference) ~= "string" then
        return ("field '%s': reference: string expected"):format(name)
    elseif field.on_delete ~= nil and not ON_DELETE[field.on_delete] then
        return ("field '%s': on_delete: cascade, null or restrict expected"):format(name)
    end
    return nil
end

local function check_cache_key(schema, fields)
    if type(schema.cache_key) ~= "table" or #schema.cache_key == 0 then
        return "cache_key: names of fields expected"
    end
    for _, name in ipairs(schema.cache_key) do
        if not fields[name] then
            return ("cache_key: there is no field '%s'"):format(tostring(name))
        end
    end
    return nil
end

-- What is wrong with a schema, nil: nothing.
local function mistake(schema)
    if type(schema.fields) ~= "table" then
        return "fields: table expected"
    end
    local fields, key = fields_of(schema), schema.primary_key
    if not fields then
        return "fields: `{ name = definition }` expected"
    elseif type(key) ~= "table" or #key ~= 1 or key[1] ~= "id" or not fields.id then
        return 'primary_key: only { "id" } is supported'
    elseif schema.endpoint_key and not fields[schema.endpoint_key] then
        return ("endpoint_key: there is no field '%s'"):format(tostring(schema.endpoint_key))
    end
    for name, field in pairs(fields) do
        local wrong = field.type == "foreign" and check_reference(name, field)
        if wrong then
            return wrong
        end
    end
    return schema.cache_key and check_cache_key(schema, fields) or nil
end

-- Fields that an id can be made of where nothing else is unique.
local function identity_of(fields)
    local names = {}
    for _, entry in ipairs(fields) do
        local name, field = next(entry)
        names[#names + 1] = not FLEETING[name] and not field.auto and name or nil
    end
    return names
end

local function copy(table_)
    local out = {}
    for key, value in pairs(table_) do
        out[key] = value
    end
    return out
end

local function make(schema)
    local out = copy(schema)
    out.of_plugin = true
    out.no_export = schema.db_export == false or nil
    local fields = copy(schema.fields)
    if schema.ttl == true and not fields_of(schema).ttl then
        fields[#fields + 1] = { ttl = typedefs.ttl }
    end
    out.expires = schema.expires or schema.ttl == true or nil
    if schema.cache_key and #schema.cache_key == 1 then
        for i, entry in ipairs(fields) do
            local name, field = next(entry)
            if name == schema.cache_key[1] and not field.unique then
                local unique = copy(field)
                unique.unique = true
                fields[i] = { [name] = unique }
            end
        end
    end
    out.fields = fields
    out.identity = schema.identity or identity_of(fields)
    return out
end

--- Makes a schema of ours of one of a plugin's. Pure, and the same for the same.
-- @tparam table schema with a name
-- @treturn table|nil
-- @treturn nil|string what is wrong with it, for people
function _M.read(schema)
    if made[schema] then
        return made[schema]
    end
    local wrong = mistake(schema)
    if wrong then
        return nil, ("'%s': %s"):format(schema.name, wrong)
    end
    made[schema] = make(schema)
    return made[schema]
end

-- Puts what a schema refers to before it, where that is among them, too.
local function add_in_order(into, schema, by_name, seen)
    if seen[schema] then
        return
    end
    seen[schema] = true
    for _, entry in ipairs(type(schema.fields) == "table" and schema.fields or {}) do
        local _, field = next(type(entry) == "table" and entry or {})
        local other = type(field) == "table" and by_name[field.reference or false]
        if other then
            add_in_order(into, other, by_name, seen)
        end
    end
    into[#into + 1] = schema
end

--- The schemas of what a `daos.lua` returns: a list, or by their names.
-- @tparam table daos
-- @treturn {table,...}|nil in order, of names where it is no list; what one refers to before it
-- @treturn nil|string what is wrong, for people
function _M.list(daos)
    local names, found, by_name = {}, {}, {}
    for name in pairs(daos) do
        names[#names + 1] = name
    end
    table.sort(names, function(a, b)
        if type(a) == type(b) then
            return a < b
        end
        return type(a) == "number"
    end)
    for _, name in ipairs(names) do
        local schema = daos[name]
        if type(schema) ~= "table" or type(schema.name) ~= "string" then
            return nil, "schemas with a name expected"
        end
        found[#found + 1], by_name[schema.name] = schema, schema
    end
    local ordered, seen = {}, {}
    for _, schema in ipairs(found) do
        add_in_order(ordered, schema, by_name, seen)
    end
    return ordered
end

return _M
