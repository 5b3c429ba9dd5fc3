--- `resty.worker.events`: the interface of lua-resty-worker-events on sluice.events.
--
-- Its README is the contract. What is different: the transport is the ring
-- unless `transport` says otherwise (with "poll" the dictionary and `interval` are
-- used), so that nothing has to be polled for. `poll` waits for this worker's own posts.
-- @module resty.worker.events
-- @usage
-- local ev = require("resty.worker.events")
-- assert(ev.configure({ shm = "process_events" }))

local debug_lines = require("resty.events.debug_lines")
local dispatcher = require("sluice.events.dispatcher")
local events = require("sluice.events")
local handlers = require("resty.events.handlers")

local _M = {}

local DEFAULT_TIMEOUT_SECONDS = 2
local SHORTEST_TIMEOUT_SECONDS = 0.001
local LONGEST_TIMEOUT_SECONDS = 86400
local DEFAULT_WAIT_SECONDS = 0.5
local LOOK_SECONDS = 0.001
local FAR_SECONDS = 1e6
-- Events that may wait in this worker.
local MAX_WAITING = 1000000

-- Phases in which `poll` may wait.
local CAN_WAIT = { rewrite = true, access = true, content = true, timer = true, ssl_cert = true }

local stopping

local object
local configured_shm
local pid
local unique_timeout = DEFAULT_TIMEOUT_SECONDS
local wait_max = DEFAULT_WAIT_SECONDS

-- Numbers of this worker's own events, the last that was posted and the last that was handled;
-- local ones overtake those for all.
local posted = { all = 0, here = 0 }
local handled = { all = 0, here = 0 }

-- What is published is `{pid, all = number, data}`, or `{here = number, data}`.
local function unwrap(wrapped)
    return wrapped.data, wrapped.pid
end

local registered = handlers.new(unwrap)

--- See resty.events.handlers.
_M.event_list = handlers.event_list

local OWN = _M.event_list("resty-worker-events", "started", "stopping")

--- The events of this module itself.
_M.events = OWN

-- In the order in which the original checks them, and in its words.
local NUMBERS = { "timeout", "interval", "wait_interval", "wait_max", "shm_retries" }
local MUST_BE = setmetatable({ timeout = "greater than 0", shm_retries = "0 or greater" }, {
    __index = function()
        return "greater than or equal to 0"
    end,
})

-- What is wrong with the options.
local function check(opts)
    local shm = opts.shm
    if object and shm and shm ~= configured_shm then
        return "Already started, cannot change shm"
    elseif not object and not shm then
        return '"shm" option required to start'
    elseif not object and not ngx.shared[shm] then
        return ('shm "%s" not found'):format(tostring(shm))
    end
    for _, name in ipairs(NUMBERS) do
        local value = opts[name]
        if value and type(value) ~= "number" then
            return ('optional "%s" option must be a number'):format(name)
        elseif value and not (value >= 0 and (name ~= "timeout" or value > 0)) then
            -- Not a number, too.
            return ('"%s" must be %s'):format(name, MUST_BE[name])
        end
    end
    return nil
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
local function note_handled(wrapped)
    if wrapped.here then
        handled.here = wrapped.here
    elseif wrapped.pid == pid then
        handled.all = wrapped.all
    end
end

local note_id

local function subscribe_note()
    if object then
        if note_id then
            object:unsubscribe(note_id)
        end
        note_id = object:subscribe("*", "*", note_handled)
    end
end

--- Starts the worker's events; later calls change `timeout` and `wait_max`.
-- @tparam table opts those of the README; `transport`, and `listening` for the socket
-- @treturn true|nil
-- @treturn string|nil why not
-- @phases all but init
function _M.configure(opts)
    if type(opts) ~= "table" then
        error("Expected a table, got " .. type(opts), 2)
    end
    local problem = check(opts)
    if problem then
        return nil, problem
    end
    local made = object
    if not made then
        local called, ok, err = pcall(make, opts)
        if not called then
            return nil, ok
        elseif not ok then
            return nil, err
        end
        made = ok
    end
    local timeout = opts.timeout or unique_timeout
    unique_timeout = math.max(SHORTEST_TIMEOUT_SECONDS, math.min(timeout, LONGEST_TIMEOUT_SECONDS))
    wait_max = opts.wait_max or wait_max
    if object then
        return true
    end
    made.bus:take_turns(MAX_WAITING)
    if debug_lines.are_wanted() then
        debug_lines.subscribe(made.bus, "pid", unwrap)
    end
    registered:connect(made.bus)
    local ok, err = made:init_worker()
    if not ok then
        return nil, err
    end
    object = made
    configured_shm = opts.shm
    pid = ngx.worker.pid()
    subscribe_note()
    ngx.timer.at(FAR_SECONDS, stopping)
    return _M.post(OWN._source, OWN.started)
