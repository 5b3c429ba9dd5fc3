--- Asks for a signature of the request by a consumer's secret. It runs in C:
-- plugins/hmac-auth/sluice_hmac_auth.c.
-- @module plugins.hmac-auth.handler

local challenge = require("sluice.challenge")
local packed = require("sluice.ffi.packed")

-- sluice_hmac_auth.h
local FLAGS = { hide_credentials = 0x01, validate_request_body = 0x02 }

-- What stands for a clock_skew that is null: any time is right in no file of Kong's.
local CLOCK_SKEW = 300

return {
    VERSION = "0.2.0",
    PRIORITY = 1030,
    native = true,
    identifies_consumer = true,

    --- What the C reads of a configuration.
    -- @tparam table config checked by the schema
    -- @treturn string
    pack = function(config)
        local skew = config.clock_skew
        local out = packed.new()
        out:flags(config, FLAGS)
        out:double(type(skew) == "number" and skew or CLOCK_SKEW)
        out:text(config.anonymous)
        out:text(challenge.text("hmac", config.realm))
        out:list(config.enforce_headers)
        out:list(config.algorithms)
        return out:bytes()
    end,
}
