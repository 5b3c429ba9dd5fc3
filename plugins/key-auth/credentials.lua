--- Schema of the credentials of key-auth: keys of consumers.
-- @module plugins.key-auth.credentials

local typedefs = require("gateway.schema.typedefs")

local EXAMPLE = [[
consumers:
  - username: alice
    keyauth_credentials:
      - key: alices-secret
]]

return {
    name = "keyauth_credentials",
    description = "A key of a consumer, for the plugin key-auth.",
    example = EXAMPLE,
    primary_key = { "id" },
    endpoint_key = "key",
    -- what an id is made of: services see ids, and could try guesses of a key on a digest of it
    identity = { "consumer" },
    has_secret_name = true,
    admin_api_name = "key-auths",
    admin_api_nested_name = "key-auth",
    fields = {
        { id = typedefs.uuid },
        { created_at = typedefs.created_at },
        {
            consumer = {
                type = "foreign",
                reference = "consumers",
                required = true,
                on_delete = "cascade",
                description = "Consumer whose key it is.",
            },
        },
        {
            key = {
                type = "string",
                unique = true,
                auto = true,
                encrypted = true,
                description = "The key that requests carry. The Admin API makes a random one "
                    .. "where none is given.",
            },
        },
        { tags = typedefs.tags },
        {
            ttl = typedefs.ttl({
                supported = false,
                description = "Seconds that the key is good for.",
            }),
        },
    },
}
