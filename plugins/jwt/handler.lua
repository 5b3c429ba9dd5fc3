--- Asks for a token that a consumer's key has signed. It runs in C: plugins/jwt/sluice_jwt.c.
-- @module plugins.jwt.handler

local challenge = require("sluice.challenge")
local packed = require("sluice.ffi.packed")

-- sluice_jwt.h
local BASE64, PREFLIGHT = 0x01, 0x02
local CLAIMS = { exp = 0x04, nbf = 0x08 }

local function list(value)
    return type(value) == "table" and value or {}
end

local function lower(names)
    local out = {}
    for i, name in ipairs(list(names)) do
        out[i] = name:lower()
    end
    return out
end

return {
    VERSION = "0.1.0",
    PRIORITY = 1450,
    native = true,
    identifies_consumer = true,

    --- What the C reads of a configuration.
    -- @tparam table config checked by the schema
    -- @treturn string
    pack = function(config)
        local flags = (config.secret_is_base64 and BASE64 or 0)
            + (config.run_on_preflight and PREFLIGHT or 0)
        for _, claim in ipairs(list(config.claims_to_verify)) do
            flags = flags + CLAIMS[claim]
        end
        local says = challenge.text("Bearer", config.realm)
        local maximum = config.maximum_expiration
        local out = packed.new()
        out:number(flags)
        out:double(type(maximum) == "number" and maximum or 0)
        out:text(config.anonymous)
        out:text(says)
        out:text(says .. ' error="invalid_token"')
        out:text(config.key_claim_name)
        out:list(config.uri_param_names)
        out:list(config.cookie_names)
        out:list(lower(config.header_names))
        return out:bytes()
    end,
}
