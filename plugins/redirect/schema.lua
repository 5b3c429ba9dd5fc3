--- Configuration of the redirect plugin, in Kong's layout.
-- @module plugins.redirect.schema

local address = require("sluice.address")
local typedefs = require("gateway.schema.typedefs")

local function check_location(url)
    if url:find("[%c ]") then
        return nil, "must not have blanks or control characters"
    end
    local parsed, err = address.parse_url(url)
    return parsed ~= nil or nil, err
end

local function check(config)
    if config.status_code < 200 then
        return nil, "status_code must be at least 200: clients wait for more after a lower one"
    end
    return true
end

return {
    name = "redirect",
    description = "Redirects clients to another URL; nothing is sent to the service.",
    fields = {
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                description = "Where clients are sent.",
                fields = {
                    {
                        status_code = {
                            type = "integer",
                            required = true,
                            default = 301,
                            between = { 100, 599 },
                            description = "Status of the response, at least 200.",
                        },
                    },
                    {
                        location = typedefs.url({
                            required = true,
                            custom_validator = check_location,
                            description = "URL that clients are sent to, with scheme and host.",
                        }),
                    },
                    {
                        keep_incoming_path = {
                            type = "boolean",
                            default = false,
                            description = "Take path and query of the request in place of those of "
                                .. "`location`.",
                        },
                    },
                },
                custom_validator = check,
            },
        },
    },
}
