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
--   samples  `(figures, add)`: calls `add(value, word)` for each, `word` as above

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
            help = "Requests"
                .. what
                .. " by the class of their status; none: closed without an answer.",
            numbers = requests(),
        },
        bytes("received", "received", "Bytes of requests%s, heads and bodies."),
        bytes("sent", "sent", "Bytes of responses%s, heads and bodies."),
        histogram("request", "total", "Time of requests%s from their first byte to their end."),
        histogram(
            "upstream",
            "upstream",
            "Time of requests%s with upstreams: the sum of all tries, from connect to the end."
        ),
        histogram(
            "gateway",
            "gateway",
            "Time of requests%s until their last try began, without earlier tries; all where no "
                .. "upstream was asked."
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
        help = "Tries of upstreams after the first of a request.",
    }),
    one("counts", "rate_limited", {
        name = "sluice_http_rate_limited",
        type = "counter",
        help = "Requests that a rate limit has refused.",
    }),
    one("counts", "unnamed", {
        name = "sluice_http_unnamed_requests",
        type = "counter",
        help = "Requests of routes or services beyond metrics_series, which have no lines.",
    }),
    one("counts", "unrouted", {
        name = "sluice_http_unrouted_requests",
        type = "counter",
        help = "Requests answered 500 as the router's budget for one was used up: by patterns that "
            .. "gave up, or by too many routes to look at (docs/router.md).",
    }),
    one("counts", "http2_resets", {
        name = "sluice_http2_resets",
        type = "counter",
        help = "Streams that clients have reset, or had reset by breaking the protocol in them.",
    }),
    one("counts", "http2_refused", {
        name = "sluice_http2_refused_streams",
        type = "counter",
        help = "Streams that were refused, most beyond http2_max_concurrent_streams.",
    }),
    {
        name = "sluice_http2_closed_connections",
        type = "counter",
        labels = { "reason" },
        help = "Connections of HTTP/2 that were ended: for too many resets, refused streams or "
            .. "control frames, or for a header that is too large or malformed.",
        samples = function(figures, add)
            for _, reason in ipairs({ "resets", "streams", "frames", "header" }) do
                add(figures.counts["http2_closed_" .. reason], reason)
            end
        end,
    },
    {
        name = "sluice_connections",
        type = "gauge",
        labels = { "state" },
        help = "Connections of clients, the admin listener's among them.",
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
        help = "Connections of clients that were accepted.",
    }),
    one("connections", "handled", {
        name = "sluice_connections_handled",
        type = "counter",
        help = "Those that were served: the others found no free worker connection.",
    }),
    {
        name = "sluice_upstream_connections",
        type = "counter",
        labels = { "source" },
        help = "Connections that tries got: from the pool, or new ones.",
        samples = function(figures, add)
            add(figures.counts.pool_reused, "pool")
            add(figures.counts.pool_opened, "new")
        end,
    },
    one("counts", "pool_idle", {
        name = "sluice_upstream_pool_idle_connections",
        type = "gauge",
        help = "Idle connections in the pools of all workers.",
    }),
    one("counts", "pool_closed", {
        name = "sluice_upstream_pool_closed",
        type = "counter",
        help = "Idle connections that were closed: by the upstream, by age, or for room.",
    }),
    one("log", "published", {
        name = "sluice_events_published",
        type = "counter",
        help = "Events that workers have published.",
    }),
    one("log", "size", {
        name = "sluice_events_log_size_bytes",
        type = "gauge",
        unit = "bytes",
        help = "Size of the events' log.",
    }),
    one("log", "used", {
        name = "sluice_events_log_used_bytes",
        type = "gauge",
        unit = "bytes",
        help = "What of it some worker has yet to read.",
    }),
    one("log", "attached", {
        name = "sluice_events_workers",
        type = "gauge",
        help = "Workers that read the events' log.",
    }),
    one("log", "slots", {
        name = "sluice_events_slots",
        type = "gauge",
        help = "Processes that the events' log has space for.",
    }),
    one("log", "unattached", {
        name = "sluice_events_workers_without_slot",
        type = "gauge",
        help = "Workers that get no event, since all slots are taken. They ask again each second.",
    }),
    one("events", "lag", {
        name = "sluice_events_lag",
        type = "gauge",
        help = "Events that the worker furthest behind has yet to read.",
    }),
    one("events", "missed", {
        name = "sluice_events_missed",
        type = "gauge",
        help = "Events that workers which are there now have missed.",
    }),
    one("counts", "timer_runs", {
        name = "sluice_timer_runs",
        type = "counter",
        help = "Runs of timers.",
    }),
    one("counts", "timer_failures", {
        name = "sluice_timer_failures",
        type = "counter",
        help = "Those whose callback failed.",
    }),
    one("state", "revision", {
        name = "sluice_image_revision",
        type = "gauge",
        help = "Revision of the configuration that is live.",
    }),
    one("state", "base_bytes", {
        name = "sluice_image_base_bytes",
        type = "gauge",
        unit = "bytes",
        help = "Size of the base that is live.",
    }),
    one("state", "delta_used", {
        name = "sluice_image_delta_used_bytes",
        type = "gauge",
        unit = "bytes",
        help = "What of the delta's 16 MiB is used.",
    }),
    one("control", "failures", {
        name = "sluice_image_refused_requests",
        type = "counter",
        help = "Requests answered 503, as their worker could not map what is live.",
    }),
    {
        name = "sluice_control_state",
        type = "gauge",
        labels = { "state" },
        help = "1 for the state in which the control worker is (docs/control.md), else 0.",
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
        help = "When the control worker started, in seconds since 1970.",
    }),
    one("control", "starts", {
        name = "sluice_control_starts",
        type = "counter",
        help = "Control workers that have started.",
    }),
    one("control", "deaths", {
        name = "sluice_control_deaths",
        type = "counter",
        help = "Control workers that have died.",
    }),
    {
        name = "sluice_build_info",
        type = "gauge",
        labels = { "version" },
        help = "1; which Sluice this is.",
        samples = function(figures, add)
            add(1, figures.version)
        end,
    },
}

return _M
