--- Writes docs/metrics.md from gateway.control.metrics.declaration: `make docs`.

local declaration = require("gateway.control.metrics.declaration")

local INTRODUCTION = [[
# Metrics

<!-- Generated from gateway/control/metrics by `make docs`; changes here are lost. -->

`GET /metrics` of the admin listener says what this node has counted, in Prometheus' text format
0.0.4, or in OpenMetrics 1.0 where the client's Accept names `application/openmetrics-text`. Who may
ask is as for every page of the listener ([admin.md](admin.md)).

```yaml
scrape_configs:
  - job_name: sluice
    static_configs: [{ targets: ["127.0.0.1:8001"] }]
    authorization: { credentials: ADMIN_TOKEN }      # where there is one
```

- Traffic workers count in C, each in memory of its own that outlives it: a killed worker, a reload
  or a binary upgrade loses nothing but the request in hand. A restart begins at 0.
- The control worker makes the text, in turns of some milliseconds. A scrape never asks a traffic
  worker. While worker 0 is away, nothing answers, and counting goes on.
- Counted are requests of the proxy listeners, also those that nginx refuses itself, when they end:
  after the client has got its response.
- Times are those of nginx's clock: milliseconds, which stand still within a turn of the event loop.

## Routes and services

`metrics_series` (0: off) says how many routes and services have lines of their own: those with the
lowest slots, which are the oldest and those that came into the place of deleted ones. Requests of
others are in the node's lines, and in `sluice_http_unnamed_requests_total`. `metrics_latencies`
adds their histograms.

- A route that nothing was asked for has no lines. Nor has one that was deleted; who comes into its
  place begins at 0, also under the same name.
- Labels are names, or ids where there is no name. A renamed route goes on under its new name.
- Memory: 448 bytes a route, and a service, for each worker that has served it since the start. All
  10,000 of both over four workers: 36 MB.
- Text: 7 lines a route and 150 bytes a line; 50 lines more with `metrics_latencies`.
- Time: 10,000 routes, 2.6 MB of text, take the control worker 7 ms of CPU. Labels are kept until
  the configuration changes, some 100 bytes a route.
]]

local MAPPING = [[
## For dashboards made for Kong

Names are our own. This is where Kong's Prometheus plugin has the same:

| Kong | here |
|---|---|
| `kong_http_requests_total{service,route,code}` | `sluice_route_requests_total`, by class |
| `kong_bandwidth_bytes`, ingress | `sluice_route_received_bytes_total` |
| `kong_bandwidth_bytes`, egress | `sluice_route_sent_bytes_total` |
| `kong_request_latency_ms` | `sluice_route_request_duration_seconds` |
| `kong_upstream_latency_ms` | `sluice_route_upstream_duration_seconds`: all tries |
| `kong_kong_latency_ms` | `sluice_route_gateway_duration_seconds` |
| `kong_nginx_connections_total` | `sluice_connections`, `..._accepted_total`, `..._handled_total` |
| `kong_nginx_requests_total` | `sum(sluice_http_requests_total)` |
| `kong_nginx_timers` | `sluice_timer_runs_total`; `GET /timers` |
| `kong_datastore_reachable` | `sluice_control_state{state="live"}` |
| `kong_memory_*` | `GET /status` |
| `kong_upstream_target_health`, `consumer` labels | not there |
]]

local function row_text(row)
    local name = row.type == "counter" and row.name .. "_total" or row.name
    local labels = row.labels and table.concat(row.labels, ", ") or ""
    return ("| `%s` | %s | %s | %s |"):format(name, row.type, labels, row.help)
end

--- The page.
-- @treturn string Markdown
local function render()
    local bounds = {}
    for i, bound in ipairs(declaration.BOUNDS) do
        bounds[i] = ("%.14g"):format(bound / 1000)
    end
    local out = { INTRODUCTION }
    local sections = {
        { "## The node", declaration.node },
        { "## Of each route", declaration.routes },
        { "## Of each service", declaration.services },
        { "## All else", declaration.rest },
    }
    for _, section in ipairs(sections) do
        out[#out + 1] = section[1] .. "\n"
        out[#out + 1] = "| name | type | labels | |"
        out[#out + 1] = "|---|---|---|---|"
        for _, row in ipairs(section[2]) do
            out[#out + 1] = row_text(row)
        end
        out[#out + 1] = ""
    end
    out[#out + 1] = "Buckets of all histograms, in seconds: "
        .. table.concat(bounds, ", ")
        .. ", +Inf.\n"
    out[#out + 1] = MAPPING
    return table.concat(out, "\n")
end

io.write(render())
