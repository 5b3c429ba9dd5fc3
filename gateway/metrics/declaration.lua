--- Every metric, declared once as data: `/metrics` and docs/metrics.md are made of this.
--
-- A row has:
--
--   name     without the endings that its type adds (`_total`, `_bucket` ...)
--   type     counter, gauge or histogram
--   unit     which the name ends with (optional)
--   labels   their names (optional)
--   help     what it says
--
-- Rows of a line are made for the node, for routes and for services; an entity's own labels come
-- first. C writes them, and is told:
--
--   numbers  array of `{ field, index, word }`: a field of sluice_metrics_sum_t, which of an array,
--            and the value of the label that is not the entity's: with one, 0 has no sample
--
-- All other rows are read and written in Lua:
--
--   samples  `(figures, add)`: calls `add(value, ...)` for each, with the values of its labels
--
-- A plugin's rows (plugins/<name>/metrics.lua) are such, or those of gateway.metrics.labelled, and
-- may have more:
--
--   is_wanted  `(configs)`: whether to show it, by the plugin's configurations that are enabled
--   is_bare    a counter whose name gets no ending

local _M = {}

--- Upper bounds of all histograms in ms, as ngx_http_sluice_metrics.c counts.
_M.BOUNDS = { 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000 }

local STATES =
    { "starting", "waiting", "building", "live", "checking", "damaged", "stopped", "left" }
local CLASSES = { "1xx", "2xx", "3xx", "4xx", "5xx" }

