--- What mtls-auth decides: by hand (test/unit/decisions_spec.lua).

local core = require("test.unit.support.core")

local ffi, lib = core.ffi, core.lib

local told

local function fact(is_so)
    return is_so and lib.SLUICE_FACT_OK or lib.SLUICE_FACT_NONE
end

local function fill(text, value)
    text.data, text.length = value, #value
end

-- As sluice_mtls_auth_own_t has it.
local own = ffi.new(
    [[struct {
        int (*certificate)(void *own);
        int (*fresh)(void *own);
        int (*verify)(void *own);
        int (*describe)(void *own, sluice_core_text_t *subject, sluice_core_text_t *fingerprint);
    }]],
    function()
        return fact(told.subject)
    end,
    function()
        return lib.SLUICE_FACT_OK
    end,
    function()
        return fact(told.is_trusted)
    end,
    function(_, subject, fingerprint)
        fill(subject, told.subject)
        fill(fingerprint, told.fingerprint)
        return lib.SLUICE_FACT_OK
    end
)

local MTLS_AUTH = { ca_certificates = { "00000000-0000-4000-8000-000000000001" }, depth = 4 }

return {
    cases = {
        { MTLS_AUTH, { server_name = "a.com", host = "b.com" }, "respond", { status = 421 } },
        { MTLS_AUTH, { server_name = "a.com", host = "a.com" }, "unknown" },
    },

    --- What OpenSSL says of a certificate: `subject` (nil: there is none), `fingerprint`,
    -- `is_trusted`.
    own = function(given)
        told = given
        return own
    end,
}