end

--- Whether `configure` succeeded.
function _M.configured()
    return object ~= nil
end

--- Waits until this worker's handlers have run for what it posted, for `wait_max` at most and where
-- the phase can wait.
-- @treturn string|nil "done"; "recursive": posted, and not handled yet, or called by a handler
-- @treturn string|nil why not
function _M.poll()
    if not object then
        return nil, "not configured"
    elseif dispatcher.is_calling() then
        return "recursive"
    end
    local can_wait = CAN_WAIT[ngx.get_phase()]
    local transport = object.transport
    if transport.poll and can_wait then
        local ok, err = transport:poll()
        if not ok then
            return err == "recursive" and err or nil, err
        end
    end
    local all, here = posted.all, posted.here
    local deadline = ngx.now() + wait_max
    while handled.all < all or handled.here < here do
        if not can_wait or ngx.now() >= deadline then
            return "recursive"
        end
        ngx.sleep(LOOK_SECONDS)
    end
    return "done"
end

-- What is wrong with the names of an event.
local function check_names(source, event)
    if type(source) ~= "string" or source == "" then
        return "source is required"
    elseif type(event) ~= "string" or event == "" then
        return "event is required"
    end
    return not object and "not configured" or nil
end

local function fail(source, event, err)
    err = ('failed posting event "%s" by "%s"; %s'):format(event, source, err)
    ngx.log(ngx.ERR, "worker-events: ", err)
    return nil, err
end

-- Publishes to all workers, or to one if there is a key.
local function publish(source, event, data, unique)
    local number = posted.all + 1
    local wrapped = { pid = pid, all = not unique and number or nil, data = data }
    local target = unique and { key = tostring(unique), timeout = unique_timeout } or "all"
    local called, ok, err, what = pcall(object.publish, object, target, source, event, wrapped)
    if not called then
        return nil, ok
    elseif not ok then
        return nil, what and err .. ": " .. what or err
    elseif not unique then
        posted.all = number
    end
    return true
end

--- Posts an event to all workers, or to one if there is a key. Its handlers run later.
-- @tparam string source
-- @tparam string event
-- @param data
-- @tparam[opt] string unique key
-- @treturn true|nil
-- @treturn string|nil why not
-- @phases all but init
function _M.post(source, event, data, unique)
    local problem = check_names(source, event)
    if problem then
        return nil, problem
    end
    local ok, err = publish(source, event, data, unique)
    if not ok then
        return fail(source, event, err)
    end
    return true
end

--- Posts an event to this worker, data as it is. Its handlers run later.
-- @treturn true|nil
-- @treturn string|nil why not
-- @phases all but init
function _M.post_local(source, event, data)
    local problem = check_names(source, event)
    if problem then
        return nil, problem
    end
    local number = posted.here + 1
    local wrapped = { here = number, data = data }
    local ok, err = dispatcher.push(object.bus, source, event, wrapped, nil, MAX_WAITING)
    if not ok then
        return fail(source, event, err)
    end
    posted.here = number
    return true
end

function stopping(premature)
    local transport = object.transport
    if not premature then
        ngx.timer.at(FAR_SECONDS, stopping)
    elseif not publish(OWN._source, OWN.stopping) then
        -- The socket's broker takes nothing more from a worker that leaves.
        _M.post_local(OWN._source, OWN.stopping)
    elseif transport.poll then
        transport:poll()
    end
end

--- Serves the broker's connections, with the socket transport.
-- @phases content
function _M.run()
    return object:run()
end

--- Registers a handler: `register(callback, source, event1, event2, ...)`, called with
-- (data, event, source, pid); while it waits, no other runs.
-- @treturn boolean true
function _M.register(callback, ...)
    handlers.check(callback)
    registered:register(false, callback, ...)
    subscribe_note()
    return true
end

--- The same, without keeping the callback alive.
-- @treturn boolean true
function _M.register_weak(callback, ...)
    handlers.check(callback)
    registered:register(true, callback, ...)
    subscribe_note()
    return true
end

--- Takes back what was registered with the same arguments.
-- @treturn boolean whether it was there
function _M.unregister(callback, ...)
    handlers.check(callback)
    return registered:unregister(callback, ...)
end

return _M
