--- What redirect decides: by hand (test/unit/decisions_spec.lua).

local REDIRECT = { status_code = 302, location = "http://A.com/x#y", keep_incoming_path = true }

return {
    cases = {
        {
            { status_code = 301, location = "http://a.com/x" },
            {},
            "respond",
            { status = 301, headers = { Location = "http://a.com/x" } },
        },
        {
            REDIRECT,
            { path = "/a b", query = "c=d" },
            "respond",
            { status = 302, headers = { Location = "http://a.com/a%20b?c=d#y" } },
        },
        { REDIRECT, { path = "/" }, "unknown", { unknown = "the query" } },
    },
}
