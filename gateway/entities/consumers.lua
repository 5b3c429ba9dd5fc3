--- Schema of a consumer: who sends requests.
-- @module gateway.entities.consumers

local typedefs = require("gateway.schema.typedefs")

local EXAMPLE = [[
consumers:
  - username: alice
    custom_id: crm-4711
    keyauth_credentials:
      - key: alices-secret
]]

return {
    name = "consumers",
    description = "A client of the gateway. Authentication plugins determine the consumer of a "
        .. "request.",
    example = EXAMPLE,
    primary_key = { "id" },
    endpoint_key = "username",
    -- what an id is made of where there is no name
    identity = { "custom_id" },
    -- decK's files name the groups of a consumer in it.
    links = { groups = { kind = "consumer_group_consumers", field = "consumer_group" } },
    fields = {
        { id = typedefs.uuid },
        { created_at = typedefs.created_at },
        { updated_at = typedefs.updated_at },
        {
            username = {
                type = "string",
                unique = true,
                description = "Name that can be used instead of the id in paths and references. "
                    .. "Sent to services as `X-Consumer-Username`.",
            },
        },
        {
            custom_id = {
                type = "string",
                unique = true,
                description = "Id of the consumer in another system. Sent to services as "
                    .. "`X-Consumer-Custom-ID`.",
            },
        },
        { tags = typedefs.tags },
    },
    entity_checks = { { at_least_one_of = { "custom_id", "username" } } },
}
