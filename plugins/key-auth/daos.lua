--- The entities of key-auth: keys of consumers.
-- @module plugins.key-auth.daos

local typedefs = require("gateway.schema.typedefs")

local EXAMPLE = [[
consumers:
  - username: alice
    keyauth_credentials:
      - key: alices-secret
]]

return {
    {
        name = "keyauth_credentials",
        description = "An API key of a consumer, for the plugin key-auth.",
        example = EXAMPLE,
        primary_key = { "id" },
        endpoint_key = "key",
        -- what an id is made of: services see ids, and could try guesses of a key on a digest of it
        identity = { "consumer" },
        has_secret_name = true,
        expires = true,
        admin_api_name = "key-auths",
        admin_api_nested_name = "key-auth",
        fields = {
            { id = typedefs.uuid },
            { created_at = typedefs.created_at },
            {
                consumer = typedefs.consumer({
                    description = "Consumer that owns the key.",
                }),
            },
            {
                key = {
                    type = "string",
                    unique = true,
                    auto = true,
                    encrypted = true,
                    description = "The API key. The Admin API generates a random key if none is "
                        .. "given.",
                },
            },
            { tags = typedefs.tags },
            {
                ttl = typedefs.ttl({
                    description = "Seconds until the key is deleted; responses contain the "
                        .. "remaining time. 0 or null: never.",
                }),
            },
        },
    },
}
