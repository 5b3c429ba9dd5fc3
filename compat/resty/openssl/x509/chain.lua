--- lua-resty-openssl's lists of certificates.
-- @module resty.openssl.x509.chain

local crypto = require("sluice.ffi.libcrypto")
local ffi = require("ffi")
local x509 = require("resty.openssl.x509")

local getmetatable = getmetatable
local ipairs = ipairs
local rawget = rawget
local setmetatable = setmetatable
local type = type

local C = crypto.C

local _M = {}

local mt = {}

function mt.__index(self, key)
    if type(key) == "number" then
        return rawget(self, "certs")[key]
    end
    return _M[key]
end

--- How many it has; `#chain` is not Lua 5.1's for tables.
-- @phases any
function _M:count()
    return #self.certs
end

--- Makes an empty one.
-- @treturn table `ctx` is OpenSSL's stack
-- @phases any
function _M.new()
    local ctx = ffi.gc(C.OPENSSL_sk_new_null(), C.OPENSSL_sk_free)
    return setmetatable({ ctx = ctx, certs = {} }, mt)
end

--- Whether a value is one.
-- @phases any
function _M.istype(value)
    return type(value) == "table" and getmetatable(value) == mt
end

--- Adds a certificate at the end.
-- @tparam table cert of resty.openssl.x509
-- @treturn true|nil
-- @treturn string|nil
-- @phases any
function _M:add(cert)
    if not x509.istype(cert) then
        return nil, "x509.chain:add: expect a x509 instance at #1"
    end
    local copy = x509.dup(cert.ctx)
    C.OPENSSL_sk_push(self.ctx, copy.ctx)
    -- The stack has no certificates of its own: these live as long as the list does.
    self.certs[#self.certs + 1] = copy
    return true
end

--- A copy of one of OpenSSL's.
-- @tparam cdata stack
-- @treturn table|nil
-- @treturn string|nil
-- @phases any
function _M.dup(stack)
    if type(stack) ~= "cdata" or stack == nil then
        return nil, "x509.chain.dup: expect a stack of x509 at #1"
    end
    local made = _M.new()
    for index = 0, C.OPENSSL_sk_num(stack) - 1 do
        local copy = x509.dup(C.OPENSSL_sk_value(stack, index))
        C.OPENSSL_sk_push(made.ctx, copy.ctx)
        made.certs[index + 1] = copy
    end
    return made
end

--- Walks over all: index, certificate.
-- @phases any
function _M:each()
    return ipairs(self.certs)
end

return _M
