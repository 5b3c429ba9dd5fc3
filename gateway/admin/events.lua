--- `GET /events`: what the workers have told each other, and how quickly.
-- @module gateway.admin.events

local response = require("gateway.admin.response")
local json = require("gateway.schema.json")

local _M = {}

--- Answers the request. Figures of all workers stand in shared memory; subscriptions are those of
-- the worker that answers.
-- @tparam table live what `gateway.admin` is given
-- @phases content
function _M.get(live)
    local stats = live.bus:stats()
    json.array(stats.workers)
    json.array(stats.subscriptions)
    stats.pid = ngx.worker.pid()
    return response.json(200, stats)
end

return _M
