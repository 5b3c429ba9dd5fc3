--- Entities as JSON shows them.
-- @module gateway.schema.to_json

local cjson = require("cjson")
local plans = require("gateway.schema.plan")
local secrets = require("gateway.schema.secrets")

local NULL = cjson.null
-- A Lua table does not say whether it is an empty list; this one does, to
-- gateway.schema.json.
local EMPTY_ARRAY = setmetatable({}, { __jsontype = "array" })

local _M = {}

local to_json

local function list_to_json(field, value, hides, of_file)
    if #value == 0 then
        return EMPTY_ARRAY
    end
    local out = {}
    for i, item in ipairs(value) do
        out[i] = to_json(field.elements, nil, item, hides, of_file)
    end
    return out
end

-- `name`: under which the value stands; nil of what stands in a list.
to_json = function(field, name, value, hides, of_file)
    if value == nil or value == NULL or (hides and secrets.is_secret(field, name, value)) then
        return NULL
    elseif field.type == "array" or field.type == "set" then
        return list_to_json(field, value, hides, of_file)
    elseif field.type == "map" then
        local out = {}
        for key, item in pairs(value) do
            out[key] = to_json(field.values, key, item, hides, of_file)
        end
        return out
    elseif field.type == "record" and field.fields then
        return _M.entity(field, value, hides, of_file)
    elseif hides and field.type == "record" then
        -- Of what nobody knows, a plugin that is not there, some may be secrets.
        return NULL
    end
    return value
end

--- Makes an entity ready for JSON: every field of the schema, null where unset; former names too.
-- A list that was given as empty stays a list: its metatable has `__jsontype` "array".
-- @tparam table definition schema
-- @tparam table entity as returned by gateway.schema's `validate`, or from the store
-- @tparam[opt] boolean hides null in the place of each secret (gateway.schema.secrets)
-- @tparam[opt] boolean of_file without what answers alone have: former names of fields, and fields
-- that are not stored
-- @treturn table
function _M.entity(definition, entity, hides, of_file)
    local out = {}
    for _, entry in ipairs(definition.fields) do
        local name, field = next(entry)
        if not (of_file and field.transient) then
            out[name] = to_json(field, name, entity[name], hides, of_file)
        end
    end
    for _, entry in ipairs(not of_file and definition.shorthand_fields or {}) do
        local name, field = next(entry)
        local instead = plans.instead_of(field)
        if instead then
            out[name] = plans.former_value(instead[1], out)
        end
    end
    return out
end

return _M
