--- lua-resty-openssl's ciphers.
-- @module resty.openssl.cipher
-- @usage
-- local c = cipher.new("aes-256-gcm")
-- local sealed = c:encrypt(key, iv, "text", false, "seen by all")
-- local tag = c:get_aead_tag()

local crypto = require("sluice.ffi.libcrypto")
local ffi = require("ffi")

local concat = table.concat
local format = string.format
local getmetatable = getmetatable
local select = select
local setmetatable = setmetatable
local sub = string.sub
local tonumber = tonumber
local tostring = tostring
local type = type

local C = crypto.C

-- EVP_CTRL_AEAD_GET_TAG, EVP_CTRL_AEAD_SET_TAG; and the longest tag.
local GET_TAG, SET_TAG, MAX_TAG_BYTES = 0x10, 0x11, 64
local MAX_INPUT_BYTES = 2 ^ 30
local SALT_BYTES = 8

local _M = {}
local mt = { __index = _M }

local length = ffi.new("int[1]")

--- Makes a cipher.
-- @tparam string name such as "aes-256-cbc"
-- @treturn table|nil
-- @treturn string|nil 'cipher.new: invalid cipher type "..."'
-- @phases any
function _M.new(name)
    if not name then
        return nil, "cipher.new: expect type to be defined"
    end
    local algo = type(name) == "string" and C.EVP_CIPHER_fetch(nil, name, nil) or nil
    if algo == nil then
        local line = 'cipher.new: invalid cipher type "%s"'
        return nil, crypto.failure(format(line, tostring(name)))
    end
    ffi.gc(algo, C.EVP_CIPHER_free)
    return setmetatable({
        ctx = ffi.gc(C.EVP_CIPHER_CTX_new(), C.EVP_CIPHER_CTX_free),
        algo = algo,
        initialized = false,
        block_size = C.EVP_CIPHER_get_block_size(algo),
        key_size = C.EVP_CIPHER_get_key_length(algo),
        iv_size = C.EVP_CIPHER_get_iv_length(algo),
    }, mt)
end

--- Whether a value is one.
-- @phases any
function _M.istype(value)
    return type(value) == "table" and getmetatable(value) == mt
end

