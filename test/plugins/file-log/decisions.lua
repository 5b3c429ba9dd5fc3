--- What file-log decides: by hand (test/unit/decisions_spec.lua).

return {
    cases = {
        { { path = "/dev/null" }, {}, "pass" },
    },
}
