--- What ip-restriction decides: by hand (test/unit/decisions_spec.lua).

return {
    cases = {
        {
            { allow = { "10.0.0.0/8" } },
            { address = "11.0.0.1" },
            "respond",
            { status = 403, message = "IP address not allowed: 11.0.0.1" },
        },
        { { allow = { "10.0.0.0/8" } }, { address = "10.1.2.3" }, "pass" },
        { { deny = { "::1" } }, {}, "unknown" },
    },
}
