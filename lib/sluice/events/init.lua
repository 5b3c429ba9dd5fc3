--- Events between all workers of an nginx: everyone hears everything, at once, in order.
--
-- docs/events.md has the synopsis, the guarantees and the limits. This file is the interface, the
-- same for each transport: `ring` (shared memory, the default), `socket` (a broker), `poll`.
-- @module sluice.events
-- @usage
-- local events = require("sluice.events")
-- local ev = assert(events.new())        -- in init_worker (or init)
-- ev:subscribe("users", "*", function(data, event, source, wid) end)
-- assert(ev:init_worker())               -- in init_worker
-- ev:publish("all", "users", "login", { id = 7 })   -- in any phase

local bus = require("sluice.events.bus")
local dispatcher = require("sluice.events.dispatcher")
local worker_id = require("sluice.events.worker_id")

local _M = {}

local mt = { __index = _M }

local MEGABYTE = 1024 * 1024
local MAX_PAYLOAD_BYTES = 16 * MEGABYTE
-- Of a source, and of an event; the ring has room for the bus's name besides.
local NAME_MAX = 3840

-- Loaded when asked for: a transport may need what another does without.
local TRANSPORTS = {
    ring = function()
        return require("sluice.events.ring")
    end,
    socket = function()
        return require("sluice.events.socket")
    end,
    poll = function()
        return require("sluice.events.poll")
    end,
}

-- Options of every transport: type, default, bounds.
local OPTIONS = {
    transport = { type = "string", default = "ring" },
    name = { type = "string", default = "" },
    queue_len = { type = "number", default = 10000, min = 1, max = 10000000 },
    queue_bytes = { type = "number", default = 64 * MEGABYTE, min = 1, max = 2 ^ 40 },
    max_payload_len = {
        type = "number",
        default = MAX_PAYLOAD_BYTES,
        min = 1,
        max = MAX_PAYLOAD_BYTES,
    },
    unique_timeout = { type = "number", default = 5, min = 0.001, max = 86400 },
    redeliver = { type = "boolean", default = false },
}

-- What a target may hold, by what makes it one.
local TARGET_FIELDS = {
    worker = { worker = true },
    key = { key = true, timeout = true, redeliver = true },
}

-- Buses by transport and name: all who give the same name share one.
local buses = {}

-- The text of an error that a public function throws at its caller's line.
local function misuse(argument, name, expected, got)
    return ("bad argument #%d to '%s' (%s expected, got %s)"):format(argument, name, expected, got)
end

local function describe_value(value)
    return type(value) == "string" and ("'%s'"):format(value) or type(value)
end

local function check_option(name, option, value)
    if type(value) ~= option.type then
        return ("option '%s': %s expected, got %s"):format(name, option.type, type(value))
    end
    if option.min and not (value >= option.min and value <= option.max) then
        return ("option '%s': must be between %s and %s"):format(name, option.min, option.max)
    end
    return nil
end

local function check_options(opts, transport)
    local checked = {}
    for name, value in pairs(opts) do
        local option = OPTIONS[name]
        if option then
            local err = check_option(name, option, value)
            if err then
                return nil, err
            end
        elseif not transport.options[name] then
            return nil, ("unknown option '%s'"):format(tostring(name))
        elseif type(value) ~= transport.options[name] then
            return nil, check_option(name, { type = transport.options[name] }, value)
        end
        checked[name] = value
    end
    for name, option in pairs(OPTIONS) do
        if checked[name] == nil then
            checked[name] = option.default
        end
    end
    if #checked.name > 200 or checked.name:find("[%z\1-\31]") then
        return nil, "option 'name': must be at most 200 bytes without control characters"
    end
    return checked
end

