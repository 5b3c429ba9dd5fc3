--- Schema of a CA certificate: one that upstreams' certificates may be signed by.
-- @module gateway.entities.ca_certificates

local typedefs = require("gateway.schema.typedefs")
local x509 = require("gateway.schema.x509")

local EXAMPLE = [[
ca_certificates:
  - id: 3f1f1d0c-8c57-4b5e-9a1d-3b0d2c3f5a10
    cert: |
      -----BEGIN CERTIFICATE-----
      MIIBLjCB1KADAgECAgEBMAoGCCqGSM49BAMCMBUxEzARBgNVBAMMCkV4YW1wbGUg
      Q0EwIBcNMjAwMTAxMDAwMDAwWhgPMjEwMDAxMDEwMDAwMDBaMBUxEzARBgNVBAMM
      CkV4YW1wbGUgQ0EwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASYnsrYP74G6wu8
      LgC3WhZKtQX7trU3N63d+HfkhCLVHORIcON3zZnis9eH8GWsLvz637hYGk1DXtN8
      Kjd32U1uoxMwETAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0kAMEYCIQCu
      5TfEF7nf+Egz75G2EPFLCf281aIkmXAf/0nH92PXjAIhAK5HVDm2lApkploziGx9
      KTjDfgQNM8DYInjuGCwHPyuF
      -----END CERTIFICATE-----
services:
  - name: orders
    url: https://orders.internal
    tls_verify: true
    ca_certificates: [3f1f1d0c-8c57-4b5e-9a1d-3b0d2c3f5a10]
]]

local function warnings(certificate, now)
    local ok, why = x509.check_dates(certificate.cert, now)
    return ok and {} or { { field = "cert", message = why } }
end

return {
    name = "ca_certificates",
    description = "The certificate of a CA. Services trust those that they name, as "
        .. "configurations of mtls-auth do.",
    example = EXAMPLE,
    primary_key = { "id" },
    -- what an id is made of
    identity = { "cert" },
    fields = {
        { id = typedefs.uuid },
        { created_at = typedefs.created_at },
        { updated_at = typedefs.updated_at },
        {
            cert = typedefs.certificate({
                required = true,
                description = "The certificate in PEM: one, which may sign others. One that has "
                    .. "expired is taken, with a warning.",
            }),
        },
        {
            cert_digest = {
                type = "string",
                unique = true,
                description = "SHA-256 of the certificate, in hexadecimal digits. It is computed, "
                    .. "whatever is given.",
            },
        },
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
                description = "`cert` has to be one certificate, and of a CA.",
                fn = function(certificate)
                    return x509.check_ca(certificate.cert)
                end,
            },
        },
    },
}
