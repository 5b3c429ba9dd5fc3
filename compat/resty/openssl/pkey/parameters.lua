--- What a key is made of, as lua-resty-openssl names it.
-- @module resty.openssl.pkey.parameters

local bn = require("resty.openssl.bn")
local crypto = require("sluice.ffi.libcrypto")
local ffi = require("ffi")

local pairs = pairs
local tonumber = tonumber

local C = crypto.C

local MAX_TEXT_BYTES, MAX_POINT_BYTES, MAX_RAW_BYTES = 80, 512, 128

local RSA = {
    n = "n",
    e = "e",
    d = "d",
    p = "rsa-factor1",
    q = "rsa-factor2",
    dmp1 = "rsa-exponent1",
    dmq1 = "rsa-exponent2",
    iqmp = "rsa-coefficient1",
}

local _M = {}

local function number(key, name)
    local place = ffi.new("void *[1]")
    local found = C.EVP_PKEY_get_bn_param(key, name, place) == 1
    if not found then
        -- A public key lacks some: that is no failure.
        C.ERR_clear_error()
        return nil
    end
    local copy = bn.dup(place[0])
    C.BN_free(place[0])
    return copy
end

--- The curve of an EC key.
-- @tparam cdata key
-- @treturn number|nil its number in OpenSSL
-- @phases any
function _M.group(key)
    local text, length = ffi.new("char[?]", MAX_TEXT_BYTES), ffi.new("size_t[1]")
    if C.EVP_PKEY_get_utf8_string_param(key, "group", text, MAX_TEXT_BYTES, length) ~= 1 then
        return nil
    end
    return C.OBJ_txt2nid(ffi.string(text))
end

local function of_rsa(key)
    local found = {}
    for name, parameter in pairs(RSA) do
        found[name] = number(key, parameter)
    end
    return found
end

local function of_ec(key)
    local point, length = ffi.new("unsigned char[?]", MAX_POINT_BYTES), ffi.new("size_t[1]")
    if C.EVP_PKEY_get_octet_string_param(key, "pub", point, MAX_POINT_BYTES, length) ~= 1 then
        C.ERR_clear_error()
        length[0] = 0
    end
    return {
        group = _M.group(key),
        x = number(key, "qx"),
        y = number(key, "qy"),
        private = number(key, "priv"),
        public = length[0] > 0 and bn.from_binary(ffi.string(point, length[0])) or nil,
    }
end

local function raw(read, key)
    local bytes, length = ffi.new("unsigned char[?]", MAX_RAW_BYTES), ffi.new("size_t[1]")
    length[0] = MAX_RAW_BYTES
    if read(key, bytes, length) ~= 1 then
        C.ERR_clear_error()
        return nil
    end
    return ffi.string(bytes, tonumber(length[0]))
end

--- All that is known.
-- @tparam table key of resty.openssl.pkey
-- @treturn table|nil RSA: n, e, d, p, q, dmp1, dmq1, iqmp (numbers of resty.openssl.bn); EC: group,
--   x, y, public, private; others: public, private as bytes. What it lacks is nil
-- @treturn string|nil "key getter not defined"
-- @phases any
function _M.of(key)
    if key.kind == "RSA" then
        return of_rsa(key.ctx)
    elseif key.kind == "EC" then
        return of_ec(key.ctx)
    end
    local public = raw(C.EVP_PKEY_get_raw_public_key, key.ctx)
    if not public then
        return nil, "key getter not defined"
    end
    return { public = public, private = raw(C.EVP_PKEY_get_raw_private_key, key.ctx) }
end

return _M
