--- The entities of hmac-auth: secrets of consumers.
-- @module plugins.hmac-auth.daos

local typedefs = require("gateway.schema.typedefs")

local EXAMPLE = [[
consumers:
  - username: alice
    hmacauth_credentials:
      - username: alice
        secret: alices-secret
]]

return {
    {
        name = "hmacauth_credentials",
        description = "A name and a secret of a consumer, for the plugin hmac-auth.",
        example = EXAMPLE,
        primary_key = { "id" },
        cache_key = { "username" },
        endpoint_key = "username",
        admin_api_name = "hmac-auths",
        admin_api_nested_name = "hmac-auth",

        --- What the C reads of a credential: the secret.
        pack = function(entity)
            return entity.secret
        end,
        fields = {
            { id = typedefs.uuid },
            { created_at = typedefs.created_at },
            {
                consumer = typedefs.consumer({
                    description = "Consumer that owns the secret.",
                }),
            },
            {
                username = {
                    type = "string",
                    required = true,
                    unique = true,
                    description = "Name that clients send.",
                },
            },
            {
                secret = {
                    type = "string",
                    auto = true,
                    encrypted = true,
                    description = "Secret that requests are signed with. The Admin API generates "
                        .. "a random one if none is given.",
                },
            },
            { tags = typedefs.tags },
        },
    },
}
