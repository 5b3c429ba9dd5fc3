--- Kong's UUIDs.
-- @module kong.tools.uuid

local uuid = require("resty.jit-uuid")

local find = string.find
local type = type

local PATTERN = "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-" .. ("%x"):rep(12) .. "$"

local _M = {
    --- A random UUID.
    uuid = uuid.generate_v4,
}

--- Whether a text has the form of a UUID, of whatever version and variant.
-- @tparam any text
-- @treturn boolean
-- @phases any
function _M.is_valid_uuid(text)
    return type(text) == "string" and #text == 36 and find(text, PATTERN) ~= nil
end

return _M
