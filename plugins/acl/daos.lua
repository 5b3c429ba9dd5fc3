--- The entities of acl: groups of consumers.
-- @module plugins.acl.daos

local typedefs = require("gateway.schema.typedefs")

local EXAMPLE = [[
consumers:
  - username: alice
    acls:
      - group: admins
]]

return {
    {
        name = "acls",
        description = "Membership of a consumer in a group, for the plugin acl.",
        example = EXAMPLE,
        primary_key = { "id" },
        endpoint_key = "group",
        cache_key = { "consumer", "group" },
        -- what the C asks of a consumer
        label = "group",
        fields = {
            { id = typedefs.uuid },
            { created_at = typedefs.created_at },
            {
                consumer = typedefs.consumer({
                    description = "Member of the group.",
                }),
            },
            {
                group = {
                    type = "string",
                    required = true,
                    description = "Name of the group. Groups are not declared anywhere else and "
                        .. "are unrelated to consumer groups.",
                },
            },
            { tags = typedefs.tags },
        },
    },
}
