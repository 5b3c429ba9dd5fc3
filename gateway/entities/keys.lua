--- Schema of a key: public, or with its private part, as a JSON Web Key or in PEM.
-- @module gateway.entities.keys

local jwk = require("gateway.schema.jwk")
local typedefs = require("gateway.schema.typedefs")
local x509 = require("gateway.schema.x509")

local EXAMPLE = [[
key_sets:
  - name: issuer
keys:
  - name: issuer-2026
    kid: "2026"
    set: { name: issuer }
    pem:
      public_key: |
        -----BEGIN PUBLIC KEY-----
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEvbaIRnAMlzhLhAyBzu7Awx9C8WGp
        FEJPiZ5JYaZ1o6cPp87+qLvJdSVKJaP7Peoa23JwjpbpFLQRgxW+FdVMeA==
        -----END PUBLIC KEY-----
]]

local function check_jwk(key)
    if type(key.jwk) ~= "string" then
        return true
    end
    return jwk.check(key.jwk, key.kid)
end

return {
    name = "keys",
    description = "A key, for plugins that ask for one by its `kid`. None of the bundled plugins "
        .. "does.",
    example = EXAMPLE,
    primary_key = { "id" },
    cache_key = { "kid", "set" },
    endpoint_key = "name",
    fields = {
        { id = typedefs.uuid },
        {
            set = {
                type = "foreign",
                reference = "key_sets",
                on_delete = "cascade",
                description = "Set that the key belongs to.",
            },
        },
        {
            name = {
                type = "string",
                unique = true,
                description = "Name that can be used instead of the id in paths and references.",
            },
        },
        {
            kid = {
                type = "string",
                required = true,
                description = "Id of the key, unique in its set, or among the keys without one.",
            },
        },
        {
            jwk = {
                type = "string",
                referenceable = true,
                encrypted = true,
                description = "The key as a JSON Web Key of type RSA, EC (P-256, P-384, P-521) or "
                    .. "OKP, as a text of up to 65,536 bytes. Its `kid` must be that of the key.",
            },
        },
        {
            pem = {
                type = "record",
                required = false,
                description = "The key in PEM. A key pair must match.",
                fields = {
                    {
                        private_key = {
                            type = "string",
                            referenceable = true,
                            encrypted = true,
                            description = "Private key, not encrypted.",
                        },
                    },
                    {
                        public_key = {
                            type = "string",
                            referenceable = true,
                            secret = false,
                            description = "Public key.",
                        },
                    },
                },
                entity_checks = { { at_least_one_of = { "private_key", "public_key" } } },
                custom_validator = x509.check_key_pair,
            },
        },
        { tags = typedefs.tags },
        { created_at = typedefs.created_at },
        { updated_at = typedefs.updated_at },
    },
    entity_checks = {
        { mutually_exclusive = { "jwk", "pem" } },
        { at_least_one_of = { "jwk", "pem" } },
        {
            custom_entity_check = {
                field_sources = { "jwk", "pem", "kid" },
                fn = check_jwk,
                description = "`jwk` must be a JSON Web Key with this `kid`.",
            },
        },
    },
}
