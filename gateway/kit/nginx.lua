--- `kong.nginx`: the nginx below.
-- @module gateway.kit.nginx

local metrics = require("sluice.ffi.metrics")

local _M = {}

--- Which of nginx's subsystems runs plugins: here always "http".
-- @treturn string
-- @phases any
function _M.get_subsystem()
    return "http"
end

--- nginx's counters: `connections_accepted`, `connections_handled`, `connections_active`,
-- `connections_reading`, `connections_writing`, `connections_waiting`, `total_requests`.
-- @treturn table
-- @phases any but init
function _M.get_statistics()
    local found = metrics.connections() or {}
    return {
        connections_accepted = found.accepted,
        connections_active = found.active,
        connections_handled = found.handled,
        connections_reading = found.reading,
        connections_waiting = found.waiting,
        connections_writing = found.writing,
        total_requests = found.total,
    }
end

return _M
