--- What hmac-auth decides: by hand (test/unit/decisions_spec.lua).

return {
    cases = {
        {
            { algorithms = { "hmac-sha256" }, realm = "here" },
            { headers = {} },
            "respond",
            { status = 401, message = "Unauthorized", challenge = 'hmac realm="here"' },
        },
        { { algorithms = { "hmac-sha256" } }, {}, "unknown", { unknown = "a header" } },
    },

    --- Who reads a date.
    compiled = function(people)
        return people.date
    end,
}
