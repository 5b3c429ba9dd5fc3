--- lua-resty-string's AES.
-- @module resty.aes
-- @usage
-- local box = assert(aes:new(key, nil, aes.cipher(256, "cbc"), { iv = iv }))

local cipher = require("resty.openssl.cipher")
local crypto = require("sluice.ffi.libcrypto")

local error = error
local format = string.format
local setmetatable = setmetatable
local tostring = tostring
local type = type

local MODES =
    { ecb = true, cbc = true, cfb1 = true, cfb8 = true, ctr = true, gcm = true, ofb = true }
MODES.cfb128 = true
local GCM_TAG_BYTES = 16

local _M = { _VERSION = "0.16", hash = {} }
local mt = { __index = _M }

for _, name in ipairs({ "md5", "sha1", "sha224", "sha256", "sha384", "sha512" }) do
    _M.hash[name] = { name = name }
end

--- A cipher.
-- @tparam[opt=128] number size bits of the key
-- @tparam[opt="cbc"] string mode
-- @treturn table|nil
-- @phases any
function _M.cipher(size, mode)
    size, mode = size or 128, (mode or "cbc"):lower()
    if not MODES[mode] or (size ~= 128 and size ~= 192 and size ~= 256) then
        return nil
    end
    local openssl = mode == "cfb128" and "cfb" or mode
    return { size = size, cipher = mode, name = format("aes-%d-%s", size, openssl) }
end

-- Key and IV that the caller has, or that follow from a password.
local function secrets(made, key, salt, hash, rounds)
    if type(hash) == "table" and not hash.name then
        local derived = hash.method and hash.method(key) or key
        if type(hash.iv) ~= "string" and made.iv_size > 0 then
            return nil, "bad iv"
        elseif type(derived) ~= "string" or #derived ~= made.key_size then
            return nil, "bad key length"
        elseif made.iv_size > 0 and #hash.iv ~= made.iv_size then
            return nil, "bad iv length"
        end
        return derived, hash.iv
    elseif salt and #salt ~= 8 then
        return nil, "salt must be 8 characters or nil"
    end
    local name = hash and hash.name or "md5"
    local derived, iv, err = made:derive(key, salt, rounds or 1, name)
    return derived, iv or err
end

--- Makes a box with a key.
-- @tparam string key a password, or with `hash.iv` the key
-- @tparam[opt] string salt 8 bytes
-- @tparam[opt] table algorithm of `cipher`; default: AES-128-CBC
-- @tparam[opt] table hash of `hash`, MD5 as default; or {iv =, method =}
-- @tparam[opt=1] number rounds
-- @treturn table|nil
-- @treturn string|nil "bad key length", "bad iv length", "bad iv", "salt must be 8 characters or
--   nil"
-- @phases any
function _M.new(_, key, salt, algorithm, hash, rounds)
    if type(key) ~= "string" then
        error("bad argument #1 to 'new' (string expected, got " .. type(key) .. ")", 2)
    end
    algorithm = algorithm or _M.cipher()
    local made, err = cipher.new(algorithm.name)
    if not made then
        return nil, err
    end
    local found, iv = secrets(made, key, salt, hash, rounds)
    if not found then
        return nil, iv
    end
    local is_gcm = algorithm.cipher == "gcm"
    return setmetatable({ made = made, key = found, iv = iv, is_gcm = is_gcm }, mt)
end

--- Encrypts.
-- @tparam string text
-- @treturn string|table|nil; in GCM {text, tag}
-- @treturn string|nil
-- @phases any
function _M:encrypt(text)
    local sealed, err = self.made:encrypt(self.key, self.iv, text)
    if sealed and self.is_gcm then
        return { sealed, self.made:get_aead_tag(GCM_TAG_BYTES) }
    end
    return sealed, err
end

--- Decrypts.
-- @tparam string text
-- @tparam[opt] string tag in GCM
-- @treturn string|nil
-- @treturn string|nil
-- @phases any
function _M:decrypt(text, tag)
    if self.is_gcm and type(tag) ~= "string" then
        return nil, "bad tag: " .. tostring(tag)
    end
    local found, err = self.made:decrypt(self.key, self.iv, text, false, nil, tag)
    crypto.C.ERR_clear_error()
    return found, err
end

return _M
