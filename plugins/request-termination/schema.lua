--- Configuration of the request-termination plugin, in Kong's layout.
-- @module plugins.request-termination.schema

local typedefs = require("gateway.schema.typedefs")

local function is_given(value)
    return type(value) == "string" and value ~= ""
end

local function check(config)
    local has_body, has_type = is_given(config.body), is_given(config.content_type)
    if is_given(config.message) and (has_body or has_type) then
        return nil, "message cannot be used with content_type or body"
    elseif has_type and not has_body then
        return nil, "content_type requires a body"
    elseif config.echo and has_body then
        return nil, "echo cannot be used with content_type and body"
    elseif has_type and config.content_type:find("%c") then
        return nil, "content_type must not have control characters"
    elseif config.status_code < 200 then
        return nil, "status_code must be at least 200: clients wait for more after a lower one"
    end
    return true
end

return {
    name = "request-termination",
    description = "Answers requests with a status and a text of your own; nothing is sent to the "
        .. "service.",
    fields = {
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                description = "What is answered, and to which requests.",
                fields = {
                    {
                        status_code = {
                            type = "integer",
                            required = true,
                            default = 503,
                            between = { 100, 599 },
                            description = "Status of the response, at least 200.",
                        },
                    },
                    {
                        message = {
                            type = "string",
                            description = 'Message, sent as JSON: `{"message": ...}`. If neither '
                                .. "it nor `body` is set, the status decides.",
                        },
                    },
                    {
                        content_type = {
                            type = "string",
                            description = "Content type of `body`. If not set, the response "
                                .. "has none.",
                        },
                    },
                    {
                        body = {
                            type = "string",
                            description = "Body of the response, sent unchanged.",
                        },
                    },
                    {
                        echo = {
                            type = "boolean",
                            required = true,
                            default = false,
                            description = "Answer with a JSON description of the request, for "
                                .. "debugging.",
                        },
                    },
                    {
                        trigger = typedefs.header_name({
                            description = "Answer only requests with a header or a query parameter "
                                .. "of this name; others are forwarded.",
                        }),
                    },
                },
                custom_validator = check,
            },
        },
    },
}
