--- JSON Web Keys (RFC 7517, 7518, 8037) as fields hold them, of the types RSA, EC and OKP. OpenSSL
-- reads their public part. No message has anything of a key.
-- @module gateway.schema.jwk

local base64 = require("sluice.base64")
local cjson = require("cjson.safe")
local pkey = require("openssl.pkey")

local char = string.char
local find = string.find
local gsub = string.gsub
local rep = string.rep

-- As long as 16,384 bits of RSA with their private parts, and certificates beside them.
local MAX_BYTES = 65536

-- Of a name that is no member's, in messages.
local MAX_SHOWN = 32

local NOT_LOADED = "could not load JWK, likely not a valid key"
local NOT_JSON = "could not json decode jwk string"

-- Members that a key may have; each is a text, two are arrays of texts.
local MEMBERS, LISTS = {}, { key_ops = true, x5c = true }
local NAMES = "issuer kty use key_ops alg kid x5u x5c x5t x5t#S256 k x y crv n e d p q dp dq qi "
    .. "oth r t"
for name in NAMES:gmatch("%S+") do
    MEMBERS[name] = true
end

-- The bytes of a coordinate, and the curve's OID in DER.
local CURVES = {
    ["P-256"] = { 32, "\6\8\42\134\72\206\61\3\1\7" },
    ["P-384"] = { 48, "\6\5\43\129\4\0\34" },
    ["P-521"] = { 66, "\6\5\43\129\4\0\35" },
}
local OID_OF_EC = "\6\7\42\134\72\206\61\2\1"
local OID_OF_RSA = "\6\9\42\134\72\134\247\13\1\1\1"
local NO_PARAMETERS = "\5\0"

local INTEGER, BIT_STRING, SEQUENCE = "\2", "\3", "\48"

-- The bytes of a key.
local OKP_BYTES = { Ed25519 = 32, X25519 = 32, Ed448 = 57, X448 = 56 }

local RSA_PRIVATE = { "d", "p", "q", "dp", "dq", "qi" }

local _M = {}

-- A value in DER.
local function der(tag, value)
    local length = #value
    if length < 128 then
        return tag .. char(length) .. value
    elseif length < 256 then
        return tag .. "\129" .. char(length) .. value
    end
    return tag .. "\130" .. char(math.floor(length / 256), length % 256) .. value
end

-- What OpenSSL reads of a public key (RFC 5280, 4.1.2.7).
local function public_key(oid, parameters, value)
    local algorithm = der(SEQUENCE, oid .. parameters)
    return der(SEQUENCE, algorithm .. der(BIT_STRING, "\0" .. value))
end

-- The bytes of a member, without zeros that lead; nil where it has none.
local function number_of(key, name)
    local text = key[name]
    local bytes = type(text) == "string" and base64.decode(text) or ""
    bytes = gsub(bytes, "^%z+", "")
    return bytes ~= "" and bytes or nil
end

local function integer(bytes)
    return der(INTEGER, find(bytes, "^[\128-\255]") and "\0" .. bytes or bytes)
end

local function is_rsa(key)
    local n, e = number_of(key, "n"), number_of(key, "e")
    for _, name in ipairs(RSA_PRIVATE) do
        if key[name] ~= nil and not number_of(key, name) then
            return false
        end
    end
    if not (n and e) then
        return false
    end
    local value = der(SEQUENCE, integer(n) .. integer(e))
    return pcall(pkey.new, public_key(OID_OF_RSA, NO_PARAMETERS, value), "DER")
end

local function is_ec(key)
    local size, curve = unpack(CURVES[key.crv] or {})
    local x, y, d = number_of(key, "x"), number_of(key, "y"), number_of(key, "d")
    if not size or not (x and y) or #x > size or #y > size then
        return false
    elseif key.d ~= nil and not (d and #d <= size) then
        return false
    end
    local point = "\4" .. rep("\0", size - #x) .. x .. rep("\0", size - #y) .. y
    return pcall(pkey.new, public_key(OID_OF_EC, curve, point), "DER")
end

local function is_okp(key)
    local size = OKP_BYTES[key.crv]
    for _, name in ipairs({ "x", "d" }) do
        local text = key[name]
        local bytes = type(text) == "string" and base64.decode(text)
        if text ~= nil and not (bytes and #bytes == size) then
            return false
        end
    end
    return size ~= nil and (key.x or key.d) ~= nil
end

local IS_ONE = { RSA = is_rsa, EC = is_ec, OKP = is_okp }

-- What is wrong with the members of a key beside its numbers.
local function check_members(key)
    local wrong = {}
    for name, value in pairs(key) do
        if not MEMBERS[name] then
            local shown = find(name, "^[%w_#]+$") and #name <= MAX_SHOWN and name or "?"
            wrong[#wrong + 1] = ("jwk.%s: unknown field"):format(shown)
        elseif LISTS[name] then
            local is_list = type(value) == "table" and (#value > 0 or next(value) == nil)
            wrong[#wrong + 1] = not is_list and ("jwk.%s: expected an array"):format(name) or nil
            for i, item in ipairs(is_list and value or {}) do
                if type(item) ~= "string" then
                    wrong[#wrong + 1] = ("jwk.%s[%d]: expected a string"):format(name, i)
                end
            end
        elseif type(value) ~= "string" then
            wrong[#wrong + 1] = ("jwk.%s: expected a string"):format(name)
        end
    end
    table.sort(wrong)
    return wrong[1] == nil or nil, wrong[1]
end

--- Checks a key.
-- @tparam string text JSON
-- @tparam string kid what its `kid` has to be
-- @treturn true|nil
-- @treturn nil|string why not
function _M.check(text, kid)
    if #text > MAX_BYTES then
        return nil, ("jwk is longer than %d bytes"):format(MAX_BYTES)
    end
    local key = find(text, "^%s*{") and cjson.decode(text)
    if type(key) ~= "table" then
        return nil, NOT_JSON
    elseif key.kid ~= kid then
        return nil, "kid in jwk.kid must be equal to keys.kid"
    end
    local is_one = type(key.kty) == "string" and IS_ONE[key.kty]
    if not (is_one and is_one(key)) then
        return nil, NOT_LOADED
    end
    return check_members(key)
end

return _M
