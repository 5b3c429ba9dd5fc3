--- What rate-limiting decides: by hand (test/unit/decisions_spec.lua).

local core = require("test.unit.support.core")

local ffi, lib = core.ffi, core.lib

local KEY = ffi.new("uint8_t[16]")
local SIZE = 2 ^ 20

local meter, memory, anchor, slot

local function open()
    memory, anchor = core.memory(SIZE)
    meter = ffi.new("sluice_core_meter_t")
    assert(lib.sluice_core_meter_init(memory, SIZE, KEY) == lib.SLUICE_CORE_OK)
    assert(lib.sluice_core_meter_attach(meter, memory, SIZE) == lib.SLUICE_CORE_OK)
    return anchor
end

-- As sluice_rate_limiting_own_t has it.
local own = ffi.new(
    [[struct {
        int (*take)(const void *own, sluice_core_rule_t *rule,
            const sluice_core_text_t *identifier, int is_fallback, uint64_t now,
            sluice_core_taken_t *taken);
    }]],
    function(_, rule, identifier, is_fallback, now, taken)
        rule.slot = slot
        local text, length = identifier.data, identifier.length
        return lib.sluice_core_meter_take(meter, rule, text, length, is_fallback, now, taken)
    end
)

local RATE_LIMITING = {
    minute = 5,
    limit_by = "consumer",
    error_code = 429,
    error_message = "slow down",
    fault_tolerant = true,
}

return {
    cases = {
        { RATE_LIMITING, { headers = {} }, "unknown", { unknown = "the counters" } },
    },

    --- Counters of our own, of the rule that is the slot's.
    own = function(told)
        anchor = anchor or open()
        slot = told.slot
        return own
    end,
}
