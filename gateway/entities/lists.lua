--- Lists within entities that others have to know of, found in schemas: ids of other entities, and
-- names whose values are secrets. They stand in a field, or in one of a record such as a plugin's
-- `config`.
--
-- A list is plain data: `{ name = "config.ca_certificates", keys = { "config", "ca_certificates" },
-- of = the plugin whose configurations have it, or nil, reference = the kind, of ids }`.
-- @module gateway.entities.lists

local _M = {}

local NONE = {}

local function walk(definition, keys, visit)
    for _, entry in ipairs(definition.fields) do
        local name, field = next(entry)
        keys[#keys + 1] = name
        visit(field, keys)
        if field.type == "record" and field.fields then
            walk(field, keys, visit)
        end
        keys[#keys] = nil
    end
end

local function new(keys, plugin, reference)
    return {
        name = table.concat(keys, "."),
        keys = { unpack(keys) },
        of = plugin,
        reference = reference,
    }
end

--- The lists of ids: their elements have a `reference`.
-- @tparam table definition schema of a kind, or of a plugin
-- @tparam[opt] string plugin its name
-- @treturn {table,...}
function _M.of_ids(definition, plugin)
    local found = {}
    walk(definition, {}, function(field, keys)
        local reference = field.elements and field.elements.reference
        found[#found + 1] = reference and new(keys, plugin, reference)
    end)
    return found
end

--- The lists of names, of headers or parameters, whose values no log may have: `names_secrets`.
-- @return as `of_ids`
function _M.of_secret_names(definition, plugin)
    local found = {}
    walk(definition, {}, function(field, keys)
        found[#found + 1] = field.names_secrets and new(keys, plugin)
    end)
    return found
end

--- What an entity has in a list.
-- @tparam table entity
-- @tparam table list
-- @treturn table an array, empty where it has none
function _M.items(entity, list)
    if list.of and entity.name ~= list.of then
        return NONE
    end
    local value = entity
    for _, key in ipairs(list.keys) do
        value = type(value) == "table" and value[key]
    end
    return type(value) == "table" and value or NONE
end

return _M
