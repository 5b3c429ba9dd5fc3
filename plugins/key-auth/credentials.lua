--- Schema of the credentials of key-auth: keys of consumers.
-- @module plugins.key-auth.credentials

local typedefs = require("gateway.schema.typedefs")

return {
    name = "keyauth_credentials",
    primary_key = { "id" },
    endpoint_key = "key",
    -- what an id is made of: services see ids, and could try guesses of a key on a digest of it
    identity = { "consumer" },
    has_secret_name = true,
    admin_api_name = "key-auths",
    admin_api_nested_name = "key-auth",
    fields = {
        { id = typedefs.uuid },
        { created_at = typedefs.auto_timestamp_s },
        {
            consumer = {
                type = "foreign",
                reference = "consumers",
                required = true,
                on_delete = "cascade",
            },
        },
        { key = { type = "string", unique = true, auto = true, encrypted = true } },
        { tags = typedefs.tags },
        { ttl = typedefs.ttl({ supported = false }) },
    },
}
