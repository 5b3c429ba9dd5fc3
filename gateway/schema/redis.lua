--- `kong.tools.redis.schema`: how plugins' configurations name a Redis server.
-- @module gateway.schema.redis

local typedefs = require("gateway.schema.typedefs")

local TIMEOUT_MS = 2000

return {
    config_schema = {
        type = "record",
        description = "The Redis server.",
        fields = {
            { host = typedefs.host({ description = "Name or address of the server." }) },
            { port = typedefs.port({ default = 6379, description = "Port of the server." }) },
            {
                timeout = typedefs.timeout({
                    default = TIMEOUT_MS,
                    description = "Timeout in milliseconds to connect, to send and to receive.",
                }),
            },
            {
                username = {
                    type = "string",
                    referenceable = true,
                    description = "User, of Redis 6 and later.",
                },
            },
            {
                password = {
                    type = "string",
                    referenceable = true,
                    encrypted = true,
                    len_min = 0,
                    description = "Password; without one no authentication is tried.",
                },
            },
            {
                database = {
                    type = "integer",
                    default = 0,
                    description = "Number of the database.",
                },
            },
            {
                ssl = {
                    type = "boolean",
                    required = false,
                    default = false,
                    description = "Whether to connect with TLS.",
                },
            },
            {
                ssl_verify = {
                    type = "boolean",
                    required = false,
                    default = false,
                    description = "Whether to verify the certificate of the server.",
                },
            },
            {
                server_name = typedefs.sni({
                    required = false,
                    description = "Name that TLS asks the server for, and looks for in its "
                        .. "certificate.",
                }),
            },
        },
    },
}
