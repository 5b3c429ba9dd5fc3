--- `GET /metrics`: what this node has counted, for Prometheus.
-- @module gateway.control.admin.metrics

local format = require("gateway.control.metrics.format")
local metrics = require("gateway.control.metrics")
local response = require("gateway.control.admin.response")
local variables = require("gateway.request.variables")

local ngx = ngx

local _M = {}

--- Answers the request, piece by piece. Yields.
-- @tparam table live what `gateway.control.admin` is given
-- @phases content
function _M.get(live)
    local content_type = format.choose(variables.http_accept:get())
    response.begin(200, content_type)
    ngx.header["Vary"] = "Accept"
    if ngx.req.get_method() == "HEAD" then
        return ngx.send_headers()
    end
    metrics.write(live, content_type == format.OPENMETRICS, function(piece)
        return ngx.print(piece) and ngx.flush(true)
    end)
end

return _M
