--- `resty.worker.events`: the interface of lua-resty-worker-events on sluice.events.
--
-- Its README is the contract. What is different: the transport is the ring
-- unless `transport` says otherwise (with "poll" `shm` and `interval` are
-- used), and nothing has to be polled for. `post` still returns when this
-- worker's handlers have run, where the phase lets it wait.
-- @module resty.worker.events
-- @usage
-- local ev = require("resty.worker.events")
-- assert(ev.configure({ shm = "process_events" }))

local events = require("sluice.events")
local handlers = require("resty.events.handlers")

local _M = {}

local DEFAULT_TIMEOUT_SECONDS = 2
local DEFAULT_WAIT_SECONDS = 0.5
local FAR_SECONDS = 1e6

-- Phases in which a post may wait for its own event.
local CAN_WAIT = { rewrite = true, access = true, content = true, timer = true, ssl_cert = true }

local object
local unique_timeout = DEFAULT_TIMEOUT_SECONDS
local wait_max = DEFAULT_WAIT_SECONDS

-- Posts that wait for their own event: number -> semaphore.
local waiting = {}
local last_number = 0

local registered = handlers.new(function(wrapped)
    return wrapped.data, wrapped.pid
end)

--- See resty.events.handlers.
_M.event_list = handlers.event_list

local OWN = _M.event_list("resty-worker-events", "started", "stopping")

--- The events of this module itself.
_M.events = OWN

local OPTIONS = {
    shm = "string",
    shm_retries = "number",
    timeout = "number",
    interval = "number",
    wait_interval = "number",
    wait_max = "number",
    transport = "string",
    listening = "string",
}

local function check(opts)
    if type(opts) ~= "table" then
        return nil, "a table with options expected"
    end
    for name, value in pairs(opts) do
        local expected = OPTIONS[name]
        if expected and type(value) ~= expected then
            return nil, ("optional '%s' option must be a %s"):format(name, expected)
        elseif expected == "number" and value < 0 then
            return nil, ("optional '%s' option must not be negative"):format(name)
        end
    end
    return true
end

local function make(opts)
    local transport = opts.transport or "ring"
    local is_poll = transport == "poll"
    return events.new({
        transport = transport,
        name = "resty.worker.events",
        listening = opts.listening,
        shm = is_poll and opts.shm or nil,
        interval = is_poll and opts.interval or nil,
        wait_max = is_poll and opts.wait_max or nil,
    })
end

-- Runs after all handlers of an event: it was subscribed last, and is again
-- whenever a handler was.
local function release(wrapped)
    local semaphore = wrapped.pid == ngx.worker.pid() and waiting[wrapped.number]
    if semaphore then
        waiting[wrapped.number] = nil
        semaphore:post(1)
    end
end

local release_id

local function subscribe_release()
    if object then
        if release_id then
            object:unsubscribe(release_id)
        end
        release_id = object:subscribe("*", "*", release)
    end
end

local function stopping(premature)
    if premature then
        registered:run(nil, OWN.stopping, OWN._source)
    else
        ngx.timer.at(FAR_SECONDS, stopping)
    end
end

--- Starts the worker's events; later calls change `timeout` and `wait_max`.
-- @tparam table opts those of the README; `transport`, and `listening` for the socket
-- @treturn true|nil
-- @treturn string|nil why not
-- @phases init_worker
function _M.configure(opts)
    local ok, err = check(opts)
    if not ok then
        return nil, err
    end
    unique_timeout = opts.timeout or unique_timeout
    wait_max = opts.wait_max or wait_max
    if object then
        return true
    end
    local made
    made, err = make(opts)
    if not made then
        return nil, err
    end
    registered:connect(made.bus)
    ok, err = made:init_worker()
    if not ok then
        return nil, err
    end
    object = made
    subscribe_release()
    ngx.timer.at(FAR_SECONDS, stopping)
    registered:run(nil, OWN.started, OWN._source)
    return true
end

--- Whether `configure` succeeded.
function _M.configured()
    return object ~= nil
end

--- Handles what there is to handle.
-- @treturn string|nil "done"; "recursive" in a handler
-- @treturn string|nil why not
function _M.poll()
    if not object then
        return nil, "not configured"
    end
    local transport = object.transport
    if transport.poll and CAN_WAIT[ngx.get_phase()] then
        local ok, err = transport:poll()
        if not ok then
            return err == "recursive" and err or nil, err
        end
    end
    return handlers.is_inside() and "recursive" or "done"
end

-- Waits until this worker's handlers have run for an event.
local function wait_for(number, semaphore)
    local transport = object.transport
    if transport.poll then
        transport:poll()
    end
    local handled = semaphore:wait(wait_max)
    waiting[number] = nil
    return handled and "done" or "recursive"
end

--- Posts an event to all workers, or to one if there is a key. Yields where the phase can.
-- @tparam string source
-- @tparam string event
-- @param data
-- @tparam[opt] string unique key
-- @treturn string|nil "done": this worker's handlers have run; "recursive": they will
-- @treturn string|nil why not
-- @phases all but init
function _M.post(source, event, data, unique)
    if not object then
        return nil, "not configured"
    end
    last_number = last_number + 1
    local number = last_number
    local wrapped = { pid = ngx.worker.pid(), number = number, data = data }
    local target = unique and { key = tostring(unique), timeout = unique_timeout } or "all"
    local semaphore
    if not unique and CAN_WAIT[ngx.get_phase()] and not handlers.is_inside() then
        semaphore = require("ngx.semaphore").new()
        waiting[number] = semaphore
    end
    local ok, err, what = object:publish(target, source, event, wrapped)
    if not ok then
        waiting[number] = nil
        return nil, what and err .. ": " .. what or err
    elseif semaphore then
        return wait_for(number, semaphore)
    end
    return unique and "done" or "recursive"
end

--- Runs this worker's handlers for an event, data as it is.
-- @treturn string|nil "done"
-- @treturn string|nil why not
-- @phases those that the handlers can run in
function _M.post_local(source, event, data)
    if not object then
        return nil, "not configured"
    end
    registered:run(data, event, source)
    return _M.poll()
end

--- Serves the broker's connections, with the socket transport.
-- @phases content
function _M.run()
    return object:run()
end

--- Registers a handler: `register(callback, source, event1, event2, ...)`, called with
-- (data, event, source, pid).
-- @treturn boolean true
function _M.register(callback, ...)
    registered:register(false, callback, ...)
    subscribe_release()
    return true
end

--- The same, without keeping the callback alive.
-- @treturn boolean true
function _M.register_weak(callback, ...)
    registered:register(true, callback, ...)
    subscribe_release()
    return true
end

--- Takes back what was registered with the same arguments.
-- @treturn boolean whether it was there
function _M.unregister(callback, ...)
    return registered:unregister(callback, ...)
end

return _M
