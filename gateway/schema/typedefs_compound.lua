--- Field types of several parts that plugins written for Kong use: keys, and how trace contexts
-- travel. A part of gateway.schema.typedefs.
-- @module gateway.schema.typedefs_compound

local cjson = require("cjson")
local jwk = require("gateway.schema.jwk")
local x509 = require("gateway.schema.x509")

local NULL = cjson.null

-- Of trace contexts in headers, as the configurations of Kong's tracing plugins name them.
local FORMATS = { "w3c", "b3", "b3-single", "jaeger", "ot", "datadog", "aws", "gcp" }
local EXTRACTED = { "w3c", "b3", "jaeger", "ot", "datadog", "aws", "gcp" }

-- Members of a JSON Web Key that are texts (RFC 7517, 7518), and those that are lists of them.
local MEMBERS = {
    { "issuer" },
    { "kty" },
    { "use" },
    { "key_ops", is_list = true },
    { "alg" },
    { "kid", is_required = true },
    { "x5u" },
    { "x5c", is_list = true },
    { "x5t" },
    { "x5t#S256" },
    { "k" },
    { "x" },
    { "y" },
    { "crv" },
    { "n" },
    { "e" },
    { "d" },
    { "p" },
    { "q" },
    { "dp" },
    { "dq" },
    { "qi" },
    { "oth" },
    { "r" },
    { "t" },
}

local function without_nulls(value)
    local out = {}
    for key, item in pairs(value) do
        out[key] = item ~= NULL and item or nil
    end
    return out
end

local function check_jwk(key)
    local text = cjson.encode(without_nulls(key))
    return jwk.check(text, key.kid) or nil, "could not load JWK, likely not a valid key"
end

local function check_pem(pair)
    return x509.check_key_pair(without_nulls(pair))
end

local function fields_of_jwk()
    local fields = {}
    for i, member in ipairs(MEMBERS) do
        local field = { type = "string", required = member.is_required or false }
        if member.is_list then
            field = { type = "array", required = false, elements = { type = "string" } }
        end
        fields[i] = { [member[1]] = field }
    end
    return fields
end

local function check_header_name(name)
    return name:find("^[%w_-]+$") and true or nil,
        ("bad header name '%s', allowed characters are A-Z, a-z, 0-9, '_', and '-'"):format(name)
end

return {
    pem = {
        type = "record",
        required = false,
        description = "A key pair in PEM, of which one may be missing.",
        fields = {
            {
                private_key = {
                    type = "string",
                    required = false,
                    referenceable = true,
                    encrypted = true,
                },
            },
            { public_key = { type = "string", required = false, referenceable = true } },
        },
        entity_checks = { { at_least_one_of = { "private_key", "public_key" } } },
        custom_validator = check_pem,
    },
    jwk = {
        type = "record",
        required = false,
        description = "A JSON Web Key.",
        fields = fields_of_jwk(),
        custom_validator = check_jwk,
    },
    propagation = {
        type = "record",
        description = "How trace contexts are taken from requests, and passed on.",
        fields = {
            {
                extract = {
                    type = "array",
                    elements = { type = "string", one_of = EXTRACTED },
                    description = "Formats that are looked for, the first that is there counts.",
                },
            },
            {
                clear = {
                    type = "array",
                    elements = { type = "string", custom_validator = check_header_name },
                    description = "Request headers that are removed then.",
                },
            },
            {
                inject = {
                    type = "array",
                    elements = { type = "string", one_of = { "preserve", unpack(FORMATS) } },
                    description = "Formats that are sent; `preserve` is that of the request.",
                },
            },
            {
                default_format = {
                    type = "string",
                    one_of = FORMATS,
                    required = true,
                    description = "Format for requests without a trace context.",
                },
            },
        },
    },
}
