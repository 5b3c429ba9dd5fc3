--- What the workers count of traffic, in memory that they share
-- (module/nginx/ngx_sluice_metrics.h).
--
-- Any worker may ask for the sums: that takes no lock and disturbs nobody. Nothing here yields.
-- @module sluice.metrics
-- @usage
-- local metrics = require("sluice.metrics")
-- metrics.count(metrics.RATE_LIMITED)

local abi = require("sluice.abi")
local ffi = require("ffi")

local C = ffi.C

local is_nginx = abi.declare([[
typedef enum {
    SLUICE_METRICS_RETRIES = 0,
    SLUICE_METRICS_RATE_LIMITED,
    SLUICE_METRICS_POOL_OPENED,
    SLUICE_METRICS_POOL_REUSED,
    SLUICE_METRICS_POOL_CLOSED,
    SLUICE_METRICS_UNNAMED,
    SLUICE_METRICS_TIMER_RUNS,
    SLUICE_METRICS_TIMER_FAILURES,
    SLUICE_METRICS_POOL_IDLE,
    SLUICE_METRICS_COUNTS = 16
} sluice_metrics_count_e;
typedef enum {
    SLUICE_METRICS_ROUTE = 0,
    SLUICE_METRICS_SERVICE
} sluice_metrics_kind_e;
typedef struct {
    uint64_t buckets[15];
    uint64_t sum;
} sluice_metrics_histogram_t;
typedef struct {
    uint32_t stamp;
    uint32_t unanswered;
    uint64_t answered[5];
    uint64_t received;
    uint64_t sent;
    sluice_metrics_histogram_t total;
    sluice_metrics_histogram_t upstream;
    sluice_metrics_histogram_t gateway;
} sluice_metrics_line_t;
typedef struct {
    uint64_t accepted;
    uint64_t handled;
    uint64_t active;
    uint64_t reading;
    uint64_t writing;
    uint64_t waiting;
} sluice_metrics_connections_t;
void sluice_metrics_count(int what);
uint32_t sluice_metrics_limit(void);
const uint32_t *sluice_metrics_bounds(void);
void sluice_metrics_node(sluice_metrics_line_t *sum, uint64_t *counts);
int sluice_metrics_entity(int kind, uint32_t slot, uint32_t generation,
    sluice_metrics_line_t *sum);
int sluice_metrics_connections(sluice_metrics_connections_t *connections);
]])

local COUNTS = {
    retries = "RETRIES",
    rate_limited = "RATE_LIMITED",
    pool_opened = "POOL_OPENED",
    pool_reused = "POOL_REUSED",
    pool_closed = "POOL_CLOSED",
    unnamed = "UNNAMED",
    timer_runs = "TIMER_RUNS",
    timer_failures = "TIMER_FAILURES",
    pool_idle = "POOL_IDLE",
}

local CONNECTIONS = { "accepted", "handled", "active", "reading", "writing", "waiting" }

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
-- @treturn cdata sluice_metrics_line_t
-- @treturn table counts by name: `retries`, `rate_limited`, `pool_opened` ...
-- @phases any but init
function _M.node()
    local line = ffi.new("sluice_metrics_line_t")
    local sums = ffi.new("uint64_t[?]", C.SLUICE_METRICS_COUNTS)
    C.sluice_metrics_node(line, sums)
    local counts = {}
    for name, word in pairs(COUNTS) do
        counts[name] = tonumber(sums[C["SLUICE_METRICS_" .. word]])
    end
    return line, counts
end

--- Adds up what workers have counted of a route or service.
-- @tparam number kind ROUTE or SERVICE
-- @tparam number slot
-- @tparam number generation
-- @tparam cdata line sluice_metrics_line_t, that gets the sums
-- @treturn boolean whether anything was counted
-- @phases any but init
function _M.entity(kind, slot, generation, line)
    return C.sluice_metrics_entity(kind, slot, generation, line) ~= 0
end

--- nginx's connections with clients.
-- @treturn table|nil `accepted`, `handled`, `active`, `reading`, `writing`, `waiting`; nil: this
--   nginx does not count them
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

--- Upper bounds of the buckets of all histograms; beyond the last is one more.
-- @treturn {number,...} milliseconds
-- @phases any but init
function _M.bounds()
    local found, bounds = C.sluice_metrics_bounds(), {}
    for i = 1, 14 do
        bounds[i] = found[i - 1]
    end
    return bounds
end

return _M
