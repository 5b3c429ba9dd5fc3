--- Schema of a route: which requests go to a service.
-- @module gateway.entities.routes

local text = require("gateway.schema.text")
local typedefs = require("gateway.schema.typedefs")

return {
    name = "routes",
    primary_key = { "id" },
    endpoint_key = "name",
    -- what an id is made of where there is no name
    identity = { "service", "protocols", "methods", "hosts", "paths", "headers" },
    fields = {
        { id = typedefs.uuid },
        { created_at = typedefs.auto_timestamp_s },
        { updated_at = typedefs.auto_timestamp_s },
        { name = typedefs.utf8_name },
        {
            protocols = {
                type = "set",
                len_min = 1,
                required = true,
                default = { "http", "https" },
                elements = typedefs.protocol({ supported = { "http", "https" } }),
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
            },
        },
        { strip_path = { type = "boolean", required = true, default = true } },
        { preserve_host = { type = "boolean", required = true, default = false } },
        { request_buffering = { type = "boolean", required = true, default = true } },
        { response_buffering = { type = "boolean", required = true, default = true } },
        { tags = typedefs.tags },
        { service = { type = "foreign", reference = "services" } },
        { snis = { type = "set", elements = typedefs.wildcard_host } },
        { sources = typedefs.sources({ supported = false }) },
        { destinations = typedefs.destinations({ supported = false }) },
        { methods = typedefs.methods },
        { hosts = typedefs.hosts },
        { paths = typedefs.router_paths },
        {
            headers = typedefs.headers({
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
        { regex_priority = { type = "integer", default = 0 } },
        { path_handling = { type = "string", default = "v0", one_of = { "v0", "v1" } } },
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
