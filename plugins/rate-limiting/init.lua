--- Limits how many requests may be made in a second, minute, hour, day, month or year.
-- @module plugins.rate-limiting

local counters = require("plugins.rate-limiting.counters")
local header = require("sluice.header")
local metrics = require("sluice.metrics")
local pdk = require("gateway.plugin.pdk")
local schema = require("plugins.rate-limiting.schema")
local unroll = require("sluice.unroll")
local window = require("plugins.rate-limiting.window")

local ngx = ngx
local remaining = counters.remaining

-- Trouble with the shared memory is logged at most this often by a worker.
local REPORT_INTERVAL_S = 10

local _M = {
    name = "rate-limiting",
    version = "0.1.0",
    priority = 910,
    schema = schema,
}

-- Rules compiled from configurations, by configuration. A rule goes when nobody has its
-- configuration any more.
local rules = setmetatable({}, { __mode = "k" })

-- By level: what is worse is not held back by a warning just before it.
local next_report_at = {}

-- Each tells whose requests are counted together, or nil where the request has no such thing.
local IDENTIFIERS = {
    ip = function()
        return pdk.client_ip()
    end,

    consumer = function()
        local owner = pdk.consumer() or pdk.credential()
        return owner and owner.id
    end,

    credential = function()
        local credential = pdk.credential()
        return credential and credential.id
    end,

    service = function()
        local service = pdk.service()
        return service and service.id
    end,

    header = function(conf)
        return pdk.header(conf.header_name)
    end,

    path = function(conf)
        return pdk.path() == conf.path and conf.path or nil
    end,
}

local LIMIT = header.own("RateLimit-Limit")
local REMAINING = header.own("RateLimit-Remaining")
local RESET = header.own("RateLimit-Reset")
local RETRY_AFTER = header.new("Retry-After")

local WRITE_LIMITS = [[
    local remaining = ...
    return function(limits)
        local limit, left, tightest, least
        {{limit = limits[$i]
        left = remaining(limit)
        limit.limit_header:set_response(limit.rate_text)
        limit.remaining_header:set_response(left)
        if not least or left <= least then
            tightest, least = limit, left
        end
        }}
        return tightest, least
    end
]]

local function report(level, now, ...)
    if now >= (next_report_at[level] or 0) then
        next_report_at[level] = now + REPORT_INTERVAL_S
        ngx.log(level, "rate-limiting: ", ...)
    end
end

local function compile(conf)
    local limits, has_share = counters.new(conf.__id, conf, ngx.shared.sluice_rate_limiting)
    if not has_share then
        report(
            ngx.WARN,
            ngx.time(),
            "rate_limiting_memory has no share for each window of all rules, raise it"
        )
    end
    for i = 1, limits.size do
        local limit = limits[i]
        local title = limit.period:gsub("^%l", string.upper)
        limit.limit_header = header.own("X-RateLimit-Limit-" .. title)
        limit.remaining_header = header.own("X-RateLimit-Remaining-" .. title)
        limit.rate_text = tostring(limit.rate)
    end
    return {
        limits = limits,
        write_limits = unroll.compile(WRITE_LIMITS, limits.size)(remaining),
        identify = IDENTIFIERS[conf.limit_by],
        with_headers = not conf.hide_client_headers,
    }
end

--- Writes the client's headers: each window's, and those of the one with the least left.
-- Of several with equally little left the longest counts, since it keeps the client waiting.
local function write_headers(rule, now, is_refused)
    local tightest, left = rule.write_limits(rule.limits)
    local seconds_left = window.seconds_left(tightest.finish, now)
    LIMIT:set_response(tightest.rate_text)
    REMAINING:set_response(left)
    RESET:set_response(seconds_left)
    if is_refused then
        RETRY_AFTER:set_response(seconds_left)
    end
end

--- Compiles the rules of configurations that this worker has met.
function _M.configure(_, confs)
    for _, conf in ipairs(confs) do
        rules[conf] = compile(conf)
    end
end

--- Counts the request, and refuses it when a window is full.
function _M.access(_, conf)
    local rule = rules[conf]
    local limits = rule.limits
    local identifier = rule.identify(conf)
    local is_fallback = not identifier
    local now = ngx.time()

    local full, err, is_shared = limits:take(identifier or pdk.client_ip(), is_fallback, now)
    if is_shared then
        report(
            ngx.WARN,
            now,
            "plugin ",
            conf.__id,
            " has more identifiers than its share of memory holds, ",
            "the further ones share a counter, raise rate_limiting_memory"
        )
    end
    if full == 0 then
        if rule.with_headers then
            write_headers(rule, now, false)
        end
        return
    end

    if full then
        metrics.count(metrics.RATE_LIMITED)
        if rule.with_headers then
            write_headers(rule, now, true)
        end
        return pdk.error(conf.error_code, conf.error_message)
    end

    report(ngx.ERR, now, "a request was not counted: ", err, ", raise rate_limiting_memory")
    if not conf.fault_tolerant then
        return pdk.error(500, "An unexpected error occurred")
    end
end

return _M
