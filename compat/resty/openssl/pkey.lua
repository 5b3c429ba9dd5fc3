--- lua-resty-openssl's keys: RSA, EC, Ed25519, Ed448, X25519, X448.
-- @module resty.openssl.pkey
-- @usage
-- local key = assert(pkey.new(pem))
-- local ok, err = key:verify(signature, "text", "sha256")

local crypto = require("sluice.ffi.libcrypto")
local digests = require("resty.openssl.digest")
local ecdsa = require("resty.openssl.pkey.ecdsa")
local ffi = require("ffi")
local jwk = require("resty.openssl.pkey.jwk")
local making = require("resty.openssl.pkey.making")
local parameters = require("resty.openssl.pkey.parameters")

local format = string.format
local getmetatable = getmetatable
local ipairs = ipairs
local setmetatable = setmetatable
local tonumber = tonumber
local tostring = tostring
local type = type

local C = crypto.C

local KINDS = {
    [6] = "RSA",
    [912] = "RSA-PSS",
    [408] = "EC",
    [1034] = "X25519",
    [1035] = "X448",
    [1087] = "ED25519",
    [1088] = "ED448",
}

local _M = {
    PADDINGS = {
        RSA_PKCS1_PADDING = 1,
        RSA_NO_PADDING = 3,
        RSA_PKCS1_OAEP_PADDING = 4,
        RSA_X931_PADDING = 5,
        RSA_PKCS1_PSS_PADDING = 6,
    },
}
local mt = { __index = _M }

local function wrap(ctx)
    ffi.gc(ctx, C.EVP_PKEY_free)
    local nid = C.EVP_PKEY_get_base_id(ctx)
    return setmetatable({
        ctx = ctx,
        key_type = nid,
        kind = KINDS[nid],
        buf_size = C.EVP_PKEY_get_size(ctx),
    }, mt)
end

--- Makes a key. A new one of RSA takes up to seconds of this worker's time.
-- @tparam string|table|cdata source a text in PEM, DER or JWK; settings of a new key (type, "RSA"
--   as default, bits, curve); or an EVP_PKEY, which is taken over
-- @tparam[opt] table options of a text: format ("PEM", "DER", "JWK", "*"), type ("pr", "pu", "*"),
--   passphrase, passphrase_cb
-- @treturn table|nil
-- @treturn string|nil "pkey.new..."
-- @phases any
function _M.new(source, options)
    source = source or {}
    local ctx, err
    if type(source) == "table" then
        if source.params then
            return nil, "pkey.new:new_key: params are not supported, use a JWK"
        end
        ctx, err = making.generate(source)
        err = err and "pkey.new:new_key: " .. err
    elseif type(source) == "string" then
        ctx, err = making.load(source, options or {})
        err = err and "pkey.new:load_key: " .. err
    elseif type(source) == "cdata" then
        ctx = ffi.cast("void *", source)
        err = ctx == nil and "pkey.new: expect a EVP_PKEY* cdata at #1" or nil
    else
        err = "pkey.new: unexpected type " .. type(source) .. " at #1"
    end
    if err then
        return nil, err
    end
    return wrap(ctx)
end

--- Whether a value is one.
-- @phases any
function _M.istype(value)
    return type(value) == "table" and getmetatable(value) == mt
end

-- Properties -------------------------------------------------------------------------------------

local function object(nid)
    return crypto.object(C.OBJ_nid2obj(nid))
end

--- What kind of key it is.
-- @tparam[opt] boolean is_number
-- @treturn table|number nid, id, sn, ln; or the first alone
-- @phases any
function _M:get_key_type(is_number)
    return is_number and self.key_type or object(self.key_type)
end

--- Bytes of the longest signature or secret.
-- @phases any
function _M:get_size()
    return self.buf_size
end

