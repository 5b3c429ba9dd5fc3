--- The times that Kong keeps in `ngx.ctx`, from what nginx knows of a request: none is kept here.
--
-- Kong stops its clock at each phase. Here plugins run between the request's first byte and the
-- moment when the upstream is asked, and their phases take no time of their own: those before
-- routing begin and end with the request, those of the response when its head came.
-- @module gateway.kit.ngx.times

local abi = require("sluice.ffi.abi")
local bit = require("bit")
local ffi = require("ffi")
local phases = require("gateway.kit.phases")

local band = bit.band
local C = ffi.C
local max = math.max
local ngx = ngx

-- Without nginx (the command line, unit tests) there are no requests.
local get_request = ngx and ngx.get_phase and require("resty.core.base").get_request

abi.declare("core/image", "gateway/request")

local LOG = phases.set("log")

local moments = ffi.new("sluice_times_t")

local LATE = phases.set("response", "header_filter", "body_filter", "log")

-- Whether the request has left the access phase.
local function is_late()
    return band(phases.bit(), LATE) ~= 0
end

local function now()
    return ngx.now() * 1000
end

-- nil for what has not been.
local function moment(value)
    return value ~= 0 and value or nil
end

local function look()
    C.sluice_times(get_request(), moments)
    return moments
end

local function started()
    return moment(look().started)
end

local function asked()
    return moment(look().asked)
end

-- When plugins were done with the request.
local function left()
    return asked() or is_late() and now() or nil
end

local function head()
    return is_late() and (moment(look().head) or now()) or nil
end

local function ended()
    return is_late() and (moment(look().ended) or now()) or nil
end

local function nothing()
    return 0
end

local function between(from, to)
    return function()
        local first, last = from(), to()
        return first and last and max(last - first, 0)
    end
end

--- Name in `ngx.ctx` -> function that tells it: milliseconds, moments since 1970; nil where it has
-- not come to that.
return {
    KONG_PROCESSING_START = started,
    KONG_REWRITE_START = started,
    KONG_REWRITE_ENDED_AT = started,
    KONG_REWRITE_TIME = nothing,
    KONG_ACCESS_START = started,
    KONG_ACCESS_ENDED_AT = left,
    KONG_ACCESS_TIME = between(started, left),
    KONG_BALANCER_START = asked,
    KONG_BALANCER_ENDED_AT = asked,
    KONG_BALANCER_TIME = between(asked, asked),
    KONG_UPSTREAM_DNS_TIME = between(asked, asked),
    KONG_PROXY_LATENCY = between(started, asked),
    KONG_WAITING_TIME = between(asked, head),
    KONG_HEADER_FILTER_START = head,
    KONG_HEADER_FILTER_ENDED_AT = head,
    KONG_HEADER_FILTER_TIME = between(head, head),
    KONG_BODY_FILTER_START = head,
    KONG_BODY_FILTER_ENDED_AT = ended,
    KONG_BODY_FILTER_TIME = between(head, ended),
    KONG_RECEIVE_TIME = function()
        return asked() and is_late() and max(ended() - head(), 0) or nil
    end,
    KONG_RESPONSE_LATENCY = function()
        return not asked() and is_late() and started() and max(now() - started(), 0) or nil
    end,
    KONG_LOG_START = function()
        return phases.bit() == LOG and now() or nil
    end,
    KONG_PROXIED = function()
        return asked() and true or nil
    end,
}
