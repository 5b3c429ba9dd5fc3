--- `kong.plugin`.
-- @module gateway.kit.plugin

local phases = require("gateway.kit.phases")

local _M = {}

local find

--- The id of the plugin's entity whose configuration runs.
-- @treturn string|nil nil: none runs
-- @phases rewrite, access, response, header_filter, body_filter, log
function _M.get_id()
    local slot = find and phases.slot()
    return slot and find(slot) or nil
end

-- What plugins see.
local view = { get_id = _M.get_id }
_M.view = view

--- Called by the gateway when a worker starts.
-- @tparam function id_of `(slot)`: the id of the configuration in a slot, or nil
-- @local
function _M.use(id_of)
    find = id_of
end

return _M