local function requests()
    local numbers = {}
    for i, class in ipairs(CLASSES) do
        numbers[i] = { field = "answered", index = i - 1, word = class }
    end
    numbers[#numbers + 1] = { field = "unanswered", word = "none" }
    return numbers
end

-- A row whose one sample is a field of a part of the figures; none where that is missing.
local function one(part, field, row)
    row.samples = function(figures, add)
        local found = figures[part]
        local value = found and found[field]
        if value then
            add(value)
        end
    end
    return row
end

-- Rows of a line: of the node, a route or a service.
local function line_rows(prefix, what, labels)
    local function with(...)
        local out = {}
        for _, label in ipairs(labels) do
            out[#out + 1] = label
        end
        for _, label in ipairs({ ... }) do
            out[#out + 1] = label
        end
        return out
    end
    local function histogram(name, field, help)
        return {
            name = prefix .. name .. "_duration_seconds",
            type = "histogram",
            unit = "seconds",
            labels = with(),
            help = help:format(what),
            numbers = { { field = field } },
        }
    end
    local function bytes(name, field, help)
        return {
            name = prefix .. name .. "_bytes",
            type = "counter",
            unit = "bytes",
            labels = with(),
            help = help:format(what),
            numbers = { { field = field } },
        }
    end
    return {
        {
            name = prefix .. "requests",
            type = "counter",
            labels = with("code"),
            help = "Requests" .. what .. " by status class; `none`: closed without a response.",
            numbers = requests(),
        },
        bytes("received", "received", "Bytes of requests%s, headers and bodies."),
        bytes("sent", "sent", "Bytes of responses%s, headers and bodies."),
        histogram("request", "total", "Duration of requests%s, from the first byte to the end."),
        histogram(
            "upstream",
            "upstream",
            "Time that requests%s spent with upstreams: the sum of all tries, from connect to the "
                .. "end."
        ),
        histogram(
            "gateway",
            "gateway",
            "Time that requests%s spent in the gateway: until the last try, without earlier tries. "
                .. "The whole duration if no upstream was contacted."
        ),
    }
end

--- Rows of the node's line.
_M.node = line_rows("sluice_http_", "", {})

--- Rows of routes' and services' lines; the last three are histograms.
_M.routes = line_rows("sluice_route_", " of a route", { "route", "service" })
_M.services = line_rows("sluice_service_", " of a service", { "service" })

--- All other rows.
_M.rest = {
    one("counts", "retries", {
        name = "sluice_http_retries",
        type = "counter",
        help = "Retries of requests at upstreams.",
    }),
    {
        name = "sluice_upstream_failures",
        type = "counter",
        labels = { "address", "reason" },
        help = "Tries that failed, by address of the upstream and reason (docs/logs.md). At most "
            .. "32 addresses per worker: a new one replaces the one that failed longest ago.",
        samples = function(figures, add)
            for _, target in ipairs(figures.failed) do
                for reason, tries in pairs(target.failed) do
                    add(tries, target.address, reason)
                end
            end
        end,
    },
    one("counts", "rate_limited", {
        name = "sluice_http_rate_limited",
        type = "counter",
        help = "Requests refused by a rate limit.",
    }),
    one("counts", "unnamed", {
        name = "sluice_http_unnamed_requests",
        type = "counter",
        help = "Requests of routes or services without series of their own (see metrics_series).",
    }),
    one("counts", "unmatched", {
        name = "sluice_http_unmatched_requests",
        type = "counter",
        help = "Requests that no route matches: answered 404, save by a global plugin.",
    }),
    one("counts", "unrouted", {
        name = "sluice_http_unrouted_requests",
        type = "counter",
        help = "Requests answered 500 because matching exceeded the router's budget: expensive "
            .. "patterns or too many candidate routes (docs/router.md).",
    }),
    one("counts", "http2_resets", {
        name = "sluice_http2_resets",
        type = "counter",
        help = "HTTP/2 streams reset by clients, or because of a protocol error of the client.",
    }),
    one("counts", "http2_refused", {
        name = "sluice_http2_refused_streams",
        type = "counter",
        help = "HTTP/2 streams refused, mostly beyond http2_max_concurrent_streams.",
    }),
    {
        name = "sluice_http2_closed_connections",
        type = "counter",
        labels = { "reason" },
        help = "HTTP/2 connections closed by the gateway: too many resets, refused streams or "
            .. "control frames, or a header that is too large or malformed.",
        samples = function(figures, add)
            for _, reason in ipairs({ "resets", "streams", "frames", "header" }) do
                add(figures.counts["http2_closed_" .. reason], reason)
            end
        end,
    },
    {
        name = "sluice_proxy_protocol_closed_connections",
        type = "counter",
        labels = { "reason" },
        help = "Connections closed for the header of the PROXY protocol: missing, malformed, cut "
            .. "(incomplete at its end, or at client_header_timeout) or oversized.",
        samples = function(figures, add)
            for _, reason in ipairs({ "missing", "malformed", "cut", "oversized" }) do
                add(figures.counts["proxy_protocol_" .. reason], reason)
            end
        end,
    },
    {
        name = "sluice_connections",
        type = "gauge",
        labels = { "state" },
        help = "Client connections, those of the admin listener included.",
        samples = function(figures, add)
            for _, state in ipairs({ "reading", "writing", "waiting" }) do
                if figures.connections then
                    add(figures.connections[state], state)
                end
            end
        end,
    },
    one("connections", "accepted", {
        name = "sluice_connections_accepted",
        type = "counter",
        help = "Client connections accepted.",
    }),
    one("connections", "handled", {
        name = "sluice_connections_handled",
        type = "counter",
        help = "Client connections served; the others found no free worker connection.",
    }),
    {
        name = "sluice_upstream_connections",
        type = "counter",
        labels = { "source" },
        help = "Upstream connections used, from the pool or new.",
        samples = function(figures, add)
            add(figures.counts.pool_reused, "pool")
            add(figures.counts.pool_opened, "new")
        end,
    },
    one("counts", "pool_idle", {
        name = "sluice_upstream_pool_idle_connections",
        type = "gauge",
        help = "Idle upstream connections in the pools of all workers.",
    }),
    one("counts", "pool_closed", {
        name = "sluice_upstream_pool_closed",
        type = "counter",
        help = "Idle upstream connections closed: by the upstream, by age, or because the pool was "
            .. "full.",
    }),
    one("log", "published", {
        name = "sluice_events_published",
        type = "counter",
        help = "Events published by workers.",
    }),
    one("log", "size", {
        name = "sluice_events_log_size_bytes",
        type = "gauge",
        unit = "bytes",
        help = "Size of the event log.",
    }),
    one("log", "used", {
        name = "sluice_events_log_used_bytes",
        type = "gauge",
        unit = "bytes",
        help = "Bytes of the event log that at least one worker has yet to read.",
    }),
    one("log", "attached", {
        name = "sluice_events_workers",
        type = "gauge",
        help = "Workers that read the event log.",
    }),
    one("log", "slots", {
        name = "sluice_events_slots",
        type = "gauge",
        help = "Slots of the event log, one per process.",
    }),
    one("log", "unattached", {
        name = "sluice_events_workers_without_slot",
        type = "gauge",
        help = "Workers without a slot, which receive no events. They retry every second.",
    }),
    one("events", "lag", {
        name = "sluice_events_lag",
        type = "gauge",
        help = "Events that the slowest worker has yet to read.",
    }),
    one("events", "missed", {
        name = "sluice_events_missed",
        type = "gauge",
        help = "Events missed by the current workers.",
    }),
    one("entries", "written", {
        name = "sluice_log_entries",
        type = "counter",
        help = "Entries of log plugins handed to the control worker.",
    }),
    {
        name = "sluice_log_entries_dropped",
        type = "counter",
        labels = { "reason" },
        help = "Entries of log plugins dropped: `full`, the buffer (log_buffer_size) had no room; "
            .. "`large`, it takes no entry of this size; `busy`, another process held its lock; "
            .. "`target`, a file or log server did not take them in time.",
        samples = function(figures, add)
            local entries = figures.entries
            if entries then
                add(entries.full, "full")
                add(entries.large, "large")
                add(entries.busy, "busy")
                add(entries.lost, "target")
            end
        end,
    },
    one("entries", "damaged", {
        name = "sluice_log_buffer_damaged",
        type = "counter",
        help = "Times that the contents of the buffer of log entries were damaged and given up.",
    }),
    one("entries", "used", {
        name = "sluice_log_buffer_used_bytes",
        type = "gauge",
        unit = "bytes",
        help = "Bytes of the buffer of log entries that the control worker has yet to read.",
    }),
    one("counts", "timer_runs", {
        name = "sluice_timer_runs",
        type = "counter",
        help = "Timer runs.",
    }),
    one("counts", "timer_failures", {
        name = "sluice_timer_failures",
        type = "counter",
        help = "Timer runs whose callback failed.",
    }),
    one("state", "revision", {
        name = "sluice_image_revision",
        type = "gauge",
        help = "Revision of the live configuration.",
    }),
    one("state", "base_bytes", {
        name = "sluice_image_base_bytes",
        type = "gauge",
        unit = "bytes",
        help = "Size of the live base image.",
    }),
    one("state", "delta_used", {
        name = "sluice_image_delta_used_bytes",
        type = "gauge",
        unit = "bytes",
        help = "Used bytes of the delta image, at most 16 MiB.",
    }),
    one("control", "failures", {
        name = "sluice_image_refused_requests",
        type = "counter",
        help = "Requests answered 503 because the worker could not map the live image.",
    }),
    {
        name = "sluice_control_state",
        type = "gauge",
        labels = { "state" },
        help = "State of the control worker: 1 for the current state, else 0 (docs/control.md).",
        samples = function(figures, add)
            for _, state in ipairs(STATES) do
                add(figures.state.state == state and 1 or 0, state)
            end
        end,
    },
    one("control", "started_at", {
        name = "sluice_control_start_time_seconds",
        type = "gauge",
        unit = "seconds",
        help = "Start time of the control worker, in seconds since 1970.",
    }),
    one("control", "starts", {
        name = "sluice_control_starts",
        type = "counter",
        help = "Starts of the control worker.",
    }),
    one("control", "deaths", {
        name = "sluice_control_deaths",
        type = "counter",
        help = "Unexpected exits of the control worker.",
    }),
    {
        name = "sluice_plugin_failures",
        type = "counter",
        labels = { "plugin", "phase" },
        help = "Errors that plugins in Lua have thrown, and loops of theirs that the watchdog has "
            .. "ended, by phase.",
        samples = function(figures, add)
            for _, failure in ipairs(figures.plugin_failures) do
                add(failure.count, failure.plugin, failure.phase)
            end
        end,
    },
    {
        name = "sluice_build_info",
        type = "gauge",
        labels = { "version" },
        help = "Version of Sluice; always 1.",
        samples = function(figures, add)
            add(1, figures.version)
        end,
    },
}

return _M
