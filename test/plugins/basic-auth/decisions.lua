--- What basic-auth decides: by hand (test/unit/decisions_spec.lua).

return {
    cases = {
        {
            { realm = "here" },
            { headers = {} },
            "respond",
            { status = 401, message = "Unauthorized", challenge = 'Basic realm="here"' },
        },
        { { realm = "here" }, {}, "unknown", { unknown = "a header" } },
    },
}
