--- Writes docs/metrics.md from gateway.metrics.declaration: `make docs`.

local declaration = require("gateway.metrics.declaration")

local INTRODUCTION = [[
# Metrics

<!-- Generated from gateway/metrics by `make docs`; changes here are lost. -->

`GET /metrics` on the admin listener returns the metrics of this node in Prometheus' text format
0.0.4, or in OpenMetrics 1.0 if the Accept header names `application/openmetrics-text`. Access is
controlled as for the rest of the Admin API ([admin.md](admin.md)).

```yaml
scrape_configs:
  - job_name: sluice
    static_configs: [{ targets: ["127.0.0.1:8001"] }]
    authorization: { credentials: ADMIN_TOKEN }      # if admin_token is set
```

- Each worker counts in shared memory of its own, which outlives it: a killed worker, a reload or a
  binary upgrade loses at most the request being processed. A restart resets all counters.
- The control worker renders the text in slices of a few milliseconds. A scrape never interrupts a
  worker that serves traffic. While the control worker is down, scrapes fail and counting continues.
- Requests of the proxy listeners are counted when they end, after the client has received the
  response. Requests that nginx itself refuses are included.
- Times have nginx's resolution: milliseconds, updated once per iteration of the event loop.

## Routes and services

`metrics_series` sets how many routes and services have series of their own
(default: 1,000, 0: none): those with the lowest slots, which are the oldest and those that replaced
deleted ones. Requests of all others count in the totals of the node and in
`sluice_http_unnamed_requests_total`. `metrics_latencies` adds histograms.

- A route has series once it has received a request. A deleted route loses them; the route that
  takes its slot starts at 0, even under the same name.
- Labels are names, or ids of entities without a name. A renamed route keeps its counters under its
  new name.
- Memory: 448 bytes per route, and per service, for each worker that has served it since the start,
  in whole pages: 500 routes took 468 bytes each (measured). 1,000 of both, the default, take at
  most 3.7 MB with four workers, 10,000 of both 36 MB. Routes without requests take none.
- Text: 7 lines per route, 150 bytes per line; 50 more lines with `metrics_latencies`.
- CPU time: rendering 10,000 routes, 2.6 MB of text, takes the control worker 7 ms. Labels are
  cached until the configuration changes, about 100 bytes per route.
]]

local KONGS = [[
## For dashboards made for Kong

A bundled plugin adds Kong's metrics, with their names and labels, to the same page:
[migrating-from-kong.md](migrating-from-kong.md).
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
        { "## Node", declaration.node },
        { "## Routes", declaration.routes },
        { "## Services", declaration.services },
        { "## Other metrics", declaration.rest },
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
    out[#out + 1] = KONGS
    return table.concat(out, "\n")
end

io.write(render())
