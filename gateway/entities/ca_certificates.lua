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
    description = "A CA certificate. Services and configurations of plugins refer to the CAs "
        .. "that they trust.",
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
                description = "The certificate in PEM format: exactly one, of a CA. An expired "
                    .. "certificate is accepted with a warning.",
            }),
        },
        {
            cert_digest = {
                type = "string",
                unique = true,
                description = "SHA-256 digest of the certificate in hexadecimal. Always computed; "
                    .. "a given value is ignored.",
            },
        },
        { tags = typedefs.tags },
    },
    -- `(entity, now, given)` -> `{ field =, message = }` of what is right and of no use; `given`:
    -- as it stands in a file, nil elsewhere.
    warnings = warnings,
    follows = {
        cert_digest = function(certificate)
            return certificate.cert and x509.digest(certificate.cert)
        end,
    },
    entity_checks = {
        {
            custom_entity_check = {
                field_sources = { "cert" },
                description = "`cert` must be exactly one certificate, of a CA.",
                fn = function(certificate)
                    return x509.check_ca(certificate.cert)
                end,
            },
        },
    },
}
