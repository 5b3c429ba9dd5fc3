--- Schema of a group of consumers.
-- @module gateway.entities.consumer_groups

local typedefs = require("gateway.schema.typedefs")

local EXAMPLE = [[
consumer_groups:
  - name: gold
    plugins:
      - name: rate-limiting
        config: { minute: 1000 }
consumers:
  - username: alice
    groups: [{ name: gold }]
]]

return {
    name = "consumer_groups",
    description = "A group of consumers. Plugins can be bound to it.",
    example = EXAMPLE,
    primary_key = { "id" },
    endpoint_key = "name",
    -- decK's files name the consumers of a group in it.
    links = { consumers = { kind = "consumer_group_consumers", field = "consumer" } },
    fields = {
        { id = typedefs.uuid },
        { created_at = typedefs.created_at },
        { updated_at = typedefs.updated_at },
        { name = typedefs.utf8_name({ required = true }) },
        { tags = typedefs.tags },
    },
}
