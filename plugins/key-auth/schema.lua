--- Configuration of the key-auth plugin, in Kong's layout.
-- @module plugins.key-auth.schema

local typedefs = require("gateway.schema.typedefs")

local function flag(default, description)
    return { type = "boolean", required = true, default = default, description = description }
end

return {
    name = "key-auth",
    fields = {
        -- Who asks is what the plugin finds out, so it cannot depend on it.
        { consumer = typedefs.no_consumer },
        { consumer_group = typedefs.no_consumer_group },
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                required = true,
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
                            description = "Names under which a request may carry its key, as a "
                                .. "header, a query argument or a field of the body; the first "
                                .. "that is there counts.",
                        },
                    },
                    {
                        hide_credentials = flag(
                            false,
                            "Take the key out of the request before it goes to the service."
                        ),
                    },
                    {
                        anonymous = {
                            type = "string",
                            description = "Id or username of the consumer that requests without "
                                .. "a valid key count as. Without it they are refused.",
                        },
                    },
                    { key_in_header = flag(true, "Look for the key in the request headers.") },
                    { key_in_query = flag(true, "Look for the key in the query arguments.") },
                    {
                        key_in_body = flag(
                            false,
                            "Look for the key in a body of type application/"
                                .. "x-www-form-urlencoded, application/json or "
                                .. "multipart/form-data that fits client_body_buffer_size."
                        ),
                    },
                    {
                        run_on_preflight = flag(
                            true,
                            "Ask for a key on OPTIONS requests too; otherwise they pass."
                        ),
                    },
                    {
                        realm = {
                            type = "string",
                            description = "Realm that the WWW-Authenticate header names.",
                        },
                    },
                },
            },
        },
    },
}
