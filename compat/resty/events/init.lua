--- `resty.events`: the interface of lua-resty-events on sluice.events.
--
-- Its README is the contract. What is different: the transport is the ring
-- unless `transport` says otherwise, and then there is no broker: `listening` is
-- only a name. Handlers run in the order in which they were subscribed.
-- docs/events-transports.md has more.
-- @module resty.events
-- @usage
-- local ev = assert(require("resty.events").new({ listening = "unix:/run/x/events.sock" }))

local bus = require("sluice.events.bus")
local debug_lines = require("resty.events.debug_lines")
local dispatcher = require("sluice.events.dispatcher")
local events = require("sluice.events")
local failure = require("sluice.events.failure")
local options = require("resty.events.options")

local _M = {}

local mt = { __index = _M }

-- Throws at the line of who called a function of this module. pcall has no line: then at ours, so
-- that a position always stands before the message.
local function refuse(message)
    local caller = debug.getinfo(3, "S")
    error(message, caller and caller.what == "C" and 2 or 3)
end

--- Makes an events object.
-- @tparam table opts those of the README; also `transport` ("ring", "socket", "poll"); with poll
--   `shm` and `interval`. A wrong one throws.
-- @treturn table|nil
-- @treturn string|nil what is missing
-- @phases init, init_worker
function _M.new(opts)
    local problem = options.problem(opts)
    if problem then
        refuse(problem)
    end
    local own = options.translate(opts)
    local self = setmetatable({ max_payload_len = own.max_payload_len }, mt)
    self.queue_len = own.queue_len
    if opts.testing then
        self.bus = bus.new(own.name)
        return self
    end
    local called, ev, err = pcall(events.new, own)
    if not called then
        refuse(ev)
    elseif not ev then
        return nil, err
    end
    self.events = ev
    self.bus = ev.bus
    if not self.bus.turn then
        self.bus:take_turns(own.queue_len)
    end
    return self
end

-- Whether debug lines are wanted; when that is first known, also those for handled events.
local function is_tracing(self)
    if self.tracing == nil then
        self.tracing = debug_lines.are_wanted()
        if self.tracing then
            debug_lines.subscribe(self.bus, "wid")
        end
    end
    return self.tracing
end

--- Starts it in a worker.
-- @treturn true|nil
-- @treturn string|nil why not
-- @phases init_worker
function _M:init_worker()
    is_tracing(self)
    if self.events then
        return self.events:init_worker()
    end
    return ngx.timer.at(0, function()
        self.is_started = true
    end)
end

--- Serves the broker's connections, where there is a broker.
-- @phases content
function _M:run()
    if self.events then
        return self.events:run()
    end
    return ngx.exit(ngx.HTTP_NOT_FOUND)
end

-- With `testing`: runs the handlers here and now.
local function publish_here(self, source, event, data)
    if is_tracing(self) then
        debug_lines.published("testing")
    end
    local list = self.bus:list(source, event)
    for i = 1, list.n do
        local ok, err = true, nil
        if list[i].active then
            ok, err = xpcall(list[i].callback, failure.describe, data, event, source)
        end
        if not ok then
            ngx.log(ngx.ERR, "sluice: handler of ", source, "/", event, " failed: ", err)
        end
    end
    return true
end

-- A refusal of sluice.events in the original's words.
local function describe(self, err, what)
    if err == "full" then
        err = "queue overflow"
    elseif err == "payload too large" then
        err = ("payload exceeds the limitation (%d)"):format(self.max_payload_len)
    elseif what then
        err = err .. ": " .. what
    end
    return "failed to publish event: " .. err
end

local function push_local(self, source, event, data)
    if not self.events.started and ngx.get_phase() == "init" then
        return nil, "not ready"
    end
    -- As it is, and without a sender.
    return dispatcher.push(self.bus, source, event, data, nil, self.queue_len)
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
    if type(target) ~= "string" or target == "" then
        error("target is required", 2)
    elseif type(source) ~= "string" or source == "" then
        error("source is required", 2)
    elseif type(event) ~= "string" or event == "" then
        error("event is required", 2)
    elseif not self.events then
        return publish_here(self, source, event, data)
    end
    local called, ok, err, what
    if target == "current" then
        called, ok, err = true, push_local(self, source, event, data)
    else
        called, ok, err, what = pcall(self.events.publish, self.events, target, source, event, data)
    end
    if not called then
        error(ok, 2)
    elseif not ok then
        return nil, describe(self, err, what)
    elseif target ~= "current" and is_tracing(self) then
        debug_lines.published(target, err == "repeat")
    end
    return true
end

--- Subscribes.
-- @tparam string source or "*"
-- @tparam string event or "*"
-- @tparam function callback called with (data, event, source, wid); while it waits, no other runs
-- @treturn string id
function _M:subscribe(source, event, callback)
    if type(source) ~= "string" or source == "" then
        error("source is required", 2)
    elseif type(event) ~= "string" or event == "" then
        error("event is required", 2)
    elseif type(callback) ~= "function" then
        error("expected function, got: " .. type(callback), 2)
    end
    return tostring(self.bus:subscribe(source, event, callback))
end

--- Ends a subscription.
-- @tparam string id
function _M:unsubscribe(id)
    if type(id) ~= "string" or id == "" then
        error("id is required", 2)
    end
    self.bus:unsubscribe(tonumber(id))
end

--- Whether this worker hears events.
function _M:is_ready()
    if self.events then
        return self.events:is_ready()
    end
    return self.is_started == true
end

return _M
