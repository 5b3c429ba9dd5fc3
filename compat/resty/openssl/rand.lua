--- lua-resty-openssl's random bytes.
-- @module resty.openssl.rand

local crypto = require("sluice.ffi.libcrypto")
local ffi = require("ffi")

local type = type

local C = crypto.C

-- What OpenSSL counts with.
local MAX_BYTES = 2 ^ 31 - 1

local _M = {}

--- Random bytes.
-- @tparam number count
-- @tparam[opt] boolean is_private of OpenSSL's generator for secrets
-- @treturn string|nil
-- @treturn string|nil "rand.bytes: ..."
-- @phases any
function _M.bytes(count, is_private)
    if type(count) ~= "number" then
        return nil, "rand.bytes: expect a number at #1"
    elseif not (count >= 0 and count <= MAX_BYTES) then
        return nil, "rand.bytes: number out of range"
    end
    local buffer = ffi.new("unsigned char[?]", count)
    local fill = is_private and C.RAND_priv_bytes or C.RAND_bytes
    if fill(buffer, count) ~= 1 then
        return nil, crypto.failure("rand.bytes")
    end
    return ffi.string(buffer, count)
end

return _M
