--- `kong.cluster_events`: events between nodes. Each node here is one of its own, so that nobody
-- hears what it says: as in Kong, where a node does not hear itself.
-- @module gateway.kit.cluster_events

local type = type

local _M = {}

local NUMBER_NEEDED = "delay must be a number"

--- Tells the other nodes.
-- @tparam string channel
-- @tparam string data
-- @tparam[opt] number delay seconds
-- @treturn true|nil
-- @treturn string|nil "channel must be a string", "data must be a string", "delay must be a number"
-- @phases any
function _M.broadcast(_, channel, data, delay)
    if type(channel) ~= "string" then
        return nil, "channel must be a string"
    elseif type(data) ~= "string" then
        return nil, "data must be a string"
    elseif delay ~= nil and type(delay) ~= "number" then
        return nil, NUMBER_NEEDED
    end
    return true
end

--- Hears what other nodes say.
-- @tparam string channel
-- @tparam function callback `(data)`
-- @treturn boolean true
-- @raise "channel must be a string", "callback must be a function"
-- @phases any
function _M.subscribe(_, channel, callback)
    if type(channel) ~= "string" then
        error("channel must be a string", 2)
    elseif type(callback) ~= "function" then
        error("callback must be a function", 2)
    end
    return true
end

return _M
