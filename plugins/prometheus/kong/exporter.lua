--- Metrics of plugins' own beside those of the gateway: `kong.plugins.prometheus.exporter`.
--
-- What the gateway counts is C's, and `GET /metrics` shows it; behind that stand the metrics that
-- plugins make here, in the shared dictionary `prometheus_metrics`.
-- @module kong.plugins.prometheus.exporter

local dictionary_metrics = require("sluice.dictionary_metrics")

local _M = {}

local DICTIONARY, PREFIX = "prometheus_metrics", "kong_"

local registry

--- The registry: `counter(name, help, labels)`, `gauge(...)`, `histogram(name, help, labels,
-- buckets)`, whose names have `kong_` before them.
-- @treturn table|nil
-- @treturn string|nil why there is none
-- @phases init, init_worker and later
function _M.get_prometheus()
    local err
    if not registry then
        registry, err = dictionary_metrics.new(DICTIONARY, PREFIX)
    end
    return registry, err
end

--- The plugins' metrics as text.
-- @tparam[opt] function give `(text)`; the response without it
-- @phases content, timer
function _M.metric_data(give)
    local dict = ngx.shared[DICTIONARY]
    if dict then
        dictionary_metrics.write(dict, give or ngx.print)
    end
end

--- Answers a request with the plugins' metrics.
-- @phases content
function _M.collect()
    ngx.header["Content-Type"] = "text/plain; charset=UTF-8"
    _M.metric_data()
end

local function nothing() end

--- Nothing: the gateway counts by itself.
_M.init, _M.init_worker, _M.configure, _M.log = nothing, nothing, nothing, nothing
_M.set_export_upstream_health_metrics = nothing

return _M
