--- Where keys of resty.openssl.pkey come from: texts and generators.
-- @module resty.openssl.pkey.making

local crypto = require("sluice.ffi.libcrypto")
local ffi = require("ffi")
local jwk = require("resty.openssl.pkey.jwk")

local format = string.format
local ipairs = ipairs
local tonumber = tonumber
local tostring = tostring
local type = type

local C = crypto.C

local MIN_RSA_BITS, DEFAULT_RSA_BITS, MAX_RSA_BITS = 512, 2048, 16384

local _M = {}

-- A key of its own text: without a passphrase of the caller's the empty one counts, where OpenSSL
-- would ask the terminal.
local READERS = {
    PEM = {
        pr = function(text, passphrase)
            return C.PEM_read_bio_PrivateKey(crypto.reader(text), nil, nil, passphrase)
        end,
        pu = function(text, passphrase)
            return C.PEM_read_bio_PUBKEY(crypto.reader(text), nil, nil, passphrase)
        end,
    },
    DER = {
        pr = function(text)
            return C.d2i_PrivateKey_bio(crypto.reader(text), nil)
        end,
        pu = function(text)
            return C.d2i_PUBKEY_bio(crypto.reader(text), nil)
        end,
    },
}

local function passphrase_of(options)
    local passphrase = options.passphrase
    if passphrase == nil and options.passphrase_cb then
        passphrase = options.passphrase_cb()
    end
    if passphrase ~= nil and type(passphrase) ~= "string" then
        return nil, "passphrase must be a string"
    end
    return passphrase or ""
end

--- Reads a key.
-- @tparam string text
-- @tparam table options format, type, passphrase, passphrase_cb
-- @treturn cdata|nil the caller's
-- @treturn string|nil
-- @phases any
function _M.load(text, options)
    local form, kind = options.format or "*", options.type or "*"
    if form ~= "*" and form ~= "JWK" and not READERS[form] then
        return nil, format('expecting "DER", "PEM", "JWK" or "*" as format, got "%s"', form)
    elseif kind ~= "*" and kind ~= "pr" and kind ~= "pu" then
        return nil, format('expecting "pr", "pu" or "*" as type, got "%s"', tostring(kind))
    end
    local passphrase, err = passphrase_of(options)
    if not passphrase then
        return nil, err
    end
    for _, tried in ipairs({ "PEM", "DER" }) do
        for _, part in ipairs({ "pr", "pu" }) do
            if (form == "*" or form == tried) and (kind == "*" or kind == part) then
                local found = READERS[tried][part](text, passphrase)
                if found ~= nil then
                    C.ERR_clear_error()
                    return found
                end
            end
        end
    end
    err = crypto.failure("no key was found")
    if form == "JWK" or (form == "*" and text:find("^%s*{")) then
        return jwk.load(text)
    end
    return nil, err
end

local function keygen_context(config)
    local kind = config.type or "RSA"
    if kind == "RSA" then
        local bits = tonumber(config.bits or DEFAULT_RSA_BITS)
        if not bits or bits < MIN_RSA_BITS or bits > MAX_RSA_BITS or bits % 1 ~= 0 then
            return nil, "bits out of range"
        end
    end
    local ctx = type(kind) == "string" and C.EVP_PKEY_CTX_new_from_name(nil, kind, nil) or nil
    if ctx == nil then
        return nil, crypto.failure("unsupported type " .. tostring(kind))
    end
    ffi.gc(ctx, C.EVP_PKEY_CTX_free)
    if C.EVP_PKEY_keygen_init(ctx) ~= 1 then
        return nil, crypto.failure("unsupported type " .. tostring(kind))
    end
    local ok = 1
    if kind == "RSA" then
        ok = C.EVP_PKEY_CTX_set_rsa_keygen_bits(ctx, config.bits or DEFAULT_RSA_BITS)
    elseif kind == "EC" then
        local curve = config.curve or "prime192v1"
        if type(curve) ~= "string" or C.OBJ_txt2nid(curve) == 0 then
            return nil, crypto.failure("unknown curve " .. tostring(curve))
        end
        ok = C.EVP_PKEY_CTX_set_group_name(ctx, curve)
    end
    if ok ~= 1 then
        return nil, crypto.failure("invalid settings of the key")
    end
    return ctx
end

--- Makes a new key.
-- @tparam table config type, bits, curve
-- @treturn cdata|nil the caller's
-- @treturn string|nil
-- @phases any
function _M.generate(config)
    local ctx, err = keygen_context(config)
    if not ctx then
        return nil, err
    end
    local place = ffi.new("void *[1]")
    if C.EVP_PKEY_generate(ctx, place) ~= 1 then
        return nil, crypto.failure("EVP_PKEY_generate")
    end
    return place[0]
end

return _M
