--- `kong.router`: what the request was matched with.
-- @module gateway.kit.router

local pdk = require("gateway.pdk")
local phases = require("gateway.kit.phases")

local check = phases.check
local get_route, get_service = pdk.route, pdk.service

local ROUTED = phases.set("access", "response", "header_filter", "body_filter", "log")

local _M = {}

local GET_ROUTE = phases.allow("router.get_route", ROUTED)

--- The route that the request has matched, as it was then. Not to be changed.
-- @treturn table|nil nil: none has
-- @phases access, response, header_filter, body_filter, log
function _M.get_route()
    check(GET_ROUTE)
    return get_route()
end

local GET_SERVICE = phases.allow("router.get_service", ROUTED)

--- The route's service, as it was then. Not to be changed.
-- @treturn table|nil nil: it has none
-- @phases access, response, header_filter, body_filter, log
function _M.get_service()
    check(GET_SERVICE)
    return get_service()
end

return _M
