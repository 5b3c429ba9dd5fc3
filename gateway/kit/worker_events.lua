--- `kong.worker_events`: events between the workers, on sluice.events (docs/events.md).
--
-- The interface of lua-resty-events, as Kong gives it to plugins; a bus of its own, so that no
-- plugin hears, or says, what the gateway's parts tell each other. A handler that is registered
-- before the worker has started hears from then on.
-- @module gateway.kit.worker_events

local events = require("sluice.events")

local setmetatable = setmetatable
local type = type

local _M = {}

local ANY = "*"

local bus

-- Those that are registered: {callback, or a weak table with it, source, event, id}.
local registered = {}

local function check_callback(callback)
    if type(callback) ~= "function" then
        error("expected function, got: " .. type(callback), 3)
    end
end

-- What a handler is called by, which does not keep a weak one alive.
local function caller_of(one)
    local holder = one.holder
    if one.is_weak then
        return function(...)
            local callback = holder.callback
            return callback and callback(...)
        end
    end
    return holder.callback
end

local function connect(one)
    one.id = bus:subscribe(one.source, one.event, caller_of(one))
end

local function register(is_weak, callback, source, ...)
    local names = select("#", ...) > 0 and { ... } or { ANY }
    for _, event in ipairs(names) do
        local one = {
            holder = setmetatable({ callback = callback }, is_weak and { __mode = "v" } or nil),
            is_weak = is_weak,
            source = source or ANY,
            event = event,
        }
        registered[#registered + 1] = one
        if bus then
            connect(one)
        end
    end
end

--- Hears of events from then on.
-- @tparam function callback `(data, event, source, worker)`
-- @tparam[opt] string source nil: all
-- @tparam[opt] string ... events; none: all of the source
-- @raise "expected function, got: ..."
-- @phases init, init_worker and later
function _M.register(callback, source, ...)
    check_callback(callback)
    register(false, callback, source, ...)
end

--- The same, without keeping the callback alive.
-- @phases init, init_worker and later
function _M.register_weak(callback, source, ...)
    check_callback(callback)
    register(true, callback, source, ...)
end

--- Takes back what was registered with the same arguments.
-- @tparam function callback
-- @tparam[opt] string source
-- @tparam[opt] string ... events
-- @treturn boolean whether it was there
-- @phases init, init_worker and later
function _M.unregister(callback, source, ...)
    check_callback(callback)
    local names = select("#", ...) > 0 and { ... } or { ANY }
    local wanted, is_found = {}, false
    for _, event in ipairs(names) do
        wanted[event] = true
    end
    for i = #registered, 1, -1 do
        local one = registered[i]
        local is_it = one.holder.callback == callback and one.source == (source or ANY)
        if is_it and wanted[one.event] then
            table.remove(registered, i)
            if one.id then
                bus:unsubscribe(one.id)
            end
            is_found = true
        end
    end
    return is_found
end

local function post(target, source, event, data)
    if type(source) ~= "string" or source == "" then
        error("source is required", 3)
    elseif type(event) ~= "string" or event == "" then
        error("event is required", 3)
    elseif not bus then
        return nil, "not configured"
    end
    local called, ok, err = pcall(bus.publish, bus, target, source, event, data)
    if not called then
        error(ok, 3)
    elseif not ok then
        return nil, "failed to publish event: " .. tostring(err)
    end
    return "done"
end

--- Publishes to all workers, this one among them; where there is a key, to the first that takes it.
-- Does not yield.
-- @tparam string source
-- @tparam string event
-- @tparam any data what can be encoded: no functions
-- @tparam[opt] string unique key
-- @treturn string|nil "done"
-- @treturn string|nil why not
-- @raise "source is required", "event is required"; what cannot be encoded
-- @phases all but init
function _M.post(source, event, data, unique)
    return post(unique or "all", source, event, data)
end

--- Publishes to this worker, data as it is. Does not yield.
-- @tparam string source
-- @tparam string event
-- @tparam any data
-- @treturn string|nil "done"
-- @treturn string|nil why not
-- @phases all but init
function _M.post_local(source, event, data)
    return post("current", source, event, data)
end

--- Nothing has to be polled for.
-- @treturn string "done"
-- @phases any
function _M.poll()
    return "done"
end

--- Whether events are heard.
-- @treturn boolean
-- @phases any
function _M.configured()
    return bus ~= nil
end

--- Names of a source's events: any other name is an error.
-- @tparam string source
-- @tparam string ... events
-- @treturn table `_source`, and each event by its name
-- @phases any
function _M.event_list(source, ...)
    local list = { _source = source }
    for _, event in ipairs({ ... }) do
        list[event] = event
    end
    return setmetatable(list, {
        __index = function(_, name)
            error("event '" .. tostring(name) .. "' is an unknown event", 2)
        end,
    })
end

--- Hears, and is heard, from then on.
-- @phases init_worker
-- @local
function _M.init_worker()
    bus = assert(events.new({ name = "kong" }))
    for _, one in ipairs(registered) do
        connect(one)
    end
    assert(bus:init_worker())
end

return _M
