--- lua-resty-openssl on the system's libcrypto: those parts that plugins use.
-- @module resty.openssl

return {
    _VERSION = "1.5.1",
    bn = require("resty.openssl.bn"),
    cipher = require("resty.openssl.cipher"),
    digest = require("resty.openssl.digest"),
    hmac = require("resty.openssl.hmac"),
    kdf = require("resty.openssl.kdf"),
    mac = require("resty.openssl.mac"),
    pkey = require("resty.openssl.pkey"),
    rand = require("resty.openssl.rand"),
    version = require("resty.openssl.version"),
    x509 = require("resty.openssl.x509"),
}
