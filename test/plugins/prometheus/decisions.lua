--- What prometheus decides: by hand (test/unit/decisions_spec.lua).

return {
    cases = {
        { { latency_metrics = true }, {}, "pass" },
    },
}
