--- Which fields are secrets: the one place that says so, for all that shows values to people.
--
-- A schema says it of a field: `encrypted = true`, as Kong's schemas do, or `secret = true` where
-- Kong's field has no such mark. `secret = false` is a field that is none, whatever it is called.
-- What no schema describes (a map's keys, a plugin that is not there) and fields of others'
-- plugins that say nothing are told by their names. A private key is one wherever it stands, such
-- as in a field for public keys.
-- @module gateway.schema.secrets

local find = string.find
local lower = string.lower

-- In names of fields, headers and parameters, in lower case.
local WORDS = { "authorization", "cookie", "credential", "passw", "private", "secret", "token" }
-- The same of values that may be references to a vault.
local KEY_WORD = "key"

-- Of PEM (RFC 7468), of whatever algorithm.
local PRIVATE_KEY = "PRIVATE KEY-----"

local _M = {
    --- What stands in the place of a secret in texts.
    HIDDEN = "***",
}

local function has_word(name)
    for _, word in ipairs(WORDS) do
        if find(name, word, 1, true) then
            return true
        end
    end
    return false
end

--- Whether people may not see a value.
-- @tparam table|nil field of the schema, if it has any
-- @tparam string|nil name under which the value stands; nil: the schema alone says
-- @tparam any value that stands there; nil: of the field, whatever stands there
-- @treturn boolean
function _M.is_secret(field, name, value)
    if type(value) == "string" and find(value, PRIVATE_KEY, 1, true) then
        return true
    elseif field and (field.encrypted or field.secret ~= nil) then
        return field.encrypted or field.secret
    elseif not name or (field and field.type ~= "string") then
        return false
    end
    name = lower(name)
    if has_word(name) then
        return true
    end
    return field ~= nil and field.referenceable == true and find(name, KEY_WORD, 1, true) ~= nil
end

return _M
