--- What key-auth decides: by hand (test/unit/decisions_spec.lua).

local KEY_AUTH = {
    key_names = { "apikey" },
    key_in_header = true,
    key_in_query = true,
    run_on_preflight = true,
    hide_credentials = true,
    realm = "here",
}

return {
    cases = {
        {
            KEY_AUTH,
            { method = "GET", query = "a=1&apikey=right", headers = {} },
            "pass",
            { query = "a=1" },
        },
        {
            KEY_AUTH,
            { method = "GET", query = false, headers = { "Accept", "*/*" } },
            "respond",
            {
                status = 401,
                message = "No API key found in request",
                challenge = 'Key realm="here"',
            },
        },
        {
            KEY_AUTH,
            { query = false, headers = { "APIKEY", "wrong" } },
            "respond",
            { message = "Unauthorized" },
        },
        { KEY_AUTH, { query = false }, "unknown", { unknown = "the headers" } },
        { KEY_AUTH, { headers = {} }, "unknown", { unknown = "the query" } },
    },
}