--- Begins.
-- @tparam string key
-- @tparam string|nil iv
-- @tparam[opt] table options is_encrypt, no_padding
-- @treturn boolean
-- @treturn string|nil "cipher:init: ..."
-- @phases any
function _M:init(key, iv, options)
    options = options or {}
    if type(key) ~= "string" or #key ~= self.key_size then
        return false, format("cipher:init: incorrect key size, expect %d", self.key_size)
    elseif self.iv_size > 0 and (type(iv) ~= "string" or #iv ~= self.iv_size) then
        return false, format("cipher:init: incorrect iv size, expect %d", self.iv_size)
    end
    local way = options.is_encrypt and 1 or 0
    if C.EVP_CipherInit_ex(self.ctx, self.algo, nil, key, iv, way) ~= 1 then
        return false, crypto.failure("cipher:init")
    end
    C.EVP_CIPHER_CTX_set_padding(self.ctx, options.no_padding and 0 or 1)
    self.initialized = true
    return true
end

local function check(self, name)
    if not self.initialized then
        local line = "cipher:%s: cipher not initalized, call cipher:init first"
        return nil, format(line, name)
    end
    return true
end

--- Adds what is authenticated and not encrypted.
-- @phases any
function _M:update_aead_aad(text)
    local ready, err = check(self, "update_aead_aad")
    if not ready then
        return nil, err
    elseif C.EVP_CipherUpdate(self.ctx, nil, length, text, #text) ~= 1 then
        return false, crypto.failure("cipher:update_aead_aad")
    end
    return true
end

--- The tag of what was encrypted.
-- @tparam[opt] number size default: half of the key's
-- @phases any
function _M:get_aead_tag(size)
    local ready, err = check(self, "get_aead_tag")
    if not ready then
        return nil, err
    end
    size = size or self.key_size / 2
    if type(size) ~= "number" or size < 1 or size > self.key_size or size > MAX_TAG_BYTES then
        return nil, format("tag size %s is too large", tostring(size))
    end
    local buffer = ffi.new("unsigned char[?]", MAX_TAG_BYTES)
    if C.EVP_CIPHER_CTX_ctrl(self.ctx, GET_TAG, size, buffer) ~= 1 then
        return nil, crypto.failure("cipher:get_aead_tag")
    end
    return ffi.string(buffer, size)
end

--- The tag that what is decrypted has to have.
-- @phases any
function _M:set_aead_tag(tag)
    local ready, err = check(self, "set_aead_tag")
    if not ready then
        return nil, err
    elseif type(tag) ~= "string" then
        return false, "cipher:set_aead_tag expect a string at #1"
    end
    local bytes = ffi.new("char[?]", #tag + 1, tag)
    if C.EVP_CIPHER_CTX_ctrl(self.ctx, SET_TAG, #tag, bytes) ~= 1 then
        return false, crypto.failure("cipher:set_aead_tag")
    end
    return true
end

--- Encrypts or decrypts texts.
-- @treturn string|nil
-- @treturn string|nil
-- @phases any
function _M:update(...)
    local ready, err = check(self, "update")
    if not ready then
        return nil, err
    end
    local out = {}
    for i = 1, select("#", ...) do
        local text = select(i, ...)
        if #text > MAX_INPUT_BYTES then
            return nil, "cipher:update: text is too long"
        end
        -- A wrapped key is filled up to a block, and has one more.
        local buffer = ffi.new("unsigned char[?]", #text + 2 * self.block_size)
        if C.EVP_CipherUpdate(self.ctx, buffer, length, text, #text) ~= 1 then
            return nil, crypto.failure("cipher:update")
        end
        out[i] = ffi.string(buffer, length[0])
    end
    return concat(out)
end

--- Ends: what is left, after a last text.
-- @tparam[opt] string text
-- @treturn string|nil
-- @treturn string|nil also where padding or tag are wrong
-- @phases any
function _M:final(text)
    local ready, err = check(self, text and "update" or "final")
    if not ready then
        return nil, err
    end
    local before = ""
    if text then
        before, err = self:update(text)
        if not before then
            return nil, err
        end
    end
    local buffer = ffi.new("unsigned char[?]", self.block_size)
    if C.EVP_CipherFinal_ex(self.ctx, buffer, length) ~= 1 then
        return nil, crypto.failure("cipher:final")
    end
    return before .. ffi.string(buffer, length[0])
end

--- Encrypts a text.
-- @treturn string|nil
-- @treturn string|nil
-- @phases any
function _M:encrypt(key, iv, text, no_padding, aad)
    local ok, err = self:init(key, iv, { is_encrypt = true, no_padding = no_padding })
    if ok and aad then
        ok, err = self:update_aead_aad(aad)
    end
    if not ok then
        return nil, err
    end
    return self:final(text)
end

--- Decrypts a text.
-- @treturn string|nil
-- @treturn string|nil also where padding or tag are wrong
-- @phases any
function _M:decrypt(key, iv, text, no_padding, aad, tag)
    local ok, err = self:init(key, iv, { no_padding = no_padding })
    if ok and aad then
        ok, err = self:update_aead_aad(aad)
    end
    if ok and tag then
        ok, err = self:set_aead_tag(tag)
    end
    if not ok then
        return nil, err
    end
    return self:final(text)
end

--- Key and IV from a password, as `openssl enc` makes them.
-- @tparam string text the password
-- @tparam[opt] string salt 8 bytes: filled up with zeros, or cut
-- @tparam[opt=1] number count
-- @tparam[opt="sha1"] string digest
-- @treturn string|nil key
-- @treturn string|nil iv
-- @treturn string|nil "cipher:derive: ..."
-- @phases any
function _M:derive(text, salt, count, digest)
    local algo = crypto.digest(digest or "sha1")
    count = tonumber(count or 1)
    if type(text) ~= "string" then
        return nil, nil, "cipher:derive: expect a string at #1"
    elseif salt ~= nil and type(salt) ~= "string" then
        return nil, nil, "cipher:derive: expect a string at #2"
    elseif not (count and count >= 1 and count < 2 ^ 31) then
        return nil, nil, "cipher:derive: expect a number at #3"
    elseif not algo then
        return nil, nil, format('cipher:derive: invalid digest type "%s"', tostring(digest))
    end
    salt = salt and sub(salt .. ("\0"):rep(SALT_BYTES), 1, SALT_BYTES)
    local key = ffi.new("unsigned char[?]", self.key_size)
    local iv = ffi.new("unsigned char[?]", self.iv_size + 1)
    local size = C.EVP_BytesToKey(self.algo, algo, salt, text, #text, count, key, iv)
    if size ~= self.key_size then
        return nil, nil, crypto.failure("cipher:derive")
    end
    return ffi.string(key, size), ffi.string(iv, self.iv_size)
end

return _M
