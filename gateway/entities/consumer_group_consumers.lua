--- Schema of a membership: a consumer that is in a group. Clients see it in the group and in the
-- consumer only (gateway.control.admin.memberships); in files it is a collection, as in Kong's.
-- @module gateway.entities.consumer_group_consumers

local typedefs = require("gateway.schema.typedefs")

return {
    name = "consumer_group_consumers",
    primary_key = { "id" },
    cache_key = { "consumer_group", "consumer" },
    -- In the path of the one it goes by the other.
    joins = { "consumer_group", "consumer" },
    generate_admin_api = false,
    fields = {
        { id = typedefs.uuid },
        { created_at = typedefs.auto_timestamp_s },
        { updated_at = typedefs.auto_timestamp_s },
        {
            consumer_group = {
                type = "foreign",
                reference = "consumer_groups",
                required = true,
                on_delete = "cascade",
            },
        },
        {
            consumer = {
                type = "foreign",
                reference = "consumers",
                required = true,
                on_delete = "cascade",
            },
        },
    },
}
