--- Schema of a consumer: who sends requests.
-- @module gateway.entities.consumers

local typedefs = require("gateway.schema.typedefs")

return {
    name = "consumers",
    primary_key = { "id" },
    endpoint_key = "username",
    -- what an id is made of where there is no name
    identity = { "custom_id" },
    -- decK's files name the groups of a consumer in it.
    links = { groups = { kind = "consumer_group_consumers", field = "consumer_group" } },
    fields = {
        { id = typedefs.uuid },
        { created_at = typedefs.auto_timestamp_s },
        { updated_at = typedefs.auto_timestamp_s },
        { username = { type = "string", unique = true } },
        { custom_id = { type = "string", unique = true } },
        { tags = typedefs.tags },
    },
    entity_checks = { { at_least_one_of = { "custom_id", "username" } } },
}
