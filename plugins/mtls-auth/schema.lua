--- Configuration of the mtls-auth plugin: of Kong's layout what this version does, and `depth` and
-- `crl` of our own.
-- @module plugins.mtls-auth.schema

local crl = require("sluice.crl")
local typedefs = require("gateway.schema.typedefs")

return {
    name = "mtls-auth",
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
                fields = {
                    {
                        ca_certificates = {
                            type = "array",
                            required = true,
                            len_min = 1,
                            len_max = 100,
                            elements = typedefs.uuid({ reference = "ca_certificates" }),
                            description = "Ids of the CA certificates that a client's certificate "
                                .. "may be signed by.",
                        },
                    },
                    {
                        depth = {
                            type = "integer",
                            required = true,
                            default = 4,
                            between = { 0, 16 },
                            description = "Certificates that may stand between the client's and "
                                .. "the CA's.",
                        },
                    },
                    {
                        crl = {
                            type = "string",
                            custom_validator = crl.check,
                            description = "Revocation lists in PEM, one behind the other. Where "
                                .. "there is one, the issuer of each client's certificate has to "
                                .. "have a list that is in date; those of CAs above it count, too.",
                        },
                    },
                    {
                        skip_consumer_lookup = {
                            type = "boolean",
                            required = true,
                            default = true,
                            one_of = { true },
                            description = "Whether a certificate stands for no consumer: this "
                                .. "version looks none up.",
                        },
                    },
                    {
                        revocation_check_mode = {
                            type = "string",
                            required = true,
                            default = "SKIP",
                            one_of = { "SKIP" },
                            description = "Whether the places that a certificate names are asked "
                                .. "for its revocation: this version asks none. See `crl`.",
                        },
                    },
                },
            },
        },
    },
}
