--- Configuration of the access-log plugin.
-- @module plugins.access-log.schema

local typedefs = require("gateway.schema.typedefs")

return {
    name = "access-log",
    description = "Says which requests the access log has.",
    fields = {
        -- It runs before anybody knows who asks.
        { consumer = typedefs.no_consumer },
        { consumer_group = typedefs.no_consumer_group },
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                required = true,
                description = "Which requests the access log has.",
                fields = {
                    {
                        sample = {
                            type = "number",
                            required = true,
                            default = 1,
                            between = { 0, 1 },
                            description = "Share of the requests that are logged, chosen at "
                                .. "random: 0.01 is one of a hundred, 0 none, 1 all.",
                        },
                    },
                    {
                        errors = {
                            type = "boolean",
                            required = true,
                            default = true,
                            description = "Log all requests with a status of 400 or more, or "
                                .. "without one, whatever `sample` says.",
                        },
                    },
                },
            },
        },
    },
}
