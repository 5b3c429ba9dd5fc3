--- lua-resty-openssl's view of which OpenSSL this is.
-- @module resty.openssl.version

local C = require("sluice.ffi.libcrypto").C
local ffi = require("ffi")

local tonumber = tonumber

local NUMBER = tonumber(C.OpenSSL_version_num())

return {
    version_num = NUMBER,
    version_text = ffi.string(C.OpenSSL_version(0)),
    OPENSSL_3X = NUMBER >= 0x30000000,
    OPENSSL_3_UP = NUMBER >= 0x30000000,
    OPENSSL_11_OR_LATER = true,
    OPENSSL_111_OR_LATER = true,
    OPENSSL_11 = false,
    OPENSSL_111 = false,
    OPENSSL_10 = false,
    BORINGSSL = false,
}
