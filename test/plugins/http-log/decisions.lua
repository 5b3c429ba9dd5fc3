--- What http-log decides: by hand (test/unit/decisions_spec.lua).

return {
    cases = {
        { { http_endpoint = "http://a.example" }, {}, "pass" },
    },
}
