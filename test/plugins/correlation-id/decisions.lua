--- What correlation-id decides: by hand (test/unit/decisions_spec.lua).

local core = require("test.unit.support.core")

local ffi, lib = core.ffi, core.lib

local made

-- As sluice_correlation_id_own_t has it.
local own = ffi.new(
    "struct { int (*make)(void *own, uint32_t generator, sluice_core_text_t *id); }",
    function(_, _, id)
        id.data, id.length = made, #made
        return lib.SLUICE_FACT_OK
    end
)

return {
    cases = {
        {
            { header_name = "X-Id", generator = "uuid" },
            { headers = { "x-id", "mine" } },
            "pass",
            { logged = "mine" },
        },
        {
            { header_name = "X-Id", generator = "uuid" },
            { headers = {} },
            "unknown",
            { unknown = "the id" },
        },
    },

    --- Who makes an id: the one that nginx has made, if that is known.
    own = function(told)
        made = told.id
        return made and own
    end,
}