--- Makes one end of a bus. Every `new` with the same name and transport is an end of the same
-- bus; buses of different names do not hear each other.
-- @tparam[opt] table opts see docs/events.md; a wrong one throws
-- @treturn table|nil
-- @treturn string|nil what is missing, for people
-- @phases init, init_worker, and later
function _M.new(opts)
    opts = opts or {}
    if type(opts) ~= "table" then
        error(misuse(1, "new", "table", type(opts)), 2)
    end
    local name = opts.transport or "ring"
    if not TRANSPORTS[name] then
        error("option 'transport': must be ring, socket or poll", 2)
    end
    local transport = TRANSPORTS[name]()
    local checked, err = check_options(opts, transport)
    if not checked then
        error(err, 2)
    end
    local instance
    instance, err = transport.new(checked)
    if not instance then
        return nil, err
    end
    local key = name .. "/" .. checked.name
    if not buses[key] then
        buses[key] = bus.new(checked.name)
    end
    return setmetatable({
        transport = instance,
        bus = buses[key],
        opts = checked,
        transport_name = name,
        unique = { timeout = checked.unique_timeout, redeliver = checked.redeliver },
        started = false,
    }, mt)
end

--- Starts this end in a worker: from here on its subscriptions hear events.
-- @treturn true|nil
-- @treturn string|nil why not; with true "no slot" (ring): from when one is free on, see is_ready
-- @phases init_worker
function _M:init_worker()
    if self.started then
        return true
    end
    local own = self.bus
    self.transport.wanted = function(source, event)
        return own:list(source, event).n > 0
    end
    local ok, err = self.transport:start(function(source, event, data, wid)
        dispatcher.deliver(own, source, event, data, wid)
    end, own)
    if not ok then
        return nil, err
    end
    dispatcher.start()
    self.started = true
    return true, err
end

