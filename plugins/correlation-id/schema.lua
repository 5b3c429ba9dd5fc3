--- Configuration of the correlation-id plugin, in Kong's layout.
-- @module plugins.correlation-id.schema

local typedefs = require("gateway.schema.typedefs")

-- By these a message ends, or a connection: in a response a client's would make two of one.
local FRAMING = {
    ["connection"] = true,
    ["content-length"] = true,
    ["host"] = true,
    ["keep-alive"] = true,
    ["te"] = true,
    ["trailer"] = true,
    ["transfer-encoding"] = true,
    ["upgrade"] = true,
}

local function check(config)
    local name = config.header_name
    if type(name) == "string" and FRAMING[name:lower():gsub("_", "-")] then
        return nil, ("header_name must not be '%s', by which messages end"):format(name)
    end
    return true
end

return {
    name = "correlation-id",
    description = "Gives each request an id in a header and in the entries of log plugins.",
    fields = {
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                description = "Where the id stands, and what it looks like.",
                fields = {
                    {
                        header_name = typedefs.header_name({
                            default = "Kong-Request-ID",
                            description = "Header that has the id. One that a client sends is "
                                .. "kept.",
                        }),
                    },
                    {
                        generator = {
                            type = "string",
                            required = true,
                            default = "uuid#counter",
                            one_of = { "uuid", "uuid#counter", "tracker" },
                            description = "How ids are made; the page has their forms.",
                        },
                    },
                    {
                        echo_downstream = {
                            type = "boolean",
                            required = true,
                            default = false,
                            description = "Send the header to the client, too.",
                        },
                    },
                },
                custom_validator = check,
            },
        },
    },
}
