--- Counts requests by Kong's names and labels. It runs in C:
-- plugins/prometheus/ngx_http_sluice_prometheus.c.
-- @module plugins.prometheus.handler

local packed = require("sluice.ffi.packed")

-- sluice_prometheus.h
local FLAGS = {
    per_consumer = 0x01,
    status_code_metrics = 0x02,
    latency_metrics = 0x04,
    bandwidth_metrics = 0x08,
}

return {
    VERSION = "0.1.0",
    PRIORITY = 13,
    native = true,

    --- What the C reads of a configuration; `upstream_health_metrics` is read at each scrape, and
    -- `ai_metrics` is nothing to it, as long as no plugin counts any.
    -- @tparam table config checked by the schema
    -- @treturn string
    pack = function(config)
        local out = packed.new()
        out:flags(config, FLAGS)
        return out:bytes()
    end,
}
