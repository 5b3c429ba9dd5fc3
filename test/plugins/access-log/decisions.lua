--- What access-log decides: by hand (test/unit/decisions_spec.lua).

return {
    cases = {
        {
            { sample = 0.5, errors = true },
            {},
            "pass",
            { sample = { share = 2 ^ 30, errors = 1 } },
        },
        { { sample = 1 }, {}, "pass", { sample = { share = 2 ^ 31, errors = 0 } } },
        { { sample = 0, errors = true }, {}, "pass", { sample = { share = 0, errors = 1 } } },
    },
}
