--- Checks an entity by its schema. One that is disabled may have what this version does not
-- support: nothing uses it.
-- @module gateway.entities.checked

local cjson = require("cjson")
local schema = require("gateway.schema")

local NULL = cjson.null

local _M = {}

--- Whether an entity may be of a plugin that is not there.
-- @tparam table value as sent
-- @treturn boolean
function _M.may_be_of_none(value)
    return value.enabled == false
end

-- Without nulls: nobody knows the fields.
local function without_nulls(value)
    local out = {}
    for key, item in pairs(value) do
        if type(item) == "table" then
            out[key] = without_nulls(item)
        elseif item ~= NULL then
            out[key] = item
        end
    end
    return out
end

--- Checks an entity as gateway.schema's `validate` does.
-- @tparam table definition
-- @tparam table value
-- @tparam[opt] function vault
-- @tparam[opt] string unknown the name of a plugin that is not there; `value` is changed then
-- @treturn table|nil
-- @treturn nil|table errors
-- @treturn nil|table references
-- @treturn nil|table `{ path =, message = }` of what is not supported, where the entity is disabled
function _M.check(definition, value, vault, unknown)
    if unknown and type(value.config) == "table" then
        value.config = without_nulls(value.config)
    end
    local entity, errors, found = schema.validate(definition, value, "", vault)
    if errors and value.enabled == false then
        local lenient, _, references, waived = schema.walk(definition, value, "", vault, true)
        if lenient then
            return lenient, nil, references, waived
        end
    end
    return entity, errors, found
end

return _M
