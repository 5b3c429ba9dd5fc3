--- Asks for a name and a password that belong to a consumer. It runs in C:
-- plugins/basic-auth/sluice_basic_auth.c.
-- @module plugins.basic-auth.handler

local challenge = require("sluice.challenge")
local packed = require("sluice.ffi.packed")

return {
    VERSION = "0.1.0",
    PRIORITY = 1100,
    native = true,
    identifies_consumer = true,

    --- What the C reads of a configuration.
    -- @tparam table config checked by the schema
    -- @treturn string
    pack = function(config)
        local out = packed.new()
        out:number(config.hide_credentials and 1 or 0)
        out:text(config.anonymous)
        out:text(challenge.text("Basic", config.realm))
        return out:bytes()
    end,
}
