--- Handlers as the older interfaces register them: for everything, for a source,
-- or for some events of a source; also weakly.
--
-- Each is one subscription of the bus, once there is one, so that they run in
-- the order of registration and one that fails holds up no other.
-- @module resty.events.handlers

local _M = {}

local Handlers = {}
Handlers.__index = Handlers

local WEAK = { __mode = "v" }

--- Makes a list of handlers.
-- @tparam[opt] function unwrap from what was published to (data, sender)
-- @treturn table
function _M.new(unwrap)
    return setmetatable({ entries = {}, unwrap = unwrap }, Handlers)
end

--- Throws where the caller's caller did not give a function.
function _M.check(callback)
    if type(callback) ~= "function" then
        error("expected function, got: " .. type(callback), 3)
    end
end

local function find(self, callback, source, event)
    for i, entry in ipairs(self.entries) do
        if entry.ref[1] == callback and entry.source == source and entry.event == event then
            return i
        end
    end
    return nil
end

local function remove(self, at)
    local entry = table.remove(self.entries, at)
    if entry.id then
        self.bus:unsubscribe(entry.id)
    end
end

local function forget(self, entry)
    for i, other in ipairs(self.entries) do
        if other == entry then
            return remove(self, i)
        end
    end
end

local function subscribe(self, entry)
    local unwrap = self.unwrap
    local ref = entry.ref
    entry.id = self.bus:subscribe(entry.source, entry.event, function(data, event, source, sender)
        local callback = ref[1]
        if not callback then
            return forget(self, entry)
        end
        if unwrap then
            data, sender = unwrap(data)
        end
        callback(data, event, source, sender)
    end)
end

local function add(self, is_weak, callback, source, event)
    if find(self, callback, source, event) then
        return
    end
    local entry = { source = source, event = event }
    entry.ref = setmetatable({ callback }, is_weak and WEAK or nil)
    table.insert(self.entries, entry)
    if self.bus then
        subscribe(self, entry)
    end
end

-- Calls `act` for each event that was named, or for all of them.
local function each(source, events, act)
    local count = select("#", unpack(events, 1, events.n))
    if source == nil or count == 0 then
        return act(source or "*", "*")
    end
    for i = 1, count do
        act(source, events[i])
    end
end

--- Registers a handler. Registering the same again changes nothing.
-- @tparam boolean is_weak do not keep the callback alive
-- @tparam function callback
-- @tparam[opt] string source
-- @tparam[opt] string ... events
-- @treturn boolean true
function Handlers:register(is_weak, callback, source, ...)
    each(source, { n = select("#", ...), ... }, function(one_source, event)
        add(self, is_weak, callback, one_source, event)
    end)
    return true
end

--- Takes back what was registered with the same arguments.
-- @treturn boolean whether any of it was there
function Handlers:unregister(callback, source, ...)
    local found = false
    each(source, { n = select("#", ...), ... }, function(one_source, event)
        local at = find(self, callback, one_source, event)
        if at then
            found = true
            remove(self, at)
        end
    end)
    return found
end

--- From now on the handlers hear a bus.
function Handlers:connect(bus)
    self.bus = bus
    for _, entry in ipairs(self.entries) do
        subscribe(self, entry)
    end
end

--- A table of a source's events; a name that is not in it is an error.
-- @tparam string source
-- @tparam string ... events
-- @treturn table
function _M.event_list(source, ...)
    local list = { _source = source }
    for _, event in ipairs({ ... }) do
        list[event] = event
    end
    return setmetatable(list, {
        __index = function(_, name)
            error(("event '%s' is an unknown event"):format(tostring(name)), 2)
        end,
    })
end

return _M
