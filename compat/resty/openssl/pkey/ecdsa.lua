--- ECDSA signatures: DER from and to the two numbers side by side (RFC 7518, 3.4).
-- @module resty.openssl.pkey.ecdsa

local crypto = require("sluice.ffi.libcrypto")
local ffi = require("ffi")

local ceil = math.ceil
local sub = string.sub

local C = crypto.C

local MAX_BYTES = 512

local _M = {}

-- Bytes of each number.
local function size_of(key)
    return ceil(C.EVP_PKEY_get_bits(key.ctx) / 8)
end

--- From DER.
-- @treturn string|nil
-- @treturn string|nil
-- @phases any
function _M.to_raw(der, key)
    local place = ffi.new("const unsigned char *[1]", ffi.cast("const unsigned char *", der))
    local signature = C.d2i_ECDSA_SIG(nil, place, #der)
    if signature == nil then
        return nil, crypto.failure("invalid signature")
    end
    ffi.gc(signature, C.ECDSA_SIG_free)
    local size = size_of(key)
    local bytes = ffi.new("unsigned char[?]", 2 * size)
    if
        C.BN_bn2binpad(C.ECDSA_SIG_get0_r(signature), bytes, size) ~= size
        or C.BN_bn2binpad(C.ECDSA_SIG_get0_s(signature), bytes + size, size) ~= size
    then
        return nil, "invalid signature"
    end
    return ffi.string(bytes, 2 * size)
end

--- To DER.
-- @treturn string|nil
-- @treturn string|nil
-- @phases any
function _M.to_der(raw, key)
    local size = size_of(key)
    if #raw ~= 2 * size then
        return nil, "invalid signature length, expect " .. 2 * size .. " bytes"
    end
    local signature = ffi.gc(C.ECDSA_SIG_new(), C.ECDSA_SIG_free)
    -- The signature has them from here on.
    local r = C.BN_bin2bn(sub(raw, 1, size), size, nil)
    local s = C.BN_bin2bn(sub(raw, size + 1), size, nil)
    C.ECDSA_SIG_set0(signature, r, s)
    local bytes = ffi.new("unsigned char[?]", MAX_BYTES)
    local place = ffi.new("unsigned char *[1]", bytes)
    local length = C.i2d_ECDSA_SIG(signature, place)
    return ffi.string(bytes, length)
end

return _M
