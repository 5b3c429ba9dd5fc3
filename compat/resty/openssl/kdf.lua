--- lua-resty-openssl's derivation of keys: its older interface.
-- @module resty.openssl.kdf
-- @usage
-- local key = kdf.derive({ type = kdf.PBKDF2, outlen = 32, pass = "secret", salt = "salt",
--     md = "sha256", pbkdf2_iter = 600000 })

local crypto = require("sluice.ffi.libcrypto")
local ffi = require("ffi")

local format = string.format
local ipairs = ipairs
local tonumber = tonumber
local tostring = tostring
local type = type

local C = crypto.C

local MAX_BYTES = 2 ^ 20

local _M = {
    HKDEF_MODE_EXTRACT_AND_EXPAND = 0,
    HKDEF_MODE_EXTRACT_ONLY = 1,
    HKDEF_MODE_EXPAND_ONLY = 2,
    PBKDF2 = C.OBJ_txt2nid("PBKDF2"),
    SCRYPT = C.OBJ_txt2nid("id-scrypt"),
    HKDF = C.OBJ_txt2nid("HKDF"),
    TLS1_PRF = C.OBJ_txt2nid("TLS1-PRF"),
}

-- Of each function: OpenSSL's name, and for each option that of a parameter and what it is.
local FUNCTIONS = {
    [_M.PBKDF2] = {
        name = "PBKDF2",
        { "pass", "pass", "bytes", default = "" },
        { "salt", "salt", "bytes", default = "" },
        { "md", "digest", "text", default = "sha1" },
        { "pbkdf2_iter", "iter", "number", default = 1 },
    },
    [_M.SCRYPT] = {
        name = "SCRYPT",
        { "pass", "pass", "bytes", default = "" },
        { "salt", "salt", "bytes", default = "" },
        { "scrypt_N", "n", "number" },
        { "scrypt_r", "r", "number" },
        { "scrypt_p", "p", "number" },
        { "scrypt_maxmem", "maxmem_bytes", "number", default = 0 },
    },
    [_M.HKDF] = {
        name = "HKDF",
        { "hkdf_key", "key", "bytes" },
        { "salt", "salt", "bytes", default = "" },
        { "hkdf_info", "info", "bytes", default = "" },
        { "hkdf_mode", "mode", "mode", default = 0 },
        { "md", "digest", "text", default = "sha1" },
    },
    [_M.TLS1_PRF] = {
        name = "TLS1-PRF",
        { "tls1_prf_secret", "secret", "bytes" },
        { "tls1_prf_seed", "seed", "bytes" },
        { "md", "digest", "text", default = "sha1" },
    },
}

local PUSH = {
    bytes = function(builder, name, value)
        return C.OSSL_PARAM_BLD_push_octet_string(builder, name, value, #value)
    end,
    text = function(builder, name, value)
        return C.OSSL_PARAM_BLD_push_utf8_string(builder, name, value, 0)
    end,
    number = function(builder, name, value)
        return C.OSSL_PARAM_BLD_push_uint64(builder, name, value)
    end,
    mode = function(builder, name, value)
        return C.OSSL_PARAM_BLD_push_int(builder, name, value)
    end,
}

-- An option's value, checked.
local function read(options, field)
    local name, kind = field[1], field[3]
    local value = options[name]
    if value == nil then
        value = field.default
    end
    local is_text = kind == "bytes" or kind == "text"
    if value == nil then
        return nil, format('"%s" must be set', name)
    elseif is_text then
        if type(value) ~= "string" then
            return nil, format('except a string as "%s"', name)
        end
        return value
    end
    local number = tonumber(value)
    if not number or number < 0 or number % 1 ~= 0 or number > 2 ^ 53 then
        return nil, format('except a number as "%s"', name)
    end
    return number
end

local function pushes_of(fields, options)
    local pushes = {}
    for i, field in ipairs(fields) do
        local value, err = read(options, field)
        if err then
            return nil, err
        end
        pushes[i] = function(builder)
            -- SCRYPT takes no limit of 0.
            local is_unset = field[1] == "scrypt_maxmem" and value == 0
            return is_unset and 1 or PUSH[field[3]](builder, field[2], value)
        end
    end
    return pushes
end

--- Derives a key. PBKDF2 and scrypt take as long as their settings say, and nothing else runs in
-- this worker meanwhile.
-- @tparam table options type, outlen, pass, salt, md, pbkdf2_iter; hkdf_key, hkdf_mode, hkdf_info;
--   tls1_prf_secret, tls1_prf_seed; scrypt_N, scrypt_r, scrypt_p, scrypt_maxmem
-- @treturn string|nil
-- @treturn string|nil "kdf.derive: ..." names the option and the reason
-- @phases any
function _M.derive(options)
    local kind = options.type
    if not kind then
        return nil, 'kdf.derive: "type" must be set'
    elseif type(kind) ~= "number" then
        return nil, 'kdf.derive: expect a number as "type"'
    end
    local fields = FUNCTIONS[kind]
    if not fields then
        return nil, format("kdf.derive: unknown type %d", kind)
    end
    local size = tonumber(options.outlen)
    if not size then
        return nil, 'kdf.derive: "outlen" must be set'
    elseif size < 1 or size % 1 ~= 0 or size > MAX_BYTES then
        return nil, 'kdf.derive: "outlen" is out of range'
    elseif options.md and not crypto.digest(options.md) then
        return nil, format('kdf.derive: invalid digest type "%s"', tostring(options.md))
    end
    local pushes, err = pushes_of(fields, options)
    local params = pushes and crypto.params(pushes)
    if not params then
        return nil, "kdf.derive: " .. (err or crypto.failure("invalid option"))
    end
    local algo = ffi.gc(C.EVP_KDF_fetch(nil, fields.name, nil), C.EVP_KDF_free)
    local ctx = ffi.gc(C.EVP_KDF_CTX_new(algo), C.EVP_KDF_CTX_free)
    if kind == _M.HKDF and options.hkdf_mode == _M.HKDEF_MODE_EXTRACT_ONLY then
        -- It has the size of the digest.
        size = C.EVP_MD_get_size(crypto.digest(options.md or "sha1"))
    end
    local buffer = ffi.new("unsigned char[?]", size)
    if C.EVP_KDF_derive(ctx, buffer, size, params) ~= 1 then
        return nil, crypto.failure("kdf.derive")
    end
    return ffi.string(buffer, size)
end

return _M
