--- Keys from and to JSON Web Keys (RFC 7517, RFC 7518 6, RFC 8037).
-- @module resty.openssl.pkey.jwk

local bn = require("resty.openssl.bn")
local cjson = require("cjson.safe")
local crypto = require("sluice.ffi.libcrypto")
local digest = require("resty.openssl.digest")
local ffi = require("ffi")

local format = string.format
local ipairs = ipairs
local tostring = tostring
local type = type

local C = crypto.C

-- EVP_PKEY_PUBLIC_KEY, EVP_PKEY_KEYPAIR of fromdata.
local PUBLIC, PAIR = 0x86, 0x87

-- Of each member: the largest modulus that OpenSSL verifies with (16384 bits).
local MAX_BYTES = 2048

local _M = {}

-- Members of a JWK of RSA, in order, with OpenSSL's parameters.
local RSA_MEMBERS = {
    { "n", "n" },
    { "e", "e" },
    { "d", "d" },
    { "p", "rsa-factor1" },
    { "q", "rsa-factor2" },
    { "dp", "rsa-exponent1" },
    { "dq", "rsa-exponent2" },
    { "qi", "rsa-coefficient1" },
}

-- Bytes of a coordinate, by curve.
local CURVES = { ["P-256"] = 32, ["P-384"] = 48, ["P-521"] = 66 }
local CURVES_BY_NAME = { prime256v1 = "P-256", secp384r1 = "P-384", secp521r1 = "P-521" }

local OKP = {
    Ed25519 = C.OBJ_txt2nid("ED25519"),
    Ed448 = C.OBJ_txt2nid("ED448"),
    X25519 = C.OBJ_txt2nid("X25519"),
    X448 = C.OBJ_txt2nid("X448"),
}
local OKP_BY_NID = {}
for name, nid in pairs(OKP) do
    OKP_BY_NID[nid] = name
end

local function decode(jwk, name)
    local value = jwk[name]
    local bytes = type(value) == "string" and crypto.decode_base64url(value) or nil
    if not bytes or bytes == "" then
        return nil, format('cannot decode parameter "%s" from base64 %s', name, tostring(value))
    elseif #bytes > MAX_BYTES then
        return nil, format('cannot use parameter "%s": it is too long', name)
    end
    return bytes
end

-- A key of OpenSSL's parameters.
local function from_params(kind, pushes, is_private)
    local params = crypto.params(pushes)
    local ctx = ffi.gc(C.EVP_PKEY_CTX_new_from_name(nil, kind, nil), C.EVP_PKEY_CTX_free)
    local place = ffi.new("void *[1]")
    if
        not params
        or C.EVP_PKEY_fromdata_init(ctx) ~= 1
        or C.EVP_PKEY_fromdata(ctx, place, is_private and PAIR or PUBLIC, params) ~= 1
    then
        return nil, crypto.failure("invalid parameters")
    end
    return place[0]
end

local function push_number(name, bytes)
    local number = bn.from_binary(bytes)
    return function(builder)
        return C.OSSL_PARAM_BLD_push_BN(builder, name, number.ctx)
    end
end

