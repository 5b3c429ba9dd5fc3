--- Configuration of the mtls-auth plugin: of Kong's layout what this version does, and `depth` and
-- `crl` of our own.
-- @module plugins.mtls-auth.schema

local crl = require("sluice.ffi.crl")
local typedefs = require("gateway.schema.typedefs")

return {
    name = "mtls-auth",
    description = "Authenticates clients by a TLS certificate of one of the given CAs and forwards "
        .. "its details to the service.",
    warnings = function(config, now)
        local out = {}
        for i, message in ipairs(config.crl and crl.warnings(config.crl, now) or {}) do
            out[i] = { field = "crl", message = message }
        end
        return out
    end,
    fields = {
        -- Who asks is what the plugin finds out, so it cannot depend on it.
        { consumer = typedefs.no_consumer },
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                required = true,
                description = "Certificates to accept.",
                fields = {
                    {
                        ca_certificates = {
                            type = "array",
                            required = true,
                            len_min = 1,
                            len_max = 100,
                            elements = typedefs.uuid({
                                reference = "ca_certificates",
                                description = "Id of a CA certificate.",
                            }),
                            description = "Ids of the trusted CA certificates. The chain must end "
                                .. "at one of them that is self-signed.",
                        },
                    },
                    {
                        depth = {
                            type = "integer",
                            required = true,
                            default = 4,
                            between = { 0, 16 },
                            description = "Maximum number of intermediate certificates between the "
                                .. "client certificate and the CA. Not available in Kong.",
                        },
                    },
                    {
                        crl = {
                            type = "string",
                            custom_validator = crl.check,
                            description = "Certificate revocation lists in PEM format, "
                                .. "concatenated. If set, the issuer of every client certificate "
                                .. "must have a list, here or in a file of the setting `ssl_crl`; "
                                .. "lists of CAs above it are checked if present. Each list must "
                                .. "be current and signed by its CA. Not available in Kong.",
                        },
                    },
                    {
                        skip_consumer_lookup = {
                            type = "boolean",
                            required = true,
                            default = true,
                            one_of = { true },
                            description = "Kong looks up a consumer by the names in the "
                                .. "certificate unless this is true. This version does not look up "
                                .. "consumers.",
                        },
                    },
                    {
                        revocation_check_mode = {
                            type = "string",
                            required = true,
                            default = "SKIP",
                            one_of = { "SKIP" },
                            description = "Kong checks the revocation services named in a "
                                .. "certificate. This version does not: use `crl`.",
                        },
                    },
                },
            },
        },
    },
}
