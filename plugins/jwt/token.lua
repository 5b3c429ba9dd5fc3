--- The plugin's parser of tokens, for Lua.
-- @module plugins.jwt.token

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")

abi.declare("core/image", "core/text", "core/plugin")
abi.declare_plugin("jwt", 3930569672)

local lib = abi.library()

local text = ffi.new("sluice_core_text_t")
local parts = ffi.new("sluice_jwt_parts_t")
-- What `parts` points into; kept here, as what only a function has may be collected before its end.
local room

local ERRORS = {
    [lib.SLUICE_JWT_BAD_JSON] = "invalid JSON",
    [lib.SLUICE_JWT_BAD_ALG] = "invalid alg",
    [lib.SLUICE_JWT_BAD_SIGNATURE] = "invalid signature",
}

local _M = {}

local function string_of(part)
    return ffi.string(part.data, part.length)
end

--- Decodes a token's parts (RFC 7515, section 7.1); verifies nothing.
-- @tparam string token
-- @treturn string|nil the header: a JSON object whose `alg` is known
-- @treturn string the claims: a JSON object; or "invalid JSON", "invalid alg", "invalid signature"
-- @treturn string|nil the signature's bytes
-- @phases any
function _M.split(token)
    room = ffi.new("char[?]", #token + 1)
    text.data, text.length = token, #token
    local code = lib.sluice_jwt_split(text, room, parts)
    if code ~= lib.SLUICE_JWT_OK then
        return nil, ERRORS[code]
    end
    return string_of(parts.header), string_of(parts.claims), string_of(parts.signature)
end

return _M