--- The digest that signatures have by default.
-- @treturn table|nil nid, id, sn, ln, mandatory
-- @treturn string|nil
-- @phases any
function _M:get_default_digest_type()
    local nid = ffi.new("int[1]")
    local code = C.EVP_PKEY_get_default_digest_nid(self.ctx, nid)
    if code <= 0 then
        return nil, crypto.failure("get_default_digest")
    end
    local found = object(nid[0])
    found.mandatory = code == 2
    return found
end

--- What the key is made of (resty.openssl.pkey.parameters).
-- @phases any
function _M:get_parameters()
    return parameters.of(self)
end

--- Whether it can sign and decrypt.
-- @treturn boolean
-- @phases any
function _M:is_private()
    local found = parameters.of(self)
    return found ~= nil and (found.d or found.private) ~= nil
end

--- Writes the key.
-- @tparam[opt="public"] string part "public", "private" ("PrivateKey")
-- @tparam[opt="PEM"] string form "PEM", "DER", "JWK"
-- @treturn string|nil
-- @treturn string|nil
-- @phases any
function _M:tostring(part, form)
    local is_private = part == "private" or part == "PrivateKey"
    if part ~= nil and not is_private and part ~= "public" and part ~= "PublicKey" then
        return nil, format('can only export private or public key, not "%s"', tostring(part))
    end
    form = form or "PEM"
    if form == "JWK" then
        return jwk.dump(self, is_private)
    elseif form ~= "PEM" and form ~= "DER" then
        return nil, format('unsupported format "%s"', tostring(form))
    end
    local text = crypto.written(function(bio)
        if form == "DER" then
            local write = is_private and C.i2d_PrivateKey_bio or C.i2d_PUBKEY_bio
            return write(bio, self.ctx)
        elseif is_private then
            return C.PEM_write_bio_PrivateKey(bio, self.ctx, nil, nil, 0, nil, nil)
        end
        return C.PEM_write_bio_PUBKEY(bio, self.ctx)
    end)
    if not text then
        return nil, crypto.failure("pkey:tostring")
    end
    return text
end

--- The same in PEM.
-- @phases any
function _M:to_PEM(part)
    return self:tostring(part, "PEM")
end

function mt:__tostring()
    return self:tostring("public")
end

-- Signatures -------------------------------------------------------------------------------------

-- Tells an operation its padding, and what else was asked for.
local function configure(self, ctx, padding, options)
    if self.kind == "RSA" and padding then
        if not tonumber(padding) or C.EVP_PKEY_CTX_set_rsa_padding(ctx, tonumber(padding)) ~= 1 then
            return nil, crypto.failure("invalid padding: " .. tostring(padding))
        end
    end
    options = options or {}
    local salt = options.pss_saltlen
    if salt and C.EVP_PKEY_CTX_set_rsa_pss_saltlen(ctx, salt) ~= 1 then
        return nil, crypto.failure("invalid pss_saltlen")
    end
    local mgf1, oaep = options.mgf1_md, options.oaep_md
    if mgf1 and C.EVP_PKEY_CTX_set_rsa_mgf1_md_name(ctx, mgf1, nil) ~= 1 then
        return nil, crypto.failure("invalid mgf1_md")
    elseif oaep and C.EVP_PKEY_CTX_set_rsa_oaep_md_name(ctx, oaep, nil) ~= 1 then
        return nil, crypto.failure("invalid oaep_md")
    end
    for _, setting in ipairs(options) do
        local name, value = tostring(setting):match("^([_%w]+):([_%w-]+)$")
        if not name then
            return nil, "unknown ctrl str: " .. tostring(setting)
        elseif C.EVP_PKEY_CTX_ctrl_str(ctx, name, value) ~= 1 then
            return nil, crypto.failure("ctrl str " .. setting)
        end
    end
    return true
end