local function check_name(argument, verb, value)
    if type(value) ~= "string" then
        return misuse(argument, verb, "string", type(value))
    elseif value == "" or #value > NAME_MAX then
        return misuse(argument, verb, "1 to 3840 bytes", #value .. " bytes")
    end
    return nil
end

-- What is wrong with the names of an event; the common case is one comparison after the other.
local function check_published(source, event)
    local problem = check_name(2, "publish", source) or check_name(3, "publish", event)
    if problem then
        return problem
    elseif source == "*" then
        return misuse(2, "publish", "a name", "'*'")
    elseif event == "*" then
        return misuse(3, "publish", "a name", "'*'")
    elseif source == "sluice" then
        return misuse(2, "publish", "a name that is not the library's own", "'sluice'")
    elseif source:byte() == 31 then
        return misuse(2, "publish", "a printable name", "byte 31")
    end
    return nil
end

-- The target as the transports know it: kind, where, options; or nil and what is wrong.
local function resolve_target(self, target)
    if type(target) == "string" then
        return "unique", target, self.unique
    elseif type(target) ~= "table" then
        return nil, misuse(1, "publish", "string or table", type(target))
    end
    local what = target.worker ~= nil and "worker" or "key"
    if what == "key" and type(target.key) ~= "string" then
        return nil, misuse(1, "publish", "a target", "a table without 'worker' and 'key'")
    end
    for name in pairs(target) do
        if not TARGET_FIELDS[what][name] then
            local got = ("a table with '%s' and '%s'"):format(what, tostring(name))
            return nil, misuse(1, "publish", "a target", got)
        end
    end
    if what == "worker" then
        local id = target.worker
        if id == "agent" then
            return "worker", worker_id.AGENT
        elseif type(id) ~= "number" or id < 0 or id > worker_id.MAX or id % 1 ~= 0 then
            local expected = ("worker = 0 to %d or 'agent'"):format(worker_id.MAX)
            return nil, misuse(1, "publish", expected, describe_value(id))
        end
        return "worker", id
    end
    local timeout = target.timeout or self.unique.timeout
    local problem = check_option("timeout", OPTIONS.unique_timeout, timeout)
    if problem then
        return nil, "bad argument #1 to 'publish' (" .. problem .. ")"
    end
    local redeliver = target.redeliver
    if redeliver == nil then
        redeliver = self.unique.redeliver
    elseif type(redeliver) ~= "boolean" then
        problem = check_option("redeliver", OPTIONS.redeliver, redeliver)
        return nil, "bad argument #1 to 'publish' (" .. problem .. ")"
    end
    return "unique", target.key, { timeout = timeout, redeliver = redeliver }
end

--- Publishes an event. It does not yield.
-- @tparam string|table target "all"; "current": this worker, data as it is; any other string: a
--   key, and one live worker gets the event, repeats of the key within `unique_timeout` being
--   ignored; `{key =, timeout =, redeliver =}`: the same with options of its own;
--   `{worker = id}`: that worker (`"agent"`: the privileged agent)
-- @tparam string source 1 to 3840 bytes, not "*"
-- @tparam string event the same
-- @param data what LuaJIT's string buffers serialise, up to 16 MB then
-- @treturn true|string|nil true: the event is in the log (socket, poll: handed over), or "queued":
--   it waits in this worker for space and goes out by itself
-- @treturn string|nil "full", "payload too large", "not serialisable", "too many unique keys",
--   "not ready": no worker yet (init), or not any more; with true "repeat": the key is known, so
--   nobody gets it (ring and poll: the socket's broker finds out later)
-- @treturn string|nil with "not serialisable": what
-- @phases all but init
function _M:publish(target, source, event, data)
    local problem = check_published(source, event)
    if problem then
        error(problem, 2)
    end
    if target == "all" then
        return self.transport:publish("all", nil, source, event, data)
    elseif target == "current" then
        -- What init left here every worker would inherit.
        if not self.started and ngx.get_phase() == "init" then
            return nil, "not ready"
        end
        local wid = ngx.worker.id()
        return dispatcher.push(self.bus, source, event, data, wid, self.opts.queue_len)
    end
    local kind, where, opts = resolve_target(self, target)
    if not kind then
        error(where, 2)
    end
    return self.transport:publish(kind, where, source, event, data, opts)
end

--- Subscribes. Callbacks of one event run in the order of subscription, in this worker's
-- background context: they may yield, and hold up others only while they compute. One that is
-- made in a callback does not join the dispatch that runs.
-- @tparam string source or "*" for any
-- @tparam string event or "*" for any
-- @tparam function callback called with (data, event, source, wid); wid is the worker id of the
--   sender, nil for the privileged agent
-- @treturn number an id for unsubscribe
-- @phases all
function _M:subscribe(source, event, callback)
    local problem = check_name(1, "subscribe", source) or check_name(2, "subscribe", event)
    if not problem and type(callback) ~= "function" then
        problem = misuse(3, "subscribe", "function", type(callback))
    end
    if problem then
        error(problem, 2)
    end
    return self.bus:subscribe(source, event, callback)
end

--- Ends a subscription at once: also for an event that is being dispatched.
-- @tparam number id
-- @treturn true|nil
-- @treturn string|nil "not found"
-- @phases all
function _M:unsubscribe(id)
    if type(id) ~= "number" then
        error(misuse(1, "unsubscribe", "number", type(id)), 2)
    end
    if self.bus:unsubscribe(id) then
        return true
    end
    return nil, "not found"
end

--- Serves a connection to the broker: the content handler of the socket transport's location.
-- Yields, for as long as the connection lives. With a transport that has no broker: 404.
-- @tparam[opt] string mode "raw": no HTTP upgrade goes before the frames
-- @phases content
function _M:run(mode)
    local transport = self.transport
    if transport.run then
        return transport:run(mode)
    end
    return ngx.exit(ngx.HTTP_NOT_FOUND)
end

--- Whether this worker hears events: its background context runs and the transport is connected.
-- @treturn boolean
-- @phases all
function _M:is_ready()
    return self.started and self.transport:is_ready()
end

--- Figures: the transport's, and this worker's subscriptions.
-- @treturn table
-- @phases all
function _M:stats()
    local stats = self.transport:stats()
    stats.transport = self.transport_name
    stats.bus = self.bus.name
    stats.depth = dispatcher.depth()
    stats.subscriptions = self.bus:stats()
    return stats
end

return _M
