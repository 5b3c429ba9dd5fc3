--- Limits how many requests may be made in a second, minute, hour, day, month or year.
--
-- It runs in C: plugins/rate-limiting/ngx_http_sluice_rate_limiting.c.
-- @module plugins.rate-limiting.handler

local packed = require("sluice.ffi.packed")
local periods = require("plugins.rate-limiting.periods")

local _M = {
    VERSION = "0.2.0",
    PRIORITY = 910,
    native = true,
}

--- Packs a configuration: the limit of each period (0: it has none), whose requests are counted
-- together, and what a client is told.
-- @tparam table config checked by the schema
-- @treturn string
function _M.pack(config)
    local out = packed.new()
    for _, period in ipairs(periods) do
        local limit = config[period]
        out:double(type(limit) == "number" and limit or 0)
    end
    out:text(config.limit_by)
    out:text(type(config.header_name) == "string" and config.header_name:lower() or nil)
    out:text(config.path)
    out:number(config.error_code)
    out:text(config.error_message)
    out:number(config.fault_tolerant and 1 or 0)
    out:number(config.hide_client_headers and 1 or 0)
    return out:bytes()
end

return _M
