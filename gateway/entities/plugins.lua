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

-- Routes of Kong Enterprise have these protocols, none has here.
local WITHOUT_EFFECT = { ws = true, wss = true }

return {
    name = "plugins",
    description = "A configuration of a plugin. It applies to all requests, or to those of the "
        .. "route, service, consumer or consumer group that it is bound to. For each request, at "
        .. "most one configuration of a plugin runs: the one with the most specific scope.",
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
                description = "Name of the plugin: a bundled one, or one listed in the setting "
                    .. "`plugins`.",
            },
        },
        {
            instance_name = typedefs.utf8_name({
                description = "Name of this configuration, which can be used instead of the id in "
                    .. "paths. Same characters as other names.",
            }),
        },
        { created_at = typedefs.created_at },
        { updated_at = typedefs.updated_at },
        {
            route = {
                type = "foreign",
                reference = "routes",
                on_delete = "cascade",
                description = "Route that the plugin is bound to.",
            },
        },
        {
            service = {
                type = "foreign",
                reference = "services",
                on_delete = "cascade",
                description = "Service that the plugin is bound to.",
            },
        },
        {
            consumer = {
                type = "foreign",
                reference = "consumers",
                on_delete = "cascade",
                description = "Consumer that the plugin is bound to.",
            },
        },
        {
            consumer_group = {
                type = "foreign",
                reference = "consumer_groups",
                on_delete = "cascade",
                description = "Consumer group that the plugin is bound to.",
            },
        },
        {
            config = {
                type = "record",
                description = "Configuration of the plugin: the fields of its schema.",
            },
        },
        { protocols = typedefs.protocols },
        {
            enabled = {
                type = "boolean",
                required = true,
                default = true,
                description = "Whether the plugin runs. A disabled configuration does not override "
                    .. "one with a less specific scope.",
            },
        },
        {
            ordering = {
                type = "any",
                supported = false,
                description = "Execution order of plugins, if other than by priority.",
            },
        },
        { tags = typedefs.tags },
    },
    warnings = function(plugin)
        for _, protocol in ipairs(plugin.protocols or {}) do
            if WITHOUT_EFFECT[protocol] then
                local message = ("'%s' has no effect: no route has this protocol"):format(protocol)
                return { { field = "protocols", message = message } }
            end
        end
        return {}
    end,
    entity_checks = { { mutually_exclusive = { "consumer", "consumer_group" } } },
}
