--- Configuration of the mtls-auth plugin: of Kong's layout what this version does, and `depth` and
-- `crl` of our own.
-- @module plugins.mtls-auth.schema

local crl = require("sluice.crl")
local typedefs = require("gateway.schema.typedefs")

return {
    name = "mtls-auth",
    description = "Lets requests pass whose client has a certificate of one of these CAs, and "
        .. "tells the service whose it is.",
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
                description = "Which certificates pass.",
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
                            description = "Ids of the CA certificates whose certificates pass. "
                                .. "The chain has to reach one of them that is its own issuer.",
                        },
                    },
                    {
                        depth = {
                            type = "integer",
                            required = true,
                            default = 4,
                            between = { 0, 16 },
                            description = "How many certificates may stand between that of the "
                                .. "client and that of the CA. Kong has no such field.",
                        },
                    },
                    {
                        crl = {
                            type = "string",
                            custom_validator = crl.check,
                            description = "Revocation lists in PEM, one behind the other. Where "
                                .. "there is one, the issuer of each certificate of a client has "
                                .. "to have a list, here or in a file of the setting `ssl_crl`. "
                                .. "Those of CAs above it count where they are there. Each has to "
                                .. "be in date and signed by its CA. Kong has no such field.",
                        },
                    },
                    {
                        skip_consumer_lookup = {
                            type = "boolean",
                            required = true,
                            default = true,
                            one_of = { true },
                            description = "Kong looks for a consumer by the names of the "
                                .. "certificate unless this is true. This version looks none up.",
                        },
                    },
                    {
                        revocation_check_mode = {
                            type = "string",
                            required = true,
                            default = "SKIP",
                            one_of = { "SKIP" },
                            description = "Kong asks the places that a certificate names for its "
                                .. "revocation. This version asks none: see `crl`.",
                        },
                    },
                },
            },
        },
    },
}
