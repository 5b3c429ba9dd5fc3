--- Entities as JSON shows them.
-- @module gateway.schema.to_json

local cjson = require("cjson")

local ipairs = ipairs
local next = next
local pairs = pairs
local setmetatable = setmetatable

local NULL = cjson.null
-- A Lua table does not say whether it is an empty list; this one does, to
-- gateway.control.admin.json.
local EMPTY_ARRAY = setmetatable({}, { __jsontype = "array" })

local _M = {}

local to_json

local function list_to_json(field, value, hides)
    if #value == 0 then
        return EMPTY_ARRAY
    end
    local out = {}
    for i, item in ipairs(value) do
        out[i] = to_json(field.elements, item, hides)
    end
    return out
end

to_json = function(field, value, hides)
    if value == nil or value == NULL or (hides and field.encrypted) then
        return NULL
    elseif field.type == "array" or field.type == "set" then
        return list_to_json(field, value, hides)
    elseif field.type == "map" then
        local out = {}
        for key, item in pairs(value) do
            out[key] = to_json(field.values, item, hides)
        end
        return out
    elseif field.type == "record" and field.fields then
        return _M.entity(field, value, hides)
    end
    return value
end

--- Makes an entity ready for JSON: every field of the schema, null where unset.
-- A list that was given as empty stays a list: its metatable has `__jsontype` "array".
-- @tparam table definition schema
-- @tparam table entity as returned by gateway.schema's `validate`, or from the store
-- @tparam[opt] boolean hides null in the place of each secret (`encrypted = true` in the schema)
-- @treturn table
function _M.entity(definition, entity, hides)
    local out = {}
    for _, entry in ipairs(definition.fields) do
        local name, field = next(entry)
        out[name] = to_json(field, entity[name], hides)
    end
    return out
end

return _M
