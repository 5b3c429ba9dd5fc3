--- What the workers count of traffic, in memory that they share
-- (module/gateway/metrics/ngx_sluice_metrics.h).
--
-- Any worker may ask for the sums: that takes no lock and disturbs nobody. Nothing here yields.
-- @module sluice.ffi.metrics
-- @usage
-- local metrics = require("sluice.ffi.metrics")
-- metrics.count(metrics.RATE_LIMITED)

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")

-- Declares the rows that are written.
require("sluice.ffi.exposition")

local C = ffi.C

-- Of all workers together, that are shown.
local MAX_TARGETS = 256

-- Of nginx: what sluice_metrics_names_read() returns.
local OK, AGAIN = 0, -2

local is_nginx = abi.declare("core/image", "core/text", "core/series", "gateway/metrics")

local COUNTS = {
    retries = "RETRIES",
    rate_limited = "RATE_LIMITED",
    pool_opened = "POOL_OPENED",
    pool_reused = "POOL_REUSED",
    pool_closed = "POOL_CLOSED",
    unnamed = "UNNAMED",
    unrouted = "UNROUTED",
    unmatched = "UNMATCHED",
    timer_runs = "TIMER_RUNS",
    timer_failures = "TIMER_FAILURES",
    pool_idle = "POOL_IDLE",
    http2_resets = "HTTP2_RESETS",
    http2_refused = "HTTP2_REFUSED",
    http2_closed_resets = "HTTP2_CLOSED_RESETS",
    http2_closed_streams = "HTTP2_CLOSED_STREAMS",
    http2_closed_frames = "HTTP2_CLOSED_FRAMES",
    http2_closed_header = "HTTP2_CLOSED_HEADER",
    proxy_protocol_missing = "PROXY_PROTOCOL_MISSING",
    proxy_protocol_malformed = "PROXY_PROTOCOL_MALFORMED",
    proxy_protocol_cut = "PROXY_PROTOCOL_CUT",
    proxy_protocol_oversized = "PROXY_PROTOCOL_OVERSIZED",
}

local CONNECTIONS = { "accepted", "handled", "active", "reading", "writing", "waiting", "total" }

local _M = {
    --- A request that a rate limit has refused.
    RATE_LIMITED = C.SLUICE_METRICS_RATE_LIMITED,
    --- Kinds of entities with lines.
    ROUTE = C.SLUICE_METRICS_ROUTE,
    SERVICE = C.SLUICE_METRICS_SERVICE,
}

--- Counts one more. Outside nginx nothing is counted.
-- @tparam number what such as RATE_LIMITED
-- @phases any but init
function _M.count(what)
    if is_nginx then
        C.sluice_metrics_count(what)
    end
end

--- How many routes, and services, may have lines: those in the lowest slots.
-- @treturn number
-- @phases any but init
function _M.series()
    return C.sluice_metrics_limit()
end

--- The node's sums.
-- @treturn cdata sluice_metrics_sum_t
-- @treturn table counts by name: `retries`, `rate_limited`, `pool_opened` ...
-- @phases any but init
function _M.node()
    local line = ffi.new("sluice_metrics_sum_t")
    local sums = ffi.new("uint64_t[?]", C.SLUICE_METRICS_COUNTS)
    C.sluice_metrics_node(line, sums)
    local counts = {}
    for name, word in pairs(COUNTS) do
        counts[name] = tonumber(sums[C["SLUICE_METRICS_" .. word]])
    end
    return line, counts
end

--- Which of a sum's numbers a field is: what rows of `sluice.exposition` are told.
-- @tparam string field of sluice_metrics_sum_t
-- @treturn number from 0
-- @phases all
function _M.number(field)
    return ffi.offsetof("sluice_metrics_sum_t", field) / 8
end

--- The labels of all routes, or services, that may have lines: of none, until `read_names` has read
-- them. They hold what was live then, and some 100 bytes each, until they are collected.
-- @tparam number kind ROUTE or SERVICE
-- @treturn cdata
-- @raise no memory
-- @phases any but init
function _M.names(kind)
    local names = C.sluice_metrics_names_create(kind)
    if names == nil then
        error("no memory")
    end
    return ffi.gc(names, C.sluice_metrics_names_destroy)
end

--- Reads the labels of some more slots: some hundred nanoseconds each.
-- @tparam cdata names
-- @tparam number slots
-- @treturn boolean whether there are more
-- @raise no memory
-- @phases any but init
function _M.read_names(names, slots)
    local rc = C.sluice_metrics_names_read(names, slots)
    if rc ~= OK and rc ~= AGAIN then
        error("no memory")
    end
    return rc == AGAIN
end

--- Writes a row's samples of all who have been counted, as many as have room: some 50 ns each.
-- @tparam cdata names
-- @tparam table row of `sluice.exposition`
-- @tparam cdata next uint32_t[1]: the name to begin with, from 0, then the one to go on with
-- @tparam cdata out char*
-- @tparam number size
-- @treturn number bytes
-- @treturn boolean whether there are more names
-- @phases any but init
function _M.write(names, row, next, out, size)
    local length = tonumber(C.sluice_metrics_write(names, row.row, next, out, size))
    return length, next[0] < C.sluice_metrics_names_count(names)
end

--- Addresses of upstreams whose tries have failed.
-- @treturn {table,...} `address`; `failed`: reason -> tries
-- @phases any but init
function _M.targets()
    local sums = ffi.new("sluice_metrics_target_t[?]", MAX_TARGETS)
    local out = {}
    for i = 0, C.sluice_metrics_targets(sums, MAX_TARGETS) - 1 do
        local failed = {}
        for reason = 1, C.SLUICE_METRICS_REASONS - 1 do
            local tries = tonumber(sums[i].failed[reason])
            if tries > 0 then
                failed[ffi.string(C.sluice_metrics_reason(reason))] = tries
            end
        end
        out[#out + 1] = { address = ffi.string(sums[i].address), failed = failed }
    end
    return out
end

--- nginx's connections with clients.
-- @treturn table|nil `accepted`, `handled`, `active`, `reading`, `writing`, `waiting`, and `total`,
--   their requests; nil: this nginx does not count them
-- @phases any but init
function _M.connections()
    local found = ffi.new("sluice_metrics_connections_t")
    if C.sluice_metrics_connections(found) == 0 then
        return nil
    end
    local out = {}
    for _, name in ipairs(CONNECTIONS) do
        out[name] = tonumber(found[name])
    end
    return out
end

return _M
