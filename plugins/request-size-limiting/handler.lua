--- Refuses requests with large bodies. It runs in C:
-- plugins/request-size-limiting/sluice_request_size_limiting.c.
-- @module plugins.request-size-limiting.handler

local packed = require("sluice.ffi.packed")

local UNITS = { bytes = 1, kilobytes = 2 ^ 10, megabytes = 2 ^ 20 }

return {
    VERSION = "0.1.0",
    PRIORITY = 951,
    native = true,

    --- What the C reads of a configuration.
    -- @tparam table config checked by the schema
    -- @treturn string
    pack = function(config)
        local out = packed.new()
        out:double(config.allowed_payload_size * UNITS[config.size_unit])
        out:number(config.require_content_length and 1 or 0)
        return out:bytes()
    end,
}
