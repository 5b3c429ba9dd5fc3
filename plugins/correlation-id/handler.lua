--- Gives each request an id of its own, or keeps the client's. It runs in C:
-- plugins/correlation-id/sluice_correlation_id.c.
-- @module plugins.correlation-id.handler

local packed = require("sluice.ffi.packed")

-- sluice_correlation_id.h
local GENERATORS = { uuid = 0, ["uuid#counter"] = 1, tracker = 2 }

return {
    VERSION = "0.1.0",
    PRIORITY = 100001,
    native = true,

    --- What the C reads of a configuration.
    -- @tparam table config checked by the schema
    -- @treturn string
    pack = function(config)
        local out = packed.new()
        out:text(config.header_name)
        out:number(GENERATORS[config.generator])
        out:number(config.echo_downstream and 1 or 0)
        return out:bytes()
    end,
}
