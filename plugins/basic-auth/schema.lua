--- Configuration of the basic-auth plugin, in Kong's layout.
-- @module plugins.basic-auth.schema

local typedefs = require("gateway.schema.typedefs")

return {
    name = "basic-auth",
    description = "Authenticates requests by a name and a password (RFC 7617) and "
        .. "identifies the consumer to the service.",
    fields = {
        { consumer = typedefs.no_consumer },
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                description = "Handling of credentials.",
                fields = {
                    { anonymous = typedefs.anonymous },
                    {
                        hide_credentials = {
                            type = "boolean",
                            required = true,
                            default = false,
                            description = "Remove the header with the credentials from requests "
                                .. "that are forwarded.",
                        },
                    },
                    { realm = typedefs.realm({ required = true, default = "service" }) },
                },
            },
        },
    },
}
