--- What `/metrics` shows of the prometheus plugin: Kong's names, labels and words, rows as in
-- gateway.metrics.declaration and gateway.metrics.labelled.
-- @module plugins.prometheus.metrics

local series = require("sluice.ffi.series")

-- As ngx_http_sluice_prometheus.c counts, which has sums behind them.
local KONG_BOUNDS = { 1, 2, 5, 7, 10, 15, 20, 30, 50, 75, 100, 200, 500, 750, 1000, 3000, 6000 }
local UPSTREAM_BOUNDS = { 25, 50, 80, 100, 250, 400, 700, 1000, 2000, 5000, 10000, 30000, 60000 }

local KONG = 0
local UPSTREAM = KONG + #KONG_BOUNDS + 2
local REQUEST = UPSTREAM + #UPSTREAM_BOUNDS + 2

local WORKSPACE = { "workspace", "default" }
local SUBSYSTEM = "http"
local STATES = { "accepted", "handled", "total", "active", "reading", "writing", "waiting" }
local HEALTH = { "healthchecks_off", "healthy", "unhealthy", "dns_error" }
-- States of the control worker in which it has the store.
local REACHABLE = { live = true, checking = true, damaged = true }

local function gauge(name, labels, help, samples)
    return {
        name = "kong_" .. name,
        type = "gauge",
        labels = labels,
        help = help,
        samples = samples,
    }
end

local function histogram(name, number, bounds, help)
    return {
        name = "kong_" .. name,
        type = "histogram",
        help = help .. " for each service/route in Kong",
        bounds = bounds,
        series = {
            { kind = series.TIMES, number = number, labels = { "service", "route", WORKSPACE } },
        },
    }
end

local function bytes(direction, number)
    return {
        kind = series.BYTES,
        number = number,
        labels = { "service", "route", { "direction", direction }, WORKSPACE, "consumer" },
    }
end

local function shared_dicts(figures, add, size)
    for name, dict in pairs(ngx.shared) do
        add(size(dict), figures.node_id, name, SUBSYSTEM)
    end
end

local function wants_health(configs)
    for _, config in ipairs(configs) do
        if config.upstream_health_metrics then
            return true
        end
    end
    return false
end

local function add_target(add, upstream, target, address, state)
    for _, one in ipairs(HEALTH) do
        add(one == state and 1 or 0, upstream, target, address, one, SUBSYSTEM)
    end
end

local target_health = gauge(
    "upstream_target_health",
    { "upstream", "target", "address", "state", "subsystem" },
    "Health status of targets of upstream. States = healthchecks_off|healthy|unhealthy|dns_error, "
        .. "value is 1 when state is populated.",
    function(figures, add)
        figures.targets(function(upstream, target, addresses)
            for _, address in ipairs(addresses) do
                add_target(add, upstream, target, address, "healthchecks_off")
            end
            if #addresses == 0 then
                add_target(add, upstream, target, "", "dns_error")
            end
        end)
    end
)
target_health.is_wanted = wants_health

return {
    {
        name = "kong_bandwidth_bytes",
        type = "counter",
        is_bare = true,
        help = "Total bandwidth (ingress/egress) throughput in bytes",
        series = { bytes("egress", 1), bytes("ingress", 0) },
    },
    gauge(
        "datastore_reachable",
        nil,
        "Datastore reachable from Kong, 0 is unreachable",
        function(figures, add)
            add(REACHABLE[figures.state.state] and 1 or 0)
        end
    ),
    {
        name = "kong_http_requests",
        type = "counter",
        help = "HTTP status codes per consumer/service/route in Kong",
        series = {
            {
                kind = series.REQUESTS,
                number = 0,
                labels = { "service", "route", "code", "source", WORKSPACE, "consumer" },
            },
        },
    },
    histogram("kong_latency_ms", KONG, KONG_BOUNDS, "Latency added by Kong and enabled plugins"),
    gauge(
        "memory_lua_shared_dict_bytes",
        { "node_id", "shared_dict", "kong_subsystem" },
        "Allocated slabs in bytes in a shared_dict",
        function(figures, add)
            shared_dicts(figures, add, function(dict)
                return dict:capacity() - dict:free_space()
            end)
        end
    ),
    gauge(
        "memory_lua_shared_dict_total_bytes",
        { "node_id", "shared_dict", "kong_subsystem" },
        "Total capacity in bytes of a shared_dict",
        function(figures, add)
            shared_dicts(figures, add, function(dict)
                return dict:capacity()
            end)
        end
    ),
    gauge(
        "memory_workers_lua_vms_bytes",
        { "node_id", "pid", "kong_subsystem" },
        "Allocated bytes in worker Lua VM",
        function(figures, add)
            local own = ngx.worker.pid()
            local size = math.floor(collectgarbage("count") * 1024)
            add(size, figures.node_id, tostring(own), SUBSYSTEM)
            for _, heap in ipairs(figures.heaps()) do
                if heap.pid ~= own then
                    add(heap.http_allocated_gc, figures.node_id, tostring(heap.pid), SUBSYSTEM)
                end
            end
        end
    ),
    gauge(
        "nginx_connections_total",
        { "node_id", "subsystem", "state" },
        "Number of connections by subsystem",
        function(figures, add)
            for _, state in ipairs(figures.connections and STATES or {}) do
                add(figures.connections[state], figures.node_id, SUBSYSTEM, state)
            end
        end
    ),
    {
        name = "kong_nginx_metric_errors",
        type = "counter",
        help = "Number of nginx-lua-prometheus errors",
        samples = function(_, add)
            add(series.lacking())
        end,
    },
    gauge(
        "nginx_requests_total",
        { "node_id", "subsystem" },
        "Number of requests total",
        function(figures, add)
            if figures.connections then
                add(figures.connections.total, figures.node_id, SUBSYSTEM)
            end
        end
    ),
    gauge("nginx_timers", { "state" }, "Number of nginx timers", function(_, add)
        add(ngx.timer.running_count(), "running")
        add(ngx.timer.pending_count(), "pending")
    end),
    gauge(
        "node_info",
        { "node_id", "version" },
        "Kong Node metadata information",
        function(figures, add)
            add(1, figures.node_id, figures.kong_version)
        end
    ),
    histogram(
        "request_latency_ms",
        REQUEST,
        UPSTREAM_BOUNDS,
        "Total latency incurred during requests"
    ),
    histogram(
        "upstream_latency_ms",
        UPSTREAM,
        UPSTREAM_BOUNDS,
        "Latency added by upstream response"
    ),
    target_health,
}
