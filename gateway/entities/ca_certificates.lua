--- Schema of a CA certificate: one that upstreams' certificates may be signed by.
-- @module gateway.entities.ca_certificates

local typedefs = require("gateway.schema.typedefs")
local x509 = require("gateway.schema.x509")

local function warnings(certificate, now)
    local ok, why = x509.check_dates(certificate.cert, now)
    return ok and {} or { { field = "cert", message = why } }
end

return {
    name = "ca_certificates",
    primary_key = { "id" },
    -- what an id is made of
    identity = { "cert" },
    fields = {
        { id = typedefs.uuid },
        { created_at = typedefs.auto_timestamp_s },
        { updated_at = typedefs.auto_timestamp_s },
        { cert = typedefs.certificate({ required = true }) },
        { cert_digest = { type = "string", unique = true } },
        { tags = typedefs.tags },
    },
    -- `(entity, now)` -> `{ field =, message = }` of what is right and of no use.
    warnings = warnings,
    transformations = {
        {
            input = { "cert" },
            on_write = function(cert)
                return { cert_digest = x509.digest(cert) }
            end,
        },
    },
    entity_checks = {
        {
            custom_entity_check = {
                field_sources = { "cert" },
                fn = function(certificate)
                    return x509.check_ca(certificate.cert)
                end,
            },
        },
    },
}
