--- Configuration of the key-auth plugin, in Kong's layout.
-- @module plugins.key-auth.schema

local typedefs = require("gateway.schema.typedefs")

local function flag(default, description)
    return { type = "boolean", required = true, default = default, description = description }
end

local IDENTITY_REALM = {
    type = "record",
    fields = {
        {
            scope = {
                type = "string",
                one_of = { "cp", "realm" },
                supported = { "cp" },
                description = "Scope.",
            },
        },
        { id = { type = "string", description = "No effect." } },
        { region = { type = "string", description = "No effect." } },
    },
}

return {
    name = "key-auth",
    description = "Authenticates requests by an API key and identifies the consumer to the "
        .. "service.",
    fields = {
        -- Who asks is what the plugin finds out, so it cannot depend on it.
        { consumer = typedefs.no_consumer },
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                required = true,
                description = "Where keys are found, and handling of requests without one.",
                fields = {
                    {
                        key_names = {
                            type = "array",
                            required = true,
                            names_secrets = true,
                            -- Each request is searched for all of them.
                            len_max = 100,
                            elements = typedefs.header_name,
                            default = { "apikey" },
                            description = "Names of headers, query arguments and body fields that "
                                .. "can contain the key; the first one present is used. Header "
                                .. "names are case-insensitive and can have `-` for `_`; names in "
                                .. "the query and body must match exactly.",
                        },
                    },
                    {
                        hide_credentials = flag(
                            false,
                            "Remove every copy of the key from requests that are forwarded; the "
                                .. "rest of the query and of the body is unchanged, byte for byte."
                        ),
                    },
                    { anonymous = typedefs.anonymous },
                    { key_in_header = flag(true, "Look for the key in the headers.") },
                    {
                        key_in_query = flag(
                            true,
                            "Look for the key in the query, after the headers."
                        ),
                    },
                    {
                        key_in_body = flag(
                            false,
                            "Look for the key in the body, last. Supported types: "
                                .. "`application/x-www-form-urlencoded`, `application/json` "
                                .. "(outermost object) and `multipart/form-data`. The body is read "
                                .. "first. A body larger than `client_body_buffer_size` is not "
                                .. "searched, but is accepted if the key is elsewhere."
                        ),
                    },
                    {
                        run_on_preflight = flag(
                            true,
                            "Require a key for OPTIONS requests; if false, they pass without one."
                        ),
                    },
                    {
                        identity_realms = {
                            type = "array",
                            elements = IDENTITY_REALM,
                            description = "Where consumers are looked up. Only `cp`, this "
                                .. "gateway, is supported.",
                        },
                    },
                    { realm = typedefs.realm },
                },
            },
        },
    },
}
