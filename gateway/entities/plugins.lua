--- Schema of a plugin's configuration; `config` comes from the plugin itself.
-- @module gateway.entities.plugins

local typedefs = require("gateway.schema.typedefs")

local EXAMPLE = [[
plugins:
  - name: http-log # for all requests
    config: { http_endpoint: "http://logs.internal:9880/" }
services:
  - name: orders
    url: http://orders.internal:8080
    plugins:
      - name: key-auth # for those of the service
consumers:
  - username: alice
    plugins:
      - name: rate-limiting # for those of the consumer
        instance_name: alices-limits
        config: { minute: 100, policy: local }
]]

return {
    name = "plugins",
    description = "A configuration of a plugin. It runs for all requests, or for those of the "
        .. "route, service, consumer or group that it is bound to. For one request at most one "
        .. "configuration of a plugin runs: that with the most specific scope.",
    example = EXAMPLE,
    primary_key = { "id" },
    endpoint_key = "instance_name",
    cache_key = { "name", "route", "service", "consumer", "consumer_group" },
    -- Ids in files are older than groups: those of plugins without one stay.
    optional_in_ids = "consumer_group",
    subschema_key = "name",
    fields = {
        { id = typedefs.uuid },
        {
            name = {
                type = "string",
                required = true,
                description = "The plugin: a bundled one, or one that the setting `plugins` names.",
            },
        },
        {
            instance_name = typedefs.utf8_name({
                description = "Name of this configuration, which paths take in place of the id. "
                    .. "Characters as of other names.",
            }),
        },
        { created_at = typedefs.created_at },
        { updated_at = typedefs.updated_at },
        {
            route = {
                type = "foreign",
                reference = "routes",
                on_delete = "cascade",
                description = "Route that it is bound to.",
            },
        },
        {
            service = {
                type = "foreign",
                reference = "services",
                on_delete = "cascade",
                description = "Service that it is bound to.",
            },
        },
        {
            consumer = {
                type = "foreign",
                reference = "consumers",
                on_delete = "cascade",
                description = "Consumer that it is bound to.",
            },
        },
        {
            consumer_group = {
                type = "foreign",
                reference = "consumer_groups",
                on_delete = "cascade",
                description = "Group of consumers that it is bound to.",
            },
        },
        {
            config = {
                type = "record",
                description = "What the plugin is to do: the fields of its own schema.",
            },
        },
        { protocols = typedefs.protocols },
        {
            enabled = {
                type = "boolean",
                required = true,
                default = true,
                description = "Whether it runs. One that is off does not hide one with a less "
                    .. "specific scope.",
            },
        },
        {
            ordering = {
                type = "any",
                supported = false,
                description = "Other order of plugins than by their priorities.",
            },
        },
        { tags = typedefs.tags },
    },
    entity_checks = { { mutually_exclusive = { "consumer", "consumer_group" } } },
}
