--- The values of a form, which are all texts, as a schema wants them.
-- @module gateway.schema.texts

local cjson = require("cjson")
local schema = require("gateway.schema")

local find = string.find

local NULL = cjson.null
local BOOLEANS = { ["true"] = true, ["false"] = false }

local _M = {}

local typed

local function typed_list(field, value)
    if type(value) ~= "table" then
        value = { value }
    end
    local out = {}
    for key, item in pairs(value) do
        out[key] = typed(field.elements, item)
    end
    return out
end

local function typed_map(field, value)
    local out = {}
    for key, item in pairs(value) do
        out[key] = typed(field.values, item)
    end
    return out
end

-- What is not of its type stays as it is, for the schema to say so.
typed = function(field, value)
    local kind = field and field.type
    if value == "" then
        return NULL
    elseif kind == "array" or kind == "set" then
        return typed_list(field, value)
    elseif type(value) == "table" then
        if kind == "record" and field.fields then
            return _M.typed(field, value)
        end
        return kind == "map" and typed_map(field, value) or value
    elseif kind == "boolean" and BOOLEANS[value] ~= nil then
        return BOOLEANS[value]
    elseif (kind == "integer" or kind == "number") and find(value, "^-?%d+%.?%d*$") then
        return tonumber(value)
    end
    return value
end

--- Makes an entity of texts: numbers, booleans, lists of one. An empty text is null.
-- @tparam table definition schema
-- @tparam table value names -> texts, lists, tables of the same
-- @treturn table a new one; what a schema does not know stays text
function _M.typed(definition, value)
    local out, fields = {}, schema.fields(definition)
    for name, item in pairs(value) do
        out[name] = typed(fields[name], item)
    end
    return out
end

return _M
