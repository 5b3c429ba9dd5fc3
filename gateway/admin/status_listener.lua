--- The status listener: what probes and monitoring ask, for everybody who can connect. It reads
-- only, and what it says is no secret. Its statuses and bodies are Kong's.
-- @module gateway.admin.status_listener

local metrics = require("gateway.admin.metrics")
local paths = require("gateway.admin.path")
local ready = require("gateway.admin.ready")
local response = require("gateway.admin.response")
local status = require("gateway.admin.status")
local variables = require("gateway.pdk.variables")

local METHODS = "GET, HEAD, OPTIONS"
local READS = { GET = true, HEAD = true }

local _M = {}

local pages = {
    ["status"] = status.get_public,
    ["status/ready"] = function(live)
        local is_ready, why = ready.check(live)
        return response.json(is_ready and 200 or 503, { message = why or "ready" })
    end,
    ["metrics"] = metrics.get,
}

--- Answers one request. Yields.
-- @tparam table live what `gateway.admin` is given
-- @phases content
function _M.handle(live)
    if live.state().state == "left" then
        -- On a connection that was kept open over a reload: its client asks on another.
        return ngx.exit(ngx.HTTP_CLOSE)
    end
    local segments = paths.split(variables.request_uri:get():match("^[^?#]*"))
    local page = segments and pages[paths.join(segments)]
    local method = ngx.req.get_method()
    if not page then
        return response.not_found()
    elseif method == "OPTIONS" then
        return response.options(METHODS)
    elseif not READS[method] then
        return response.method_not_allowed(METHODS)
    end
    return page(live, ngx.req.get_uri_args())
end

return _M
