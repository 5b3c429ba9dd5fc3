--- Asks for a key that belongs to a consumer: what is known of it before a request comes. The rest
-- is C (plugins/key-auth/ngx_http_sluice_key_auth.c).
-- @module plugins.key-auth.handler

local challenge = require("sluice.challenge")
local packed = require("sluice.ffi.packed")

-- sluice_key_auth.h
local FLAGS = {
    hide_credentials = 0x01,
    key_in_header = 0x02,
    key_in_query = 0x04,
    key_in_body = 0x08,
    run_on_preflight = 0x10,
}

return {
    VERSION = "0.1.0",
    PRIORITY = 1250,
    native = true,
    identifies_consumer = true,

    --- What the C reads of a configuration.
    -- @tparam table config checked by the schema
    -- @treturn string
    pack = function(config)
        local out = packed.new()
        out:flags(config, FLAGS)
        out:text(config.anonymous)
        out:text(challenge.text("Key", config.realm))
        out:list(config.key_names)
        return out:bytes()
    end,
}
