--- Configuration of the access-log plugin.
-- @module plugins.access-log.schema

local typedefs = require("gateway.schema.typedefs")

return {
    name = "access-log",
    description = "Selects the requests that are written to the access log.",
    fields = {
        -- It runs before anybody knows who asks.
        { consumer = typedefs.no_consumer },
        { consumer_group = typedefs.no_consumer_group },
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                required = true,
                description = "Requests to write to the access log.",
                fields = {
                    {
                        sample = {
                            type = "number",
                            required = true,
                            default = 1,
                            between = { 0, 1 },
                            description = "Fraction of requests to log, sampled at random: 0.01 is "
                                .. "one in a hundred, 0 none, 1 all.",
                        },
                    },
                    {
                        errors = {
                            type = "boolean",
                            required = true,
                            default = true,
                            description = "Log all requests with status 400 or above, or without a "
                                .. "status, regardless of `sample`.",
                        },
                    },
                },
            },
        },
    },
}
