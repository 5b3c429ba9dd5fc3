--- What cors decides: by hand (test/unit/decisions_spec.lua).

local lib = require("test.unit.support.core").lib

local patterns

local ORIGINS = { "http://a.com", "http://b.com" }

return {
    cases = {
        {
            { origins = ORIGINS, methods = { "GET" } },
            {
                method = "OPTIONS",
                headers = { "Origin", "http://b.com", "Access-Control-Request-Method", "GET" },
                own = "compiled",
            },
            "respond",
            {
                status = 200,
                headers = {
                    ["Access-Control-Allow-Origin"] = "http://b.com",
                    ["Access-Control-Allow-Methods"] = "GET",
                    Vary = "Origin",
                },
            },
        },
        {
            { origins = ORIGINS },
            { method = "GET", headers = { "Origin", "http://b.com" }, own = "compiled" },
            "pass",
        },
        {
            { origins = ORIGINS },
            { method = "GET", headers = { "Origin", "http://b.com" } },
            "unknown",
            { unknown = "the patterns" },
        },
        { { origins = ORIGINS }, { method = "OPTIONS" }, "unknown", { unknown = "the headers" } },
    },

    --- What it has compiled: patterns of all configurations.
    compiled = function()
        patterns = patterns or lib.sluice_core_regexes_create(2 ^ 20)
        return patterns
    end,
}
