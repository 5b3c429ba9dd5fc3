--- Schema of a membership: a consumer that is in a group. Clients see it in the group and in the
-- consumer only (gateway.admin.memberships); in files it is a collection, as in Kong's.
-- @module gateway.entities.consumer_group_consumers

local typedefs = require("gateway.schema.typedefs")

local EXAMPLE = [[
consumer_groups:
  - name: gold
consumers:
  - username: alice
consumer_group_consumers:
  - consumer_group: { name: gold }
    consumer: { username: alice }
]]

return {
    name = "consumer_group_consumers",
    description = "Membership of a consumer in a group. Admin API: "
        .. "`/consumer_groups/{group}/consumers` and `/consumers/{consumer}/consumer_groups`.",
    example = EXAMPLE,
    primary_key = { "id" },
    cache_key = { "consumer_group", "consumer" },
    -- In the path of the one it goes by the other.
    joins = { "consumer_group", "consumer" },
    generate_admin_api = false,
    fields = {
        { id = typedefs.uuid },
        { created_at = typedefs.created_at },
        { updated_at = typedefs.updated_at },
        {
            consumer_group = {
                type = "foreign",
                reference = "consumer_groups",
                description = "Group of the consumer.",
                required = true,
                on_delete = "cascade",
            },
        },
        {
            consumer = {
                type = "foreign",
                reference = "consumers",
                description = "Member of the group.",
                required = true,
                on_delete = "cascade",
            },
        },
    },
}
