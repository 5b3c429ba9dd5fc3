--- `resty.events`: the interface of lua-resty-events on sluice.events.
--
-- Its README is the contract. What is different: the transport is the ring
-- unless `transport` says otherwise, and then there is no broker to listen for:
-- `listening` is only a name then, and may be left out. Handlers run in the
-- order in which they were subscribed. docs/events-transports.md has more.
-- @module resty.events
-- @usage
-- local ev = assert(require("resty.events").new({ listening = "unix:/run/x/events.sock" }))

local bus = require("sluice.events.bus")
local dispatcher = require("sluice.events.dispatcher")
local events = require("sluice.events")

local _M = {}

local mt = { __index = _M }

local DEFAULT_QUEUE = 10240
local DEFAULT_PAYLOAD = 65536
local DEFAULT_UNIQUE_TIMEOUT = 5
local MAX_PAYLOAD = 16 * 1024 * 1024

local function check(opts, name, kind, is_valid)
    local value = opts[name]
    if value == nil then
        return
    elseif type(value) ~= kind then
        error(('"%s" option must be a %s'):format(name, kind), 4)
    elseif is_valid and not is_valid(value) then
        error(('"%s" option is invalid'):format(name), 4)
    end
end

local function check_all(opts)
    check(opts, "transport", "string")
    check(opts, "listening", "string", function(value)
        return value:find("^unix:.")
    end)
    check(opts, "broker_id", "number", function(value)
        return value >= 0 and value % 1 == 0 and (not ngx.worker or value < ngx.worker.count())
    end)
    check(opts, "unique_timeout", "number", function(value)
        return value > 0
    end)
    check(opts, "max_queue_len", "number", function(value)
        return value > 0
    end)
    check(opts, "max_payload_len", "number", function(value)
        return value > 0 and value <= MAX_PAYLOAD
    end)
    check(opts, "testing", "boolean")
end

-- The options of sluice.events. `listening` tells apart buses that do not hear each other.
local function translate(opts)
    local transport = opts.transport or "ring"
    local is_socket = transport == "socket"
    return {
        transport = transport,
        name = "resty.events " .. (opts.listening or ""),
        unique_timeout = opts.unique_timeout or DEFAULT_UNIQUE_TIMEOUT,
        queue_len = opts.max_queue_len or DEFAULT_QUEUE,
        max_payload_len = opts.max_payload_len or DEFAULT_PAYLOAD,
        listening = is_socket and opts.listening or nil,
        broker_id = is_socket and opts.broker_id or nil,
        shm = transport == "poll" and opts.shm or nil,
        interval = transport == "poll" and opts.interval or nil,
    }
end

--- Makes an events object.
-- @tparam[opt] table opts `listening`, `broker_id`, `unique_timeout`, `max_queue_len`,
--   `max_payload_len`, `testing` as in the README; `transport` ("ring", "socket", "poll"); with
--   poll `shm` and `interval`. A wrong one throws.
-- @treturn table|nil
-- @treturn string|nil what is missing
-- @phases init, init_worker
function _M.new(opts)
    opts = opts or {}
    check_all(opts)
    local self = { queue_len = opts.max_queue_len or DEFAULT_QUEUE }
    if opts.testing then
        self.bus = bus.new("resty.events testing")
        return setmetatable(self, mt)
    end
    if opts.transport == "socket" and not opts.listening then
        error('"listening" option required to start', 2)
    end
    local ev, err = events.new(translate(opts))
    if not ev then
        return nil, err
    end
    self.events = ev
    self.bus = ev.bus
    return setmetatable(self, mt)
end

--- Starts it in a worker.
-- @treturn true|nil
-- @treturn string|nil why not
-- @phases init_worker
function _M:init_worker()
    if self.events then
        return self.events:init_worker()
    end
    dispatcher.start()
    return true
end

--- Serves the broker's connections, where there is a broker.
-- @phases content
function _M:run()
    if self.events then
        return self.events:run()
    end
    return ngx.exit(ngx.HTTP_NOT_FOUND)
end

--- Publishes.
-- @tparam string target "all", "current" or a key
-- @tparam string source
-- @tparam string event
-- @param data
-- @treturn true|nil
-- @treturn string|nil why not
-- @phases all but init
function _M:publish(target, source, event, data)
    if target == "current" or not self.events then
        -- As it is, and without a sender.
        return dispatcher.push(self.bus, source, event, data, nil, self.queue_len)
    end
    local ok, err, what = self.events:publish(target, source, event, data)
    if not ok then
        return nil, what and err .. ": " .. what or err
    end
    return true
end

--- Subscribes.
-- @tparam string source or "*"
-- @tparam string event or "*"
-- @tparam function callback called with (data, event, source, wid)
-- @treturn number id
function _M:subscribe(source, event, callback)
    if type(callback) ~= "function" then
        error("bad argument #3 to 'subscribe' (function expected, got " .. type(callback) .. ")", 2)
    end
    return self.bus:subscribe(source, event, callback)
end

--- Ends a subscription.
-- @tparam number id
function _M:unsubscribe(id)
    self.bus:unsubscribe(id)
end

--- Whether this worker hears events.
function _M:is_ready()
    if self.events then
        return self.events:is_ready()
    end
    return dispatcher.is_running()
end

return _M
