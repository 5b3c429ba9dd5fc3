--- lua-resty-openssl's sets of certificates that are trusted.
-- @module resty.openssl.x509.store
-- @usage
-- local ok, err = store:verify(cert, chain)

local chains = require("resty.openssl.x509.chain")
local crypto = require("sluice.ffi.libcrypto")
local ffi = require("ffi")
local x509 = require("resty.openssl.x509")

local bor = require("bit").bor
local format = string.format
local getmetatable = getmetatable
local select = select
local setmetatable = setmetatable
local tonumber = tonumber
local tostring = tostring
local type = type

local C = crypto.C

local _M = {
    verify_flags = {
        X509_V_FLAG_CRL_CHECK = 0x4,
        X509_V_FLAG_CRL_CHECK_ALL = 0x8,
        X509_V_FLAG_X509_STRICT = 0x20,
        X509_V_FLAG_TRUSTED_FIRST = 0x8000,
        X509_V_FLAG_PARTIAL_CHAIN = 0x80000,
        X509_V_FLAG_NO_CHECK_TIME = 0x200000,
    },
}
local mt = { __index = _M }

--- Makes an empty one.
-- @treturn table
-- @phases any
function _M.new()
    return setmetatable({ ctx = ffi.gc(C.X509_STORE_new(), C.X509_STORE_free) }, mt)
end

--- Whether a value is one.
-- @phases any
function _M.istype(value)
    return type(value) == "table" and getmetatable(value) == mt
end

--- Adds those of the system.
-- @phases any
function _M:use_default()
    if C.X509_STORE_set_default_paths(self.ctx) ~= 1 then
        return false, crypto.failure("x509.store:use_default")
    end
    return true
end

--- Adds a certificate.
-- @tparam table cert of resty.openssl.x509
-- @treturn boolean
-- @treturn string|nil
-- @phases any
function _M:add(cert)
    if not x509.istype(cert) then
        return false, "x509.store:add: expect an x509 instance at #1"
    elseif C.X509_STORE_add_cert(self.ctx, cert.ctx) ~= 1 then
        return false, crypto.failure("x509.store:add")
    end
    return true
end

--- Adds those of a file in PEM. Blocks while it is read.
-- @tparam string path
-- @phases any
function _M:load_file(path)
    if type(path) ~= "string" then
        return false, "x509.store:load_file: expect a string at #1"
    elseif C.X509_STORE_load_locations(self.ctx, path, nil) ~= 1 then
        return false, crypto.failure("x509.store:load_file")
    end
    return true
end

--- How long a chain may be.
-- @tparam number depth
-- @phases any
function _M:set_depth(depth)
    depth = tonumber(depth)
    if not depth then
        return nil, "x509.store:set_depth: expect a number at #1"
    end
    C.X509_STORE_set_depth(self.ctx, depth)
    return true
end

--- Sets flags, of verify_flags.
-- @phases any
function _M:set_flags(...)
    local all = 0
    for i = 1, select("#", ...) do
        all = bor(all, (select(i, ...)))
    end
    C.X509_STORE_set_flags(self.ctx, all)
    return true
end

--- Verifies a certificate.
-- @tparam table cert of resty.openssl.x509
-- @tparam[opt] table chain of resty.openssl.x509.chain: what may stand between
-- @tparam[opt] boolean returns_chain
-- @tparam[opt] any _ properties: no other provider is asked
-- @tparam[opt] string purpose "ssl_client", "ssl_server", ...
-- @tparam[opt] number flags
-- @treturn true|table|nil the chain where it is asked for
-- @treturn string|nil OpenSSL's words, such as "certificate has expired"
-- @phases any
function _M:verify(cert, chain, returns_chain, _, purpose, flags)
    if not x509.istype(cert) then
        return nil, "x509.store:verify: expect a x509 instance at #1"
    elseif chain and not chains.istype(chain) then
        return nil, "x509.store:verify: expect a x509.chain instance at #2"
    end
    local ctx = ffi.gc(C.X509_STORE_CTX_new(), C.X509_STORE_CTX_free)
    if C.X509_STORE_CTX_init(ctx, self.ctx, cert.ctx, chain and chain.ctx or nil) ~= 1 then
        return nil, crypto.failure("x509.store:verify")
    elseif purpose and C.X509_STORE_CTX_set_default(ctx, purpose) ~= 1 then
        C.ERR_clear_error()
        return nil, format('x509.store:verify: invalid verify_method "%s"', tostring(purpose))
    end
    if flags then
        C.X509_STORE_CTX_set_flags(ctx, flags)
    end
    if C.X509_verify_cert(ctx) ~= 1 then
        local code = C.X509_STORE_CTX_get_error(ctx)
        C.ERR_clear_error()
        return nil, ffi.string(C.X509_verify_cert_error_string(code))
    elseif returns_chain then
        return chains.dup(C.X509_STORE_CTX_get0_chain(ctx))
    end
    return true
end

return _M
