--- What jwt decides: by hand (test/unit/decisions_spec.lua).

local core = require("test.unit.support.core")

local ffi, lib = core.ffi, core.lib

local is_right

local function nothing()
    return 0
end

-- As sluice_jwt_own_t has it; it remembers nothing.
local own = ffi.new(
    [[struct {
        int (*recall)(void *own, const void *text, const void *key_claim, void *token);
        int (*is_right)(void *own, const void *what);
        void (*remember)(void *own, const void *what);
        int (*verify)(void *own, const void *what);
    }]],
    nothing,
    nothing,
    function() end,
    function()
        return is_right and lib.SLUICE_FACT_OK or lib.SLUICE_FACT_NONE
    end
)

local JWT = {
    key_claim_name = "iss",
    header_names = { "authorization" },
    run_on_preflight = true,
    realm = "here",
}

return {
    cases = {
        {
            JWT,
            { method = "GET", query = false, headers = {} },
            "respond",
            {
                status = 401,
                message = '{"message":"Unauthorized"}',
                challenge = 'Bearer realm="here"',
            },
        },
        {
            JWT,
            { method = "GET", query = false, headers = { "Authorization", "Bearer a.b" } },
            "respond",
            { status = 401 },
        },
        { JWT, { method = "GET", query = false }, "unknown", { unknown = "where a token can be" } },
    },

    --- Who knows public keys: whether the token is signed by the one that belongs to it.
    own = function(told)
        is_right = told.is_right
        return own
    end,
}
