--- `GET /metrics`: what this node has counted, for Prometheus.
-- @module gateway.admin.metrics

local format = require("gateway.metrics.format")
local metrics = require("gateway.metrics")
local node_id = require("gateway.pdk.node_id")
local response = require("gateway.admin.response")
local variables = require("gateway.pdk.variables")

local _M = {}

--- Answers the request, piece by piece. Yields.
-- @tparam table live what `gateway.admin` is given
-- @phases content
function _M.get(live)
    local content_type = format.choose(variables.http_accept:get())
    response.begin(200, content_type)
    ngx.header["Vary"] = "Accept"
    if ngx.req.get_method() == "HEAD" then
        return ngx.send_headers()
    end
    local is_open = content_type == format.OPENMETRICS
    metrics.write(live, node_id.of(live.settings.prefix), is_open, function(piece)
        return ngx.print(piece) and ngx.flush(true)
    end)
end

return _M
