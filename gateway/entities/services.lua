--- Schema of a service: where requests go.
-- @module gateway.entities.services

local cjson = require("cjson")
local text = require("gateway.schema.text")
local typedefs = require("gateway.schema.typedefs")

local EXAMPLE = [[
services:
  - name: orders
    url: https://orders.internal:8443/v1
    connect_timeout: 5000
    retries: 2
    tls_verify: true
    tags: [shop]
]]

local NULL = cjson.null

local function timeout(description)
    return typedefs.timeout({
        between = { 1, 2 ^ 31 - 2 },
        default = 60000,
        description = description,
    })
end

-- What only makes sense with TLS to the upstream.
local function only_with_tls(field)
    return {
        conditional = {
            if_field = "protocol",
            if_match = { not_one_of = { "https", "tls" } },
            then_field = field,
            then_match = { eq = NULL },
        },
    }
end

return {
    name = "services",
    description = "Where requests go: a host or an upstream, and how to talk to it.",
    example = EXAMPLE,
    primary_key = { "id" },
    endpoint_key = "name",
    -- what an id is made of where there is no name
    identity = { "protocol", "host", "port", "path" },
    fields = {
        { id = typedefs.uuid },
        { created_at = typedefs.created_at },
        { updated_at = typedefs.updated_at },
        { name = typedefs.utf8_name },
        {
            retries = {
                type = "integer",
                default = 5,
                between = { 0, 32767 },
                description = "How often a request is tried at another target or address after a "
                    .. "connection failed or timed out. Each is tried once, and a POST, PATCH or "
                    .. "LOCK that was sent is not repeated. Above 999 counts as 999.",
            },
        },
        {
            protocol = typedefs.protocol({
                required = true,
                default = "http",
                supported = { "http", "https" },
                description = "Protocol that is spoken to the upstream. WebSocket is part of both.",
            }),
        },
        {
            host = typedefs.host({
                required = true,
                description = "Name of an upstream entity, or else a host name or an IP address.",
            }),
        },
        {
            port = typedefs.port({
                required = true,
                default = 80,
                description = "Port of the host. Without effect where `host` names an upstream, "
                    .. "whose targets have ports.",
            }),
        },
        {
            path = typedefs.path({
                description = "Path that is put before that of the request. Characters that RFC "
                    .. "3986 allows in a path, percent-encoded where needed, and no `//`.",
            }),
        },
        {
            connect_timeout = timeout("Milliseconds to connect to the upstream, TLS included."),
        },
        { write_timeout = timeout("Milliseconds between two writes to the upstream.") },
        {
            read_timeout = timeout(
                "Milliseconds between two reads from the upstream. A WebSocket that is silent for "
                    .. "as long, both ways, is closed."
            ),
        },
        { tags = typedefs.tags },
        {
            client_certificate = {
                type = "foreign",
                reference = "certificates",
                description = "Certificate that is shown to an upstream that asks for one.",
            },
        },
        {
            tls_verify = {
                type = "boolean",
                description = "Verify the certificate of the upstream. Nothing is verified unless "
                    .. "this is true.",
            },
        },
        {
            tls_verify_depth = {
                type = "integer",
                between = { 0, 64 },
                description = "How many CA certificates may stand between the root and the "
                    .. "certificate of the upstream. 1 unless set.",
            },
        },
        {
            ca_certificates = {
                type = "array",
                elements = { type = "string", uuid = true, reference = "ca_certificates" },
                description = "Ids of the CA certificates that are trusted. Without them those of "
                    .. "the setting `proxy_ssl_trusted_certificate` are.",
            },
        },
        {
            enabled = {
                type = "boolean",
                required = true,
                default = true,
                description = "Whether its routes count. Those of a service that is off match "
                    .. "nothing.",
            },
        },
    },
    entity_checks = {
        only_with_tls("client_certificate"),
        only_with_tls("tls_verify"),
        only_with_tls("tls_verify_depth"),
        only_with_tls("ca_certificates"),
    },
    shorthand_fields = {
        {
            url = {
                type = "string",
                description = "`protocol`, `host`, `port` and `path` in one text, without user, "
                    .. "query and fragment. The port is 80, or 443 for https, unless it has one.",
                func = function(url)
                    local fields, err = text.url(url)
                    if not fields then
                        return nil, err
                    end
                    fields.path = fields.path or NULL
                    return fields
                end,
            },
        },
    },
}
