--- Configuration of the key-auth plugin, in Kong's layout.
-- @module plugins.key-auth.schema

local typedefs = require("gateway.schema.typedefs")

local function flag(default, description)
    return { type = "boolean", required = true, default = default, description = description }
end

return {
    name = "key-auth",
    description = "Lets requests pass that carry a key of a consumer, and tells the service who "
        .. "that is.",
    fields = {
        -- Who asks is what the plugin finds out, so it cannot depend on it.
        { consumer = typedefs.no_consumer },
        { consumer_group = typedefs.no_consumer_group },
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                required = true,
                description = "Where the key is, and what happens without one.",
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
                            description = "Names under which a request may carry its key; the "
                                .. "first that is there counts. In a header, case does not matter "
                                .. "and `-` may stand for `_`; in the query and the body the name "
                                .. "is exact.",
                        },
                    },
                    {
                        hide_credentials = flag(
                            false,
                            "Take every copy of a key out of a request that passes; the rest of "
                                .. "the query and of the body stays byte for byte what the client "
                                .. "sent."
                        ),
                    },
                    {
                        anonymous = {
                            type = "string",
                            description = "Id or username of the consumer that requests without a "
                                .. "valid key count as; without it they are refused. With several "
                                .. "authentication plugins that all have it, one of them is "
                                .. "enough.",
                        },
                    },
                    { key_in_header = flag(true, "Look for the key in the headers.") },
                    { key_in_query = flag(true, "Then look for it in the query.") },
                    {
                        key_in_body = flag(
                            false,
                            "Then look for it in the body, of type "
                                .. "`application/x-www-form-urlencoded`, `application/json` (the "
                                .. "outermost object) or `multipart/form-data`. The body is read "
                                .. "first; one that does not fit `client_body_buffer_size` is not "
                                .. "looked at, but passes where the key is elsewhere."
                        ),
                    },
                    {
                        run_on_preflight = flag(
                            true,
                            "Ask for a key on OPTIONS requests, too; otherwise they pass."
                        ),
                    },
                    {
                        realm = {
                            type = "string",
                            description = 'What `WWW-Authenticate: Key realm="..."` names.',
                        },
                    },
                },
            },
        },
    },
}
