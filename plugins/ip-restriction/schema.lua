--- Configuration of the ip-restriction plugin, in Kong's layout.
-- @module plugins.ip-restriction.schema

local typedefs = require("gateway.schema.typedefs")

local function ranges(description)
    return {
        type = "array",
        elements = typedefs.ip_or_cidr,
        description = description,
    }
end

local function check(config)
    local status = config.status
    if
        type(status) == "number" and (status < 400 or status > 599 or status ~= math.floor(status))
    then
        return nil, "status must be a whole number from 400 to 599"
    end
    return true
end

return {
    name = "ip-restriction",
    description = "Lets clients use a service or route, or not, by their IP addresses.",
    fields = {
        {
            protocols = typedefs.protocols({
                default = { "http", "https", "tcp", "tls", "grpc", "grpcs" },
            }),
        },
        {
            config = {
                type = "record",
                description = "Which addresses may pass.",
                fields = {
                    {
                        allow = ranges(
                            "IPv4 and IPv6 addresses, and ranges in CIDR notation, that may pass. "
                                .. "One of `allow` and `deny` must be set."
                        ),
                    },
                    {
                        deny = ranges(
                            "Addresses and ranges that may not pass, even if `allow` has them."
                        ),
                    },
                    {
                        status = {
                            type = "number",
                            required = false,
                            description = "Status of the response to a refused request, from 400 "
                                .. "to 599; 403 if not set.",
                        },
                    },
                    {
                        message = {
                            type = "string",
                            required = false,
                            description = "Message of that response. If not set, it names the "
                                .. "address.",
                        },
                    },
                },
                custom_validator = check,
            },
        },
    },
    entity_checks = {
        { at_least_one_of = { "config.allow", "config.deny" } },
    },
}
