--- `resty.events.compat`: the older interface on an object of `resty.events`,
-- one for each worker.
-- @module resty.events.compat
-- @usage
-- local ev = require("resty.events.compat")
-- assert(ev.configure({ listening = "unix:/run/x/events.sock" }))

local events = require("resty.events")
local handlers = require("resty.events.handlers")
local options = require("resty.events.options")

local _M = {}

local registered = handlers.new()
local object

--- See resty.events.handlers.
_M.event_list = handlers.event_list

--- Makes and starts the worker's events.
-- @tparam table opts those of resty.events; a wrong one throws
-- @treturn true|nil
-- @treturn string|nil why not
-- @phases init_worker
function _M.configure(opts)
    local problem = options.problem(opts)
    if problem then
        error(problem, 2)
    elseif object then
        return true
    end
    local made, err = events.new(opts)
    if not made then
        return nil, err
    end
    registered:connect(made.bus)
    local ok
    ok, err = made:init_worker()
    if not ok then
        return nil, err
    end
    object = made
    return true
end

--- Whether `configure` succeeded.
function _M.configured()
    return object ~= nil
end

--- Serves the broker's connections, where there is a broker.
-- @phases content
function _M.run()
    return object:run()
end

local function post(target, source, event, data)
    if not object then
        return nil, "not configured"
    end
    local called, ok, err = pcall(object.publish, object, target, source, event, data)
    if not called then
        error(ok, 2) -- post is called as a tail: at the line of who called the interface
    elseif not ok then
        return nil, err
    end
    return "done"
end

--- Publishes to all workers, or to one if there is a key.
-- @tparam string source
-- @tparam string event
-- @param data
-- @tparam[opt] string unique key
-- @treturn string|nil "done"
-- @treturn string|nil why not
function _M.post(source, event, data, unique)
    return post(unique or "all", source, event, data)
end

--- Publishes to this worker, data as it is.
function _M.post_local(source, event, data)
    return post("current", source, event, data)
end

--- Nothing has to be polled for.
-- @treturn string "done"
function _M.poll()
    return "done"
end

--- Registers a handler: `register(callback, source, event1, event2, ...)`, called with
-- (data, event, source, wid).
function _M.register(callback, ...)
    handlers.check(callback)
    return registered:register(false, callback, ...)
end

--- The same, without keeping the callback alive.
function _M.register_weak(callback, ...)
    handlers.check(callback)
    return registered:register(true, callback, ...)
end

--- Takes back what was registered with the same arguments.
-- @treturn boolean whether it was there
function _M.unregister(callback, ...)
    handlers.check(callback)
    return registered:unregister(callback, ...)
end

return _M
