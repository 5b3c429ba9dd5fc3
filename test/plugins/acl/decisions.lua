--- What acl decides: by hand (test/unit/decisions_spec.lua).

return {
    cases = {
        {
            { allow = { "a" } },
            { credential = false, consumer = false, authenticated_groups = false },
            "respond",
            { status = 401, message = "Unauthorized" },
        },
        {
            { allow = { "a" } },
            { credential = false, consumer = false },
            "unknown",
            { unknown = "the groups" },
        },
        {
            { allow = { "a" } },
            { credential = false, consumer = false, authenticated_groups = { "b", "a" } },
            "pass",
        },
        {
            { deny = { "a" } },
            { credential = false, consumer = "1", authenticated_groups = { "a" }, acls = {} },
            "respond",
            { status = 403 },
        },
        {
            { deny = { "b" }, always_use_authenticated_groups = true },
            { credential = "1", consumer = "1", authenticated_groups = { "b" }, acls = { "a" } },
            "respond",
            { status = 403 },
        },
        {
            { allow = { "a" } },
            { credential = "1", consumer = "1", acls = { "b" } },
            "respond",
            { status = 403, message = "You cannot consume this service" },
        },
        { { allow = { "a" } }, { credential = "1", consumer = "1", acls = { "a" } }, "pass" },
        {
            { deny = { "a" } },
            { credential = "1", consumer = "1", acls = { "a" } },
            "respond",
            { status = 403 },
        },
        { { deny = { "a" } }, {}, "unknown", { unknown = "who asks" } },
    },
}
