--- Schema of a plugin's configuration; `config` comes from the plugin itself.
-- @module gateway.entities.plugins

local typedefs = require("gateway.schema.typedefs")

return {
    name = "plugins",
    primary_key = { "id" },
    endpoint_key = "instance_name",
    cache_key = { "name", "route", "service", "consumer", "consumer_group" },
    -- Ids in files are older than groups: those of plugins without one stay.
    optional_in_ids = "consumer_group",
    subschema_key = "name",
    fields = {
        { id = typedefs.uuid },
        { name = { type = "string", required = true } },
        { instance_name = typedefs.utf8_name },
        { created_at = typedefs.auto_timestamp_s },
        { updated_at = typedefs.auto_timestamp_s },
        { route = { type = "foreign", reference = "routes", on_delete = "cascade" } },
        { service = { type = "foreign", reference = "services", on_delete = "cascade" } },
        { consumer = { type = "foreign", reference = "consumers", on_delete = "cascade" } },
        {
            consumer_group = {
                type = "foreign",
                reference = "consumer_groups",
                on_delete = "cascade",
            },
        },
        { config = { type = "record" } },
        { protocols = typedefs.protocols },
        { enabled = { type = "boolean", required = true, default = true } },
        { ordering = { type = "any", supported = false } },
        { tags = typedefs.tags },
    },
    entity_checks = { { mutually_exclusive = { "consumer", "consumer_group" } } },
}
