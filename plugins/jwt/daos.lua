--- The entities of jwt: what consumers sign tokens with.
-- @module plugins.jwt.daos

local packed = require("sluice.ffi.packed")
local typedefs = require("gateway.schema.typedefs")

local EXAMPLE = [[
consumers:
  - username: alice
    jwt_secrets:
      - key: alices-issuer
        secret: alices-secret
]]

local ALGORITHMS = {
    "HS256",
    "HS384",
    "HS512",
    "RS256",
    "RS384",
    "RS512",
    "ES256",
    "ES384",
    "ES512",
    "PS256",
    "PS384",
    "PS512",
    "EdDSA",
}

local NEED_KEY = { "^RS256$", "^RS384$", "^RS512$", "^PS256$", "^PS384$", "^PS512$", "^EdDSA$" }

-- Kong takes a private key for the public one that belongs to it, and so do we.
local function warnings(entity)
    local key = entity.rsa_public_key
    if type(key) ~= "string" or not key:find("PRIVATE KEY-----", 1, true) then
        return {}
    end
    local message = "is a private key, which only the issuer of tokens needs: give the public key"
    return { { field = "rsa_public_key", message = message } }
end

return {
    {
        name = "jwt_secrets",
        description = "A secret or public key of a consumer, for the plugin jwt.",
        example = EXAMPLE,
        primary_key = { "id" },
        cache_key = { "key" },
        endpoint_key = "key",
        admin_api_name = "jwts",
        admin_api_nested_name = "jwt",
        warnings = warnings,

        --- What the C reads of a credential.
        pack = function(entity)
            local out = packed.new()
            out:text(entity.algorithm)
            out:text(entity.secret)
            out:text(entity.rsa_public_key)
            return out:bytes()
        end,
        fields = {
            { id = typedefs.uuid },
            { created_at = typedefs.created_at },
            {
                consumer = typedefs.consumer({
                    description = "Consumer that signs the tokens.",
                }),
            },
            {
                key = {
                    type = "string",
                    unique = true,
                    auto = true,
                    description = "Value of the claim `key_claim_name` in tokens of this "
                        .. "credential. The Admin API generates a random one if none is given.",
                },
            },
            {
                secret = {
                    type = "string",
                    auto = true,
                    encrypted = true,
                    -- of no use with a public key
                    unless = function(entity)
                        return type(entity.algorithm) == "string"
                            and entity.algorithm:sub(1, 2) ~= "HS"
                    end,
                    description = "Secret of the HS algorithms, for which the Admin API generates "
                        .. "a random one if none is given.",
                },
            },
            {
                rsa_public_key = {
                    type = "string",
                    description = "Public key of the other algorithms, in PEM.",
                },
            },
            {
                algorithm = {
                    type = "string",
                    default = "HS256",
                    one_of = ALGORITHMS,
                    description = "Algorithm of the signature. Tokens with another one are "
                        .. "refused.",
                },
            },
            { tags = typedefs.tags },
        },
        entity_checks = {
            {
                conditional = {
                    if_field = "algorithm",
                    if_match = { match_any = { patterns = NEED_KEY } },
                    then_field = "rsa_public_key",
                    then_match = {
                        required = true,
                        custom_validator = typedefs.public_key.custom_validator,
                    },
                },
            },
        },
    },
}
