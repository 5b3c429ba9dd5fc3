--- Schema of a service: where requests go.
-- @module gateway.entities.services

local cjson = require("cjson")
local text = require("gateway.schema.text")
local typedefs = require("gateway.schema.typedefs")

local NULL = cjson.null

local timeout = typedefs.timeout({ between = { 1, 2 ^ 31 - 2 }, default = 60000 })

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
    primary_key = { "id" },
    endpoint_key = "name",
    -- what an id is made of where there is no name
    identity = { "protocol", "host", "port", "path" },
    fields = {
        { id = typedefs.uuid },
        { created_at = typedefs.auto_timestamp_s },
        { updated_at = typedefs.auto_timestamp_s },
        { name = typedefs.utf8_name },
        { retries = { type = "integer", default = 5, between = { 0, 32767 } } },
        {
            protocol = typedefs.protocol({
                required = true,
                default = "http",
                supported = { "http", "https" },
            }),
        },
        { host = typedefs.host({ required = true }) },
        { port = typedefs.port({ required = true, default = 80 }) },
        { path = typedefs.path },
        { connect_timeout = timeout },
        { write_timeout = timeout },
        { read_timeout = timeout },
        { tags = typedefs.tags },
        {
            client_certificate = {
                type = "foreign",
                reference = "certificates",
            },
        },
        { tls_verify = { type = "boolean" } },
        { tls_verify_depth = { type = "integer", between = { 0, 64 } } },
        {
            ca_certificates = {
                type = "array",
                elements = { type = "string", uuid = true, reference = "ca_certificates" },
            },
        },
        { enabled = { type = "boolean", required = true, default = true } },
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
