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
-- Bytes of a host that a message repeats.
local MAX_SHOWN = 100
local MAX_PORT = 65535
-- What `url` stands for.
local OF_URL = { "protocol", "host", "port", "path" }

local function timeout(description)
    return typedefs.timeout({
        between = { 1, 2 ^ 31 - 2 },
        default = 60000,
        description = description,
    })
end

-- What to write where a host has a scheme, a port or a path beside it.
local function host_hint(value)
    local host, port = value:match("^([%w._-]+):(%d+)$")
    local path = value:match("^[%w._-]+:?%d*/([%w._/-]*)$")
    if #value > MAX_SHOWN then
        return nil
    elseif value:find("^https?://[%w._-][%w._:/-]*$") then
        return "; expected a host alone; write url: " .. value
    elseif path and not value:find(":/", 1, true) and not path:find("^%d") then
        return "; expected a host alone; write url: http://" .. value
    elseif host and tonumber(port) >= 1 and tonumber(port) <= MAX_PORT then
        return ("; write host: %s and port: %s"):format(host, port)
    end
    return nil
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

-- What is given beside a url that says otherwise: as in Kong, the url counts.
local function warnings(service, _, given)
    local list = {}
    for _, field in ipairs(given and type(given.url) == "string" and OF_URL or {}) do
        local value = given[field]
        if value ~= nil and value ~= NULL and value ~= service[field] then
            list[#list + 1] = { field = field, message = "ignored: url already sets it" }
        end
    end
    return list
end

return {
    name = "services",
    description = "Where requests are sent: a host or an upstream, with protocol, timeouts and TLS "
        .. "settings.",
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
                description = "Maximum number of retries at other targets or addresses after a "
                    .. "connection error or timeout. Each is tried once; a POST, PATCH or LOCK "
                    .. "that was already sent is not retried. Values above 999 count as 999.",
            },
        },
        {
            protocol = typedefs.protocol({
                required = true,
                default = "http",
                supported = { "http", "https" },
                description = "Protocol used to connect to the upstream. Both support WebSocket.",
            }),
        },
        {
            host = typedefs.host({
                required = true,
                hint = host_hint,
                description = "Name of an upstream entity, a host name or an IP address.",
            }),
        },
        {
            port = typedefs.port({
                required = true,
                default = 80,
                description = "Port of the host. Ignored if `host` is the name of an upstream, "
                    .. "whose targets have ports.",
            }),
        },
        {
            path = typedefs.path({
                description = "Path prepended to the path of the request. Characters allowed in "
                    .. "paths by RFC 3986, percent-encoded where needed, without `//`.",
            }),
        },
        {
            connect_timeout = timeout(
                "Timeout in milliseconds for connecting to the upstream, including TLS."
            ),
        },
        { write_timeout = timeout("Timeout in milliseconds between two writes to the upstream.") },
        {
            read_timeout = timeout(
                "Timeout in milliseconds between two reads from the upstream. A WebSocket that is "
                    .. "idle in both directions for this long is closed."
            ),
        },
        { tags = typedefs.tags },
        {
            client_certificate = {
                type = "foreign",
                reference = "certificates",
                description = "Client certificate for TLS connections to the upstream, sent if the "
                    .. "upstream requests one.",
            },
        },
        {
            tls_verify = {
                type = "boolean",
                description = "Verify the TLS certificate of the upstream. Not verified unless "
                    .. "true.",
            },
        },
        {
            tls_verify_depth = {
                type = "integer",
                between = { 0, 64 },
                description = "Maximum number of intermediate CA certificates between the root and "
                    .. "the certificate of the upstream. 1 if not set.",
            },
        },
        {
            ca_certificates = {
                type = "array",
                elements = { type = "string", uuid = true, reference = "ca_certificates" },
                description = "Ids of the trusted CA certificates. If not set, those of the "
                    .. "setting `proxy_ssl_trusted_certificate` are trusted.",
            },
        },
        {
            enabled = {
                type = "boolean",
                required = true,
                default = true,
                description = "Whether the service is active. Routes of a disabled service match "
                    .. "no requests.",
            },
        },
    },
    entity_checks = {
        only_with_tls("client_certificate"),
        only_with_tls("tls_verify"),
        only_with_tls("tls_verify_depth"),
        only_with_tls("ca_certificates"),
    },
    warnings = warnings,
    shorthand_fields = {
        {
            url = {
                type = "string",
                description = "Shorthand for `protocol`, `host`, `port` and `path`, without user, "
                    .. "query and fragment. Default port: 80, or 443 for https.",
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
