--- Kong's SHA-256 in several notations.
-- @module kong.tools.sha256

local crypto = require("sluice.ffi.libcrypto")
local digest = require("resty.openssl.digest")
local to_hex = require("resty.string").to_hex

local _M = {}

--- Its bytes.
-- @tparam string text
-- @treturn string
-- @phases any
function _M.sha256_bin(text)
    return digest.new("sha256"):final(text)
end

--- Hexadecimal digits.
-- @phases any
function _M.sha256_hex(text)
    return to_hex(_M.sha256_bin(text))
end

--- Base64, with padding.
-- @phases any
function _M.sha256_base64(text)
    local found = crypto.encode_base64url(_M.sha256_bin(text))
    return found:gsub("[-_]", { ["-"] = "+", ["_"] = "/" }) .. "="
end

--- Base64url, without padding.
-- @phases any
function _M.sha256_base64url(text)
    return crypto.encode_base64url(_M.sha256_bin(text))
end

return _M
