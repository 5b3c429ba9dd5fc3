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
    description = "Which requests go to a service. A request has to meet each kind of condition "
        .. "that a route has: `hosts`, `paths`, `methods`, `headers`, `snis`.",
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
                description = "Protocols of its requests. With `https` alone, plain HTTP is "
                    .. "answered by `https_redirect_status_code`; `http` alone serves TLS, too.",
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
                description = "Answer to plain HTTP where `protocols` is `https` alone: 426 asks "
                    .. "for TLS, the others redirect to the same host and path by https, port "
                    .. "443.",
            },
        },
        {
            strip_path = {
                type = "boolean",
                required = true,
                default = true,
                description = "Remove the part of the path that matched before the request goes "
                    .. "to the service.",
            },
        },
        {
            preserve_host = {
                type = "boolean",
                required = true,
                default = false,
                description = "Send the Host header of the client to the upstream, not that of "
                    .. "the service or target.",
            },
        },
        {
            request_buffering = {
                type = "boolean",
                required = true,
                default = true,
                description = "Read the whole body before the upstream is asked. Otherwise it is "
                    .. "sent on as it comes, and a request whose body is under way is not tried "
                    .. "at another target.",
            },
        },
        {
            response_buffering = {
                type = "boolean",
                required = true,
                default = true,
                description = "Take the response from the upstream as fast as it comes, and keep "
                    .. "what the client has not read. Otherwise it is sent on as it comes, as "
                    .. "streams of events need it.",
            },
        },
        { tags = typedefs.tags },
        {
            service = {
                type = "foreign",
                reference = "services",
                description = "Service that gets the requests. Without one they are answered 503, "
                    .. "unless a plugin answers.",
            },
        },
        {
            snis = {
                type = "set",
                elements = typedefs.wildcard_host,
                description = "Server names of the TLS handshake, without a port; `*` may be the "
                    .. "first or the last character. Plain HTTP is matched without them.",
            },
        },
        {
            sources = typedefs.sources({
                supported = false,
                description = "Addresses of clients, for routes of TCP.",
            }),
        },
        {
            destinations = typedefs.destinations({
                supported = false,
                description = "Addresses of listeners, for routes of TCP.",
            }),
        },
        { methods = typedefs.methods({ description = "HTTP methods, in upper case." }) },
        {
            hosts = typedefs.hosts({
                description = "Hosts, with or without a port. `*` as the first or the last label "
                    .. "(`*.example.com`, `api.*`) stands for one label or more. 255 bytes at "
                    .. "most.",
            }),
        },
        {
            paths = typedefs.router_paths({
                description = "Prefixes of the path, normalised; or `~` and a regular expression "
                    .. "(PCRE), anchored where the path begins.",
            }),
        },
        {
            headers = typedefs.headers({
                description = "Headers that a request has to have, all of them, with the values "
                    .. "of each that count. Case does not matter; a value that begins with `~*` "
                    .. "is a regular expression. Not Host, which `hosts` has.",
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
                description = "Of regular expressions in `paths` that match, those of the route "
                    .. "with the highest win.",
            },
        },
        {
            path_handling = {
                type = "string",
                default = "v0",
                one_of = { "v0", "v1" },
                description = "How the service's path and what is left of the request's are "
                    .. "joined: `v0` with one slash between them, `v1` with one only where either "
                    .. "has it.",
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
