--- Configuration of the hmac-auth plugin, in Kong's layout.
-- @module plugins.hmac-auth.schema

local typedefs = require("gateway.schema.typedefs")

local ALGORITHMS = { "hmac-sha1", "hmac-sha256", "hmac-sha384", "hmac-sha512" }

local function flag(description)
    return { type = "boolean", required = true, default = false, description = description }
end

return {
    name = "hmac-auth",
    description = "Authenticates requests by an HMAC signature of their headers and identifies the "
        .. "consumer to the service.",
    fields = {
        { consumer = typedefs.no_consumer },
        { protocols = typedefs.protocols_http },
        {
            config = {
                type = "record",
                description = "What a signature must cover, and how it is checked.",
                fields = {
                    {
                        hide_credentials = flag(
                            "Remove the header with the signature from requests that are "
                                .. "forwarded."
                        ),
                    },
                    {
                        clock_skew = {
                            type = "number",
                            default = 300,
                            gt = 0,
                            description = "Maximum difference in seconds between the time of the "
                                .. "gateway and the `X-Date` or `Date` of the request.",
                        },
                    },
                    { anonymous = typedefs.anonymous },
                    {
                        validate_request_body = flag(
                            "Require a header `Digest` with the SHA-256 of the body. The body is "
                                .. "read first. A body larger than `client_body_buffer_size` is "
                                .. "refused."
                        ),
                    },
                    {
                        enforce_headers = {
                            type = "array",
                            elements = { type = "string" },
                            default = {},
                            len_max = 100,
                            description = "Headers that a signature must cover, spelt as in the "
                                .. "client's `headers`.",
                        },
                    },
                    {
                        algorithms = {
                            type = "array",
                            elements = { type = "string", one_of = ALGORITHMS },
                            default = ALGORITHMS,
                            description = "Accepted algorithms.",
                        },
                    },
                    { realm = typedefs.realm },
                },
            },
        },
    },
}
