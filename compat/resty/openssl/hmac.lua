--- lua-resty-openssl's HMAC.
-- @module resty.openssl.hmac
-- @usage
-- local bytes = hmac.new("key", "sha256"):final("text")

local mac = require("resty.openssl.mac")

local crypto = require("sluice.ffi.libcrypto")

local format = string.format
local tostring = tostring

local _M = {}

--- Makes one.
-- @tparam string key
-- @tparam[opt="sha1"] string digest
-- @treturn table|nil of resty.openssl.mac
-- @treturn string|nil 'hmac.new: invalid digest type "..."', "hmac.new: expect a string at #1"
-- @phases any
function _M.new(key, digest)
    digest = digest or "sha1"
    if type(key) ~= "string" then
        return nil, "hmac.new: expect a string at #1"
    elseif not crypto.digest(digest) then
        return nil, format('hmac.new: invalid digest type "%s"', tostring(digest))
    end
    return mac.new(key, "HMAC", nil, digest)
end

_M.istype = mac.istype

return _M
