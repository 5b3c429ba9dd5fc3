--- Says which requests the access log has.
--
-- It runs in C: plugins/access-log/ngx_http_sluice_access_log.c.
-- @module plugins.access-log.handler

local packed = require("sluice.ffi.packed")

return {
    VERSION = "0.1.0",
    -- Before all others: what they refuse is in the log, or is not, as the rest.
    PRIORITY = 1000001,
    native = true,

    --- What the C reads of a configuration.
    -- @tparam table config checked by the schema
    -- @treturn string
    pack = function(config)
        local out = packed.new()
        out:double(type(config.sample) == "number" and config.sample or 0)
        out:number(config.errors == true and 1 or 0)
        return out:bytes()
    end,
}
