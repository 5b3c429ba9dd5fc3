--- lua-resty-openssl's message authentication codes.
-- @module resty.openssl.mac
-- @usage
-- local bytes = mac.new("key", "HMAC", nil, "sha256"):final("text")

local stream = require("resty.openssl.stream")

local crypto = require("sluice.ffi.libcrypto")
local ffi = require("ffi")

local format = string.format
local getmetatable = getmetatable
local setmetatable = setmetatable
local tonumber = tonumber
local tostring = tostring
local type = type

local C = crypto.C

local _M = {}
local mt = { __index = _M }

local function params_of(cipher, digest)
    local pushes = {}
    for name, value in pairs({ cipher = cipher, digest = digest }) do
        pushes[#pushes + 1] = function(builder)
            return C.OSSL_PARAM_BLD_push_utf8_string(builder, name, value, 0)
        end
    end
    return crypto.params(pushes)
end

--- Makes one.
-- @tparam string key
-- @tparam string kind "HMAC", "CMAC", "GMAC", "POLY1305", "SIPHASH", "BLAKE2BMAC", ...
-- @tparam[opt] string cipher of CMAC and GMAC
-- @tparam[opt] string digest of HMAC
-- @treturn table|nil
-- @treturn string|nil "mac.new: ..."
-- @phases any
function _M.new(key, kind, cipher, digest)
    if type(key) ~= "string" then
        return nil, "mac.new: expect a string at #1"
    end
    local algo = type(kind) == "string" and C.EVP_MAC_fetch(nil, kind, nil) or nil
    if algo == nil then
        return nil, crypto.failure(format('mac.new: invalid mac type "%s"', tostring(kind)))
    end
    ffi.gc(algo, C.EVP_MAC_free)
    local ctx = ffi.gc(C.EVP_MAC_CTX_new(algo), C.EVP_MAC_CTX_free)
    local params = params_of(cipher, digest)
    if not params or C.EVP_MAC_init(ctx, key, #key, params) ~= 1 then
        return nil, crypto.failure("mac.new: invalid cipher or digest type")
    end
    local size = tonumber(C.EVP_MAC_CTX_get_mac_size(ctx))
    return setmetatable({ ctx = ctx, algo = algo, key = key, params = params, size = size }, mt)
end

--- Whether a value is one.
-- @phases any
function _M.istype(value)
    return type(value) == "table" and getmetatable(value) == mt
end

local function result(self)
    local buffer, length = ffi.new("unsigned char[?]", self.size), ffi.new("size_t[1]")
    if C.EVP_MAC_final(self.ctx, buffer, length, self.size) == 1 then
        return ffi.string(buffer, length[0])
    end
end

--- `update` adds texts; `final` returns the code of all that was added.
_M.update, _M.final = stream.methods("mac", C.EVP_MAC_update, result)

--- Begins anew, with the same key.
-- @phases any
function _M:reset()
    if C.EVP_MAC_init(self.ctx, self.key, #self.key, self.params) ~= 1 then
        return false, crypto.failure("mac:reset")
    end
    return true
end

return _M