-- What signs or verifies a text.
local function digest_context(self, init, algorithm, padding, options)
    local algo
    if algorithm then
        algo = crypto.digest(algorithm)
        if not algo then
            return nil, format('invalid digest type "%s"', tostring(algorithm))
        end
    end
    local ctx = ffi.gc(C.EVP_MD_CTX_new(), C.EVP_MD_CTX_free)
    local place = ffi.new("void *[1]")
    if init(ctx, place, algo, nil, self.ctx) ~= 1 then
        return nil, crypto.failure("init failed")
    end
    local ok, err = configure(self, place[0], padding, options)
    if not ok then
        return nil, err
    end
    return ctx
end

local function sign_text(self, text, ...)
    local ctx, err = digest_context(self, C.EVP_DigestSignInit, ...)
    if not ctx then
        return nil, "pkey:sign: " .. err
    end
    local bytes, length = ffi.new("unsigned char[?]", self.buf_size), ffi.new("size_t[1]")
    length[0] = self.buf_size
    if C.EVP_DigestSign(ctx, bytes, length, text, #text) ~= 1 then
        return nil, crypto.failure("pkey:sign")
    end
    return ffi.string(bytes, length[0])
end

local function sign_digest(self, digest)
    local bytes, length = ffi.new("unsigned char[?]", self.buf_size), ffi.new("unsigned[1]")
    if C.EVP_SignFinal(digest.ctx, bytes, length, self.ctx) ~= 1 then
        return nil, crypto.failure("pkey:sign")
    end
    return ffi.string(bytes, length[0])
end

--- Signs.
-- @tparam string|table digest a text, or a digest that has it
-- @tparam[opt] string algorithm of a text; none for Ed25519 and Ed448
-- @tparam[opt] number padding of PADDINGS, for RSA
-- @tparam[opt] table options pss_saltlen, mgf1_md, ecdsa_use_raw
-- @treturn string|nil
-- @treturn string|nil "pkey:sign: ..."
-- @phases any
function _M:sign(digest, algorithm, padding, options)
    if not self:is_private() then
        return nil, "pkey:sign: missing private key"
    end
    local signature, err
    if digests.istype(digest) then
        signature, err = sign_digest(self, digest)
    elseif type(digest) == "string" then
        signature, err = sign_text(self, digest, algorithm, padding, options)
    else
        err = "pkey:sign: expect a digest instance or a string at #1"
    end
    if signature and self.kind == "EC" and options and options.ecdsa_use_raw then
        return ecdsa.to_raw(signature, self)
    end
    return signature, err
end

--- Verifies a signature.
-- @tparam string signature
-- @tparam string|table digest a text, or a digest that has it
-- @tparam[opt] string algorithm of a text
-- @tparam[opt] number padding of PADDINGS, for RSA
-- @tparam[opt] table options as of `sign`
-- @treturn boolean|nil nil: it could not be looked at
-- @treturn string|nil
-- @phases any
function _M:verify(signature, digest, algorithm, padding, options)
    if type(signature) ~= "string" then
        return nil, "pkey:verify: expect a string at #1"
    end
    local err
    if self.kind == "EC" and options and options.ecdsa_use_raw then
        signature, err = ecdsa.to_der(signature, self)
        if not signature then
            return nil, "pkey:verify: " .. err
        end
    end
    local code
    if digests.istype(digest) then
        code = C.EVP_VerifyFinal(digest.ctx, signature, #signature, self.ctx)
    elseif type(digest) == "string" then
        local ctx
        ctx, err = digest_context(self, C.EVP_DigestVerifyInit, algorithm, padding, options)
        if not ctx then
            return nil, "pkey:verify: " .. err
        end
        code = C.EVP_DigestVerify(ctx, signature, #signature, digest, #digest)
    else
        return nil, "pkey:verify: expect a digest instance or a string at #2"
    end
    if code == 1 then
        return true
    end
    return false, crypto.failure("pkey:verify")
end

-- Encryption and agreement -----------------------------------------------------------------------

local function operation(self, name, init, padding, options)
    local ctx = ffi.gc(C.EVP_PKEY_CTX_new(self.ctx, nil), C.EVP_PKEY_CTX_free)
    if init(ctx) ~= 1 then
        return nil, crypto.failure("pkey:" .. name)
    end
    local default = self.kind == "RSA" and _M.PADDINGS.RSA_PKCS1_PADDING or nil
    local ok, err = configure(self, ctx, padding or default, options)
    if not ok then
        return nil, "pkey:" .. name .. ": " .. err
    end
    return ctx
end

local function operator(name, init_name, run_name)
    return function(self, text, padding, options)
        if type(text) ~= "string" then
            return nil, "pkey:" .. name .. ": expect a string at #1"
        end
        local ctx, err = operation(self, name, C[init_name], padding, options)
        if not ctx then
            return nil, err
        end
        local length = ffi.new("size_t[1]")
        local run = C[run_name]
        -- How much it is at most.
        if run(ctx, nil, length, text, #text) ~= 1 then
            return nil, crypto.failure("pkey:" .. name)
        end
        local bytes = ffi.new("unsigned char[?]", length[0])
        if run(ctx, bytes, length, text, #text) ~= 1 then
            return nil, crypto.failure("pkey:" .. name)
        end
        return ffi.string(bytes, length[0])
    end
end

--- Encrypts a short text with a public key of RSA.
-- @function encrypt
-- @phases any
_M.encrypt = operator("encrypt", "EVP_PKEY_encrypt_init", "EVP_PKEY_encrypt")

--- Decrypts with a private key of RSA.
-- @function decrypt
-- @phases any
_M.decrypt = operator("decrypt", "EVP_PKEY_decrypt_init", "EVP_PKEY_decrypt")

--- Signs bytes as they are.
-- @function sign_raw
-- @phases any
_M.sign_raw = operator("sign_raw", "EVP_PKEY_sign_init", "EVP_PKEY_sign")

--- What was signed with `sign_raw`, of RSA.
-- @function verify_recover
-- @phases any
_M.verify_recover =
    operator("verify_recover", "EVP_PKEY_verify_recover_init", "EVP_PKEY_verify_recover")

--- Verifies a signature of bytes that are a digest already.
-- @treturn boolean|nil
-- @treturn string|nil
-- @phases any
function _M:verify_raw(signature, hashed, algorithm, padding, options)
    local all = {}
    for name, value in pairs(options or {}) do
        all[name] = value
    end
    if algorithm then
        all[#all + 1] = "digest:" .. algorithm
    end
    local ctx, err = operation(self, "verify_raw", C.EVP_PKEY_verify_init, padding, all)
    if not ctx then
        return nil, err
    elseif C.EVP_PKEY_verify(ctx, signature, #signature, hashed, #hashed) == 1 then
        return true
    end
    return false, crypto.failure("pkey:verify_raw")
end

--- The secret that two keys agree on (EC, X25519, X448).
-- @tparam table peer the other's public key
-- @treturn string|nil
-- @treturn string|nil
-- @phases any
function _M:derive(peer)
    if not _M.istype(peer) then
        return nil, "pkey:derive: expect a pkey instance at #1"
    end
    local ctx = ffi.gc(C.EVP_PKEY_CTX_new(self.ctx, nil), C.EVP_PKEY_CTX_free)
    local length = ffi.new("size_t[1]")
    if
        C.EVP_PKEY_derive_init(ctx) ~= 1
        or C.EVP_PKEY_derive_set_peer(ctx, peer.ctx) ~= 1
        or C.EVP_PKEY_derive(ctx, nil, length) ~= 1
    then
        return nil, crypto.failure("pkey:derive")
    end
    local bytes = ffi.new("unsigned char[?]", length[0])
    if C.EVP_PKEY_derive(ctx, bytes, length) ~= 1 then
        return nil, crypto.failure("pkey:derive")
    end
    return ffi.string(bytes, length[0])
end

return _M
