--- Schema of a group of consumers.
-- @module gateway.entities.consumer_groups

local typedefs = require("gateway.schema.typedefs")

return {
    name = "consumer_groups",
    primary_key = { "id" },
    endpoint_key = "name",
    -- decK's files name the consumers of a group in it.
    links = { consumers = { kind = "consumer_group_consumers", field = "consumer" } },
    fields = {
        { id = typedefs.uuid },
        { created_at = typedefs.auto_timestamp_s },
        { updated_at = typedefs.auto_timestamp_s },
        { name = typedefs.utf8_name({ required = true }) },
        { tags = typedefs.tags },
    },
}
