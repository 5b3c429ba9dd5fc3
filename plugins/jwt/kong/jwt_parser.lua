--- JSON Web Tokens, as Kong's plugin jwt takes them apart: `kong.plugins.jwt.jwt_parser`.
--
-- The parser is the plugin's own, which is C; keys and signatures are `resty.openssl`'s.
-- @module kong.plugins.jwt.jwt_parser

local cjson = require("cjson.safe")
local mac = require("resty.openssl.mac")
local pkey = require("resty.openssl.pkey")
local string_buffer = require("string.buffer")

local base64 = require("sluice.base64")
local token = require("plugins.jwt.token")

local assert = assert
local error = error
local ngx = ngx
local setmetatable = setmetatable
local tostring = tostring
local type = type

local _M = {}
_M.__index = _M

local PSS = pkey.PADDINGS.RSA_PKCS1_PSS_PADDING
local RAW = { ecdsa_use_raw = true }

-- By the name of an algorithm: the digest, and what the key is. `bytes`: what a signature has to
-- have.
local ALGORITHMS = {
    HS256 = { kind = "hmac", digest = "sha256" },
    HS384 = { kind = "hmac", digest = "sha384" },
    HS512 = { kind = "hmac", digest = "sha512" },
    RS256 = { kind = "key", digest = "sha256" },
    RS384 = { kind = "key", digest = "sha384" },
    RS512 = { kind = "key", digest = "sha512" },
    ES256 = { kind = "key", digest = "sha256", options = RAW, bytes = 64 },
    ES384 = { kind = "key", digest = "sha384", options = RAW, bytes = 96 },
    ES512 = { kind = "key", digest = "sha512", options = RAW, bytes = 132 },
    PS256 = { kind = "key", digest = "sha256", padding = PSS },
    PS384 = { kind = "key", digest = "sha384", padding = PSS },
    PS512 = { kind = "key", digest = "sha512", padding = PSS },
    EdDSA = { kind = "key" },
}

local function hmac(algorithm, data, key)
    return assert(assert(mac.new(key, "HMAC", nil, algorithm.digest)):final(data))
end

local function sign(algorithm, data, key)
    if algorithm.kind == "hmac" then
        return hmac(algorithm, data, key)
    end
    local found = assert(pkey.new(key))
    return assert(found:sign(data, algorithm.digest, algorithm.padding, algorithm.options))
end

-- Whether two texts are equal, in a time that tells nothing of where they differ.
local function are_equal(a, b)
    if #a ~= #b then
        return false
    end
    local different = 0
    for i = 1, #a do
        different = bit.bor(different, bit.bxor(a:byte(i), b:byte(i)))
    end
    return different == 0
end

local function verify(algorithm, data, signature, key)
    if algorithm.kind == "hmac" then
        return are_equal(signature, hmac(algorithm, data, key))
    end
    local found = assert(pkey.new(key), "Consumer Public Key is Invalid")
    if algorithm.bytes then
        local message = "Signature must be " .. algorithm.bytes .. " bytes."
        assert(#signature == algorithm.bytes, message)
    end
    return found:verify(signature, data, algorithm.digest, algorithm.padding, algorithm.options)
end

-- What has more than three parts has them in the signature, which then is none.
local function decode(text)
    local header, claims, signature = token.split(text)
    if not header then
        return nil, claims
    end
    header, claims = cjson.decode(header), cjson.decode(claims)
    if not (header and claims) then
        return nil, "invalid JSON" -- nested deeper than somebody has set
    end
    local header_64, claims_64, signature_64 = text:match("^([^.]*)%.([^.]*)%.(.*)$")
    return {
        token = text,
        header_64 = header_64,
        claims_64 = claims_64,
        signature_64 = signature_64,
        header = header,
        claims = claims,
        signature = signature,
    }
end

--- Takes a token apart; verifies nothing.
-- @tparam string text the token
-- @treturn table|nil `header`, `claims`, `signature`, and each with `_64` behind; the methods below
-- @treturn string|nil "invalid JSON", "invalid alg", "invalid signature"
-- @raise "Token must be a string, got ..."
-- @phases any
function _M.new(_, text)
    if type(text) ~= "string" then
        error("Token must be a string, got " .. tostring(text), 2)
    end
    local found, err = decode(text)
    return found and setmetatable(found, _M), err
end

--- Whether the signature is of this key.
-- @tparam string key a secret (HS256, ...), or a public key as PEM
-- @treturn boolean
-- @raise "Consumer Public Key is Invalid", "Signature must be 64 bytes."
-- @phases any
function _M:verify_signature(key)
    local data = self.header_64 .. "." .. self.claims_64
    return verify(ALGORITHMS[self.header.alg], data, self.signature, key) or false
end

--- Decodes base64url, with padding or without.
-- @tparam string text
-- @treturn string|nil
-- @phases any
function _M.base64_decode(_, text)
    return base64.decode_url(text)
end

-- Claims that can be verified: what is wrong with a number.
local CLAIMS = {
    exp = function(value)
        return value <= ngx.time() and "token expired" or nil
    end,
    nbf = function(value)
        return value > ngx.time() and "token not valid yet" or nil
    end,
}

--- Verifies claims.
-- @tparam {string,...} names "exp", "nbf"
-- @treturn boolean whether all are right
-- @treturn table|nil claim -> "must be a number", "token expired", "token not valid yet"
-- @phases any
function _M:verify_registered_claims(names)
    local errors
    for _, name in ipairs(names or {}) do
        local value = self.claims[name]
        local err
        if type(value) ~= "number" then
            err = "must be a number"
        else
            err = CLAIMS[name](value)
        end
        if err then
            errors = errors or {}
            errors[name] = err
        end
    end
    return errors == nil, errors
end

--- Whether a token expires soon enough.
-- @tparam number maximum_expiration seconds; 0: any time is
-- @treturn boolean
-- @treturn table|nil `{ exp = "exceeds maximum allowed expiration" }`
-- @phases any
function _M:check_maximum_expiration(maximum_expiration)
    local exp = self.claims.exp
    local is_late = type(exp) ~= "number" or exp - ngx.time() > maximum_expiration
    if maximum_expiration > 0 and is_late then
        return false, { exp = "exceeds maximum allowed expiration" }
    end
    return true
end

--- Makes a token.
-- @tparam table data claims
-- @tparam string key a secret, or a private key as PEM
-- @tparam[opt="HS256"] string alg
-- @tparam[opt] table header
-- @treturn string
-- @raise what is wrong with the arguments
-- @phases any
function _M.encode(data, key, alg, header)
    if type(data) ~= "table" then
        error("Argument #1 must be table", 2)
    elseif type(key) ~= "string" then
        error("Argument #2 must be string", 2)
    elseif header and type(header) ~= "table" then
        error("Argument #4 must be a table", 2)
    end
    alg = alg or "HS256"
    local algorithm = ALGORITHMS[alg]
    if not algorithm then
        error("Algorithm not supported", 2)
    end
    local out = string_buffer.new()
    out:put(base64.encode_url(cjson.encode(header or { typ = "JWT", alg = alg })), ".")
    out:put(base64.encode_url(cjson.encode(data)))
    local signed = out:tostring()
    return signed .. "." .. base64.encode_url(sign(algorithm, signed, key))
end

return _M
