--- `kong.telemetry`: structured logs for OpenTelemetry.
-- @module gateway.kit.telemetry

local phases = require("gateway.kit.phases")

local check = phases.check
local type = type

local LOG = phases.allow(
    "telemetry.log",
    phases.set(
        "rewrite",
        "access",
        "balancer",
        "response",
        "header_filter",
        "body_filter",
        "timer",
        "log"
    )
)

local DISABLED = "Telemetry logging is disabled: log entry will not be recorded. Ensure the "
    .. "OpenTelemetry plugin is correctly configured to report logs in order to use this feature."

local _M = {}

--- Records an entry for the plugin opentelemetry, if there is one that takes logs.
-- @tparam string plugin_name
-- @tparam table plugin_config
-- @tparam string message_type
-- @tparam[opt] string message
-- @tparam[opt] table attributes
-- @treturn nil
-- @treturn string which argument is of the wrong type, or "Telemetry logging is disabled: ..."
-- @phases rewrite, access, response, header_filter, body_filter, log, timer
function _M.log(plugin_name, plugin_config, message_type, message, attributes)
    check(LOG)
    if type(plugin_name) ~= "string" then
        return nil, "plugin_name must be a string"
    elseif type(plugin_config) ~= "table" then
        return nil, "plugin_config must be a table"
    elseif type(message_type) ~= "string" then
        return nil, "message_type must be a string"
    elseif message and type(message) ~= "string" then
        return nil, "message must be a string"
    elseif attributes and type(attributes) ~= "table" then
        return nil, "attributes must be a table"
    end
    return nil, DISABLED
end

return _M
