--- Configuration of the bot-detection plugin, in Kong's layout.
-- @module plugins.bot-detection.schema

local pattern = require("plugins.bot-detection.pattern")
local typedefs = require("gateway.schema.typedefs")

local function patterns(description)
    return {
        type = "array",
        elements = { type = "string", is_regex = true, custom_validator = pattern.check },
        default = {},
        description = description,
    }
end

return {
    name = "bot-detection",
    description = "Refuses bots by the header User-Agent.",
    fields = {
        { consumer = typedefs.no_consumer },
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                description = "Who passes, and who does not.",
                fields = {
                    {
                        allow = patterns(
                            "Regular expressions: who matches one passes, even if it is a bot."
                        ),
                    },
                    { deny = patterns("Regular expressions: who matches one is refused.") },
                },
            },
        },
    },
}
