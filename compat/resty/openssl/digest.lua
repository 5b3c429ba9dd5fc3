--- lua-resty-openssl's digests.
-- @module resty.openssl.digest
-- @usage
-- local bytes = digest.new("sha256"):final("text")

local stream = require("resty.openssl.stream")

local crypto = require("sluice.ffi.libcrypto")
local ffi = require("ffi")

local format = string.format
local getmetatable = getmetatable
local setmetatable = setmetatable
local tostring = tostring
local type = type

local C = crypto.C

local MAX_BYTES = 64

local _M = {}
local mt = { __index = _M }

local buffer = ffi.new("unsigned char[?]", MAX_BYTES)
local length = ffi.new("unsigned[1]")

--- Makes a digest.
-- @tparam[opt="sha1"] string name
-- @treturn table|nil
-- @treturn string|nil 'digest.new: invalid digest type "..."'
-- @phases any
function _M.new(name)
    name = name or "sha1"
    local algo = crypto.digest(name)
    if not algo then
        return nil, format('digest.new: invalid digest type "%s"', tostring(name))
    end
    local ctx = ffi.gc(C.EVP_MD_CTX_new(), C.EVP_MD_CTX_free)
    if C.EVP_DigestInit_ex(ctx, algo, nil) ~= 1 then
        return nil, crypto.failure("digest.new")
    end
    return setmetatable({ ctx = ctx, algo = algo }, mt)
end

--- Whether a value is one.
-- @phases any
function _M.istype(value)
    return type(value) == "table" and getmetatable(value) == mt
end

local function result(self)
    if C.EVP_DigestFinal_ex(self.ctx, buffer, length) == 1 then
        return ffi.string(buffer, length[0])
    end
end

--- `update` adds texts; `final` returns the digest of all that was added.
_M.update, _M.final = stream.methods("digest", C.EVP_DigestUpdate, result)

--- Begins anew.
-- @phases any
function _M:reset()
    if C.EVP_DigestInit_ex(self.ctx, self.algo, nil) ~= 1 then
        return false, crypto.failure("digest:reset")
    end
    return true
end

return _M
