--- Configuration of the request-size-limiting plugin, in Kong's layout.
-- @module plugins.request-size-limiting.schema

local typedefs = require("gateway.schema.typedefs")

return {
    name = "request-size-limiting",
    description = "Rejects requests with a body larger than a limit.",
    fields = {
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                description = "The limit.",
                fields = {
                    {
                        allowed_payload_size = {
                            type = "integer",
                            default = 128,
                            description = "Maximum size of a body, in units of `size_unit`.",
                        },
                    },
                    {
                        size_unit = {
                            type = "string",
                            required = true,
                            default = "megabytes",
                            one_of = { "megabytes", "kilobytes", "bytes" },
                            description = "Unit of `allowed_payload_size`: a megabyte is 1,048,576 "
                                .. "bytes, a kilobyte 1,024.",
                        },
                    },
                    {
                        require_content_length = {
                            type = "boolean",
                            required = true,
                            default = false,
                            description = "Refuse requests without `Content-Length`, except those "
                                .. "with `Transfer-Encoding: chunked`.",
                        },
                    },
                },
            },
        },
    },
}
