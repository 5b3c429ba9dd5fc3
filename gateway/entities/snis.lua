--- Schema of an SNI: a server name of TLS, and the certificate for it.
-- @module gateway.entities.snis

local typedefs = require("gateway.schema.typedefs")

return {
    name = "snis",
    primary_key = { "id" },
    endpoint_key = "name",
    fields = {
        { id = typedefs.uuid },
        { name = typedefs.wildcard_host({ required = true, unique = true }) },
        { created_at = typedefs.auto_timestamp_s },
        { updated_at = typedefs.auto_timestamp_s },
        { tags = typedefs.tags },
        {
            certificate = {
                type = "foreign",
                reference = "certificates",
                required = true,
                on_delete = "cascade",
            },
        },
    },
}