local function load_rsa(jwk)
    if not jwk.n or not jwk.e then
        return nil, 'at least "n" and "e" parameter is required'
    end
    local pushes = {}
    for _, member in ipairs(RSA_MEMBERS) do
        if jwk[member[1]] then
            local bytes, err = decode(jwk, member[1])
            if not bytes then
                return nil, err
            end
            pushes[#pushes + 1] = push_number(member[2], bytes)
        end
    end
    return from_params("RSA", pushes, jwk.d ~= nil)
end

local function load_ec(jwk)
    if not jwk.crv then
        return nil, '"crv" not defined for EC key'
    elseif not jwk.x or not jwk.y then
        return nil, 'at least "x" and "y" parameter is required'
    end
    local size = CURVES[jwk.crv]
    if not size then
        return nil, format('curve "%s" is not supported by this library', tostring(jwk.crv))
    end
    local point = "\4"
    for _, name in ipairs({ "x", "y" }) do
        local bytes, err = decode(jwk, name)
        if not bytes then
            return nil, err
        elseif #bytes > size then
            return nil, format('cannot use parameter "%s": it is too long', name)
        end
        point = point .. ("\0"):rep(size - #bytes) .. bytes
    end
    local pushes = {
        function(builder)
            return C.OSSL_PARAM_BLD_push_utf8_string(builder, "group", jwk.crv, 0)
        end,
        function(builder)
            return C.OSSL_PARAM_BLD_push_octet_string(builder, "pub", point, #point)
        end,
    }
    if jwk.d then
        local bytes, err = decode(jwk, "d")
        if not bytes then
            return nil, err
        end
        pushes[3] = push_number("priv", bytes)
    end
    return from_params("EC", pushes, jwk.d ~= nil)
end

local function load_okp(jwk)
    local nid = OKP[jwk.crv]
    if not nid then
        return nil, format('unknown curve "%s"', tostring(jwk.crv))
    elseif not jwk.d and not jwk.x then
        return nil, 'at least "x" or "d" parameter is required'
    end
    local bytes, err = decode(jwk, jwk.d and "d" or "x")
    if not bytes then
        return nil, err
    end
    local make = jwk.d and C.EVP_PKEY_new_raw_private_key or C.EVP_PKEY_new_raw_public_key
    local key = make(nid, nil, bytes, #bytes)
    if key == nil then
        return nil, crypto.failure("invalid parameters")
    end
    return key
end

local LOADERS = { RSA = load_rsa, EC = load_ec, OKP = load_okp }

--- Reads a JWK.
-- @tparam string text
-- @treturn cdata|nil a key, the caller's
-- @treturn string|nil
-- @phases any
function _M.load(text)
    local jwk, err = cjson.decode(text)
    if type(jwk) ~= "table" then
        return nil, "error decoding JSON from JWK: " .. tostring(err or "not an object")
    end
    local load = LOADERS[jwk.kty]
    if not load then
        return nil, format('not yet supported jwk type "%s"', tostring(jwk.kty))
    end
    local key
    key, err = load(jwk)
    if not key then
        return nil, format("failed to construct %s key from JWK: %s", jwk.kty, err)
    end
    return key
end

-- What goes into a JWK: names and bytes.
local function members_of(key, is_private)
    local params, err = key:get_parameters()
    if not params then
        return nil, err
    elseif params.n then
        local out = { kty = "RSA" }
        local names = { n = "n", e = "e" }
        if is_private then
            names = { n = "n", e = "e", d = "d", p = "p", q = "q", dp = "dmp1" }
            names.dq, names.qi = "dmq1", "iqmp"
        end
        for name, from in pairs(names) do
            out[name] = params[from] and crypto.encode_base64url(params[from]:to_binary())
        end
        return out
    elseif params.x then
        local curve = params.group and CURVES_BY_NAME[ffi.string(C.OBJ_nid2sn(params.group))]
        if not curve then
            return nil, "curve is not one of JWK's"
        end
        local size = CURVES[curve]
        return {
            kty = "EC",
            crv = curve,
            x = crypto.encode_base64url(params.x:to_binary(size)),
            y = crypto.encode_base64url(params.y:to_binary(size)),
            d = is_private and crypto.encode_base64url(params.private:to_binary(size)) or nil,
        }
    end
    return {
        kty = "OKP",
        crv = OKP_BY_NID[key.key_type],
        x = crypto.encode_base64url(params.public),
        d = is_private and crypto.encode_base64url(params.private) or nil,
    }
end

--- Writes a JWK; its `kid` is the SHA-256 of the key in DER, as lua-resty-openssl's is.
-- @tparam table key of resty.openssl.pkey
-- @tparam boolean is_private
-- @treturn string|nil
-- @treturn string|nil
-- @phases any
function _M.dump(key, is_private)
    if is_private and not key:is_private() then
        return nil, "jwk.dump_jwk: could not dump public key as private key"
    end
    local members, err = members_of(key, is_private)
    if not members then
        return nil, "jwk.dump_jwk: " .. err
    end
    local der = key:tostring(is_private and "private" or "public", "DER")
    members.kid = crypto.encode_base64url(digest.new("sha256"):final(der))
    return cjson.encode(members)
end

return _M
