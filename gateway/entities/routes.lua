--- Schema of a route: which requests go to a service.
-- @module gateway.entities.routes

local text = require("gateway.schema.text")
local typedefs = require("gateway.schema.typedefs")

local EXAMPLE = [[
services:
  - name: orders
    url: http://orders.internal:8080
    routes:
      - name: orders
        hosts: [api.example.com, "*.shop.example.com"]
        paths: [/orders, "~/v[0-9]+/orders"]
        methods: [GET, POST]
        headers: { x-tier: [gold, silver] }
        protocols: [https]
        https_redirect_status_code: 308
]]

return {
    name = "routes",
    description = "Selects the requests that are sent to a service. A request must match every "
        .. "kind of condition that the route has: `hosts`, `paths`, `methods`, `headers`, `snis`.",
    example = EXAMPLE,
    primary_key = { "id" },
    endpoint_key = "name",
    -- what an id is made of where there is no name
    identity = { "service", "protocols", "methods", "hosts", "paths", "headers" },
    fields = {
        { id = typedefs.uuid },
        { created_at = typedefs.created_at },
        { updated_at = typedefs.updated_at },
        { name = typedefs.utf8_name },
        {
            protocols = {
                type = "set",
                len_min = 1,
                required = true,
                default = { "http", "https" },
                elements = typedefs.protocol({ supported = { "http", "https" } }),
                description = "Protocols of the route. With only `https`, plain HTTP is answered "
                    .. "with `https_redirect_status_code`; `http` also matches TLS.",
                mutually_exclusive_subsets = {
                    { "http", "https" },
                    { "tcp", "tls", "udp" },
                    { "tls_passthrough" },
                    { "grpc", "grpcs" },
                },
            },
        },
        {
            https_redirect_status_code = {
                type = "integer",
                one_of = { 426, 301, 302, 307, 308 },
                default = 426,
                required = true,
                description = "Response to plain HTTP if `protocols` is only `https`: 426 requires "
                    .. "TLS; the others lead to the same host and path with https on port 443.",
            },
        },
        {
            strip_path = {
                type = "boolean",
                required = true,
                default = true,
                description = "Remove the matched prefix from the path before the request is sent "
                    .. "to the service.",
            },
        },
        {
            preserve_host = {
                type = "boolean",
                required = true,
                default = false,
                description = "Send the client's Host header to the upstream instead of that of "
                    .. "the service or target.",
            },
        },
        {
            request_buffering = {
                type = "boolean",
                required = true,
                default = true,
                description = "Read the whole request body before connecting to the upstream. "
                    .. "Otherwise it is streamed, and a request whose body is already being sent "
                    .. "is not retried.",
            },
        },
        {
            response_buffering = {
                type = "boolean",
                required = true,
                default = true,
                description = "Read the response from the upstream as fast as possible and buffer "
                    .. "it for slow clients. Otherwise it is streamed, as required for server-sent "
                    .. "events.",
            },
        },
        { tags = typedefs.tags },
        {
            service = {
                type = "foreign",
                reference = "services",
                description = "Service that receives the requests. Without a service the response "
                    .. "is 503, unless a plugin responds.",
            },
        },
        {
            snis = {
                type = "set",
                elements = typedefs.wildcard_host,
                description = "Server names of the TLS handshake, without a port; `*` is allowed "
                    .. "as the first or last character. Ignored for plain HTTP.",
            },
        },
        {
            sources = typedefs.sources({
                supported = false,
                description = "Client addresses, for TCP routes.",
            }),
        },
        {
            destinations = typedefs.destinations({
                supported = false,
                description = "Listener addresses, for TCP routes.",
            }),
        },
        { methods = typedefs.methods({ description = "HTTP methods in uppercase." }) },
        {
            hosts = typedefs.hosts({
                description = "Hosts, with or without a port. `*` as the first or last label "
                    .. "(`*.example.com`, `api.*`) matches one or more labels. At most 255 bytes.",
            }),
        },
        {
            paths = typedefs.router_paths({
                description = "Prefixes of the normalised path, or regular expressions (PCRE) that "
                    .. "start with `~`, anchored at the beginning of the path.",
            }),
        },
        {
            headers = typedefs.headers({
                description = "Headers that a request must have, with the accepted values of each. "
                    .. "Case-insensitive; a value that starts with `~*` is a regular expression. "
                    .. "Use `hosts` for the Host header.",
                values = {
                    type = "array",
                    elements = { type = "string", custom_validator = text.header_value },
                },
                keys = typedefs.header_name({
                    match_none = {
                        {
                            pattern = "^[Hh][Oo][Ss][Tt]$",
                            err = "cannot contain 'host' header, which must be specified "
                                .. "in the 'hosts' attribute",
                        },
                    },
                }),
            }),
        },
        {
            regex_priority = {
                type = "integer",
                default = 0,
                description = "Priority of regular expressions in `paths`: if several match, the "
                    .. "route with the highest value wins.",
            },
        },
        {
            path_handling = {
                type = "string",
                default = "v0",
                one_of = { "v0", "v1" },
                description = "How the path of the service and the remaining path of the request "
                    .. "are joined: `v0` with exactly one slash in between, `v1` with a slash only "
                    .. "if one of them has it.",
            },
        },
    },
    entity_checks = {
        {
            conditional_at_least_one_of = {
                if_field = "protocols",
                if_match = { contains = "https" },
                then_at_least_one_of = { "methods", "hosts", "headers", "paths", "snis" },
                then_err = "must set one of %s when 'protocols' is 'https'",
                else_match = { contains = "http" },
                else_then_at_least_one_of = { "methods", "hosts", "headers", "paths" },
                else_then_err = "must set one of %s when 'protocols' is 'http'",
            },
        },
    },
}
