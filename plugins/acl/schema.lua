--- Configuration of the acl plugin, in Kong's layout.
-- @module plugins.acl.schema

local typedefs = require("gateway.schema.typedefs")

local GROUPS = { "config.allow", "config.deny" }

local function groups(description)
    return { type = "array", elements = { type = "string" }, description = description }
end

local function flag(description)
    return { type = "boolean", required = true, default = false, description = description }
end

return {
    name = "acl",
    description = "Allows or denies access to a service or route by the groups of the consumer.",
    fields = {
        { consumer = typedefs.no_consumer },
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                description = "The groups that are allowed or denied.",
                fields = {
                    {
                        allow = groups(
                            "Groups that are allowed to use the service or route. One of `allow` "
                                .. "and `deny` must be set."
                        ),
                    },
                    { deny = groups("Groups that are denied access to the service or route.") },
                    {
                        hide_groups_header = flag(
                            "Send neither `X-Consumer-Groups` nor `X-Authenticated-Groups` to the "
                                .. "upstream."
                        ),
                    },
                    {
                        always_use_authenticated_groups = flag(
                            "Use groups determined by an authentication plugin, if there are any, "
                                .. "also of a consumer with a credential. No bundled plugin "
                                .. "determines groups; a Lua plugin does, by "
                                .. "`kong.ctx.shared.authenticated_groups`."
                        ),
                    },
                },
            },
        },
    },
    entity_checks = {
        { only_one_of = GROUPS },
        { at_least_one_of = GROUPS },
    },
}
