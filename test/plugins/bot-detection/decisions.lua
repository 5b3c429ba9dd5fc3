--- What bot-detection decides: by hand (test/unit/decisions_spec.lua).

local lib = require("test.unit.support.core").lib

local patterns

return {
    cases = {
        { {}, { headers = {} }, "pass" },
        { {}, { headers = { "User-Agent", "BUbiNG" } }, "respond", { status = 403 } },
        {
            {},
            { headers = { "User-Agent", "a", "User-Agent", "b" } },
            "respond",
            { status = 400 },
        },
        { {}, {}, "unknown", { unknown = "the headers" } },
    },

    --- What it has compiled: patterns of all configurations.
    compiled = function()
        patterns = patterns or lib.sluice_core_regexes_create(2 ^ 20)
        return patterns
    end,
}
