--- Configuration of the jwt plugin, in Kong's layout.
-- @module plugins.jwt.schema

local typedefs = require("gateway.schema.typedefs")

-- Each request is searched for all of them.
local MAX_NAMES = 100

local function names(default, description)
    return {
        type = "set",
        elements = { type = "string" },
        default = default,
        len_max = MAX_NAMES,
        description = description,
    }
end

local function secret_names(default, description)
    local field = names(default, description)
    field.names_secrets = true
    return field
end

local function flag(default, description)
    return { type = "boolean", required = true, default = default, description = description }
end

return {
    name = "jwt",
    description = "Authenticates requests by a signed token (JWT, RFC 7519) and identifies the "
        .. "consumer to the service.",
    fields = {
        { consumer = typedefs.no_consumer },
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                description = "Where tokens are found, and which claims are checked.",
                fields = {
                    {
                        uri_param_names = secret_names(
                            { "jwt" },
                            "Names of query arguments that can contain the token."
                        ),
                    },
                    { cookie_names = names({}, "Names of cookies that can contain the token.") },
                    {
                        key_claim_name = {
                            type = "string",
                            default = "iss",
                            description = "Name of the claim with the `key` of the credential; if "
                                .. "there is no such claim, the header of the token is searched.",
                        },
                    },
                    {
                        secret_is_base64 = flag(
                            false,
                            "The `secret` of credentials is base64url-encoded, with or without "
                                .. "padding."
                        ),
                    },
                    {
                        claims_to_verify = {
                            type = "set",
                            elements = { type = "string", one_of = { "exp", "nbf" } },
                            description = "Claims that a token must have and that are checked: "
                                .. "`exp` (not expired), `nbf` (already valid).",
                        },
                    },
                    { anonymous = typedefs.anonymous },
                    {
                        run_on_preflight = flag(
                            true,
                            "Require a token for OPTIONS requests; if false, they pass without one."
                        ),
                    },
                    {
                        maximum_expiration = {
                            type = "number",
                            default = 0,
                            between = { 0, 31536000 },
                            description = "Maximum time in seconds until a token expires; 0: no "
                                .. "maximum. Tokens without `exp` are refused then. "
                                .. "`claims_to_verify`, if set, must have `exp`; if not set, "
                                .. "expired tokens pass.",
                        },
                    },
                    {
                        header_names = secret_names(
                            { "authorization" },
                            "Names of headers that can contain `Bearer` and the token."
                        ),
                    },
                    { realm = typedefs.realm },
                },
            },
        },
    },
    entity_checks = {
        {
            conditional = {
                if_field = "config.maximum_expiration",
                if_match = { gt = 0 },
                then_field = "config.claims_to_verify",
                then_match = { contains = "exp" },
            },
        },
    },
}
