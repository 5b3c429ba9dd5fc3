--- Who wants which events: the subscriptions of one bus.
--
-- Lists are made once for each pair of source and event and never changed afterwards, so a
-- running dispatch keeps the list that it began with.
-- @module sluice.events.bus

local turn = require("sluice.events.turn")

local _M = {}

local mt = { __index = _M }

-- Pairs of names to remember; beyond, all are forgotten and found again.
local MAX_LISTS = 8192

-- Ids are unique in a worker, over all buses.
local last_id = 0

local NONE = { n = 0 }

--- @tparam string name
-- @treturn table a bus without subscriptions
function _M.new(name)
    return setmetatable({
        name = name,
        subscriptions = {},
        lists = {},
        count = 0,
        version = 0,
    }, mt)
end

local function changed(self)
    self.lists = {}
    self.count = 0
    self.version = self.version + 1
    if self.on_change then
        self.on_change()
    end
end

--- @tparam string source or "*"
-- @tparam string event or "*"
-- @tparam function callback
-- @tparam[opt] boolean is_first run it before the others, not after them
-- @treturn number id
function _M:subscribe(source, event, callback, is_first)
    last_id = last_id + 1
    local subscriptions = self.subscriptions
    table.insert(subscriptions, is_first and 1 or #subscriptions + 1, {
        id = last_id,
        source = source,
        event = event,
        callback = callback,
        active = true,
        calls = 0,
        errors = 0,
        seconds = 0,
        quiet_until = 0,
        unlogged = 0,
    })
    changed(self)
    return last_id
end

--- From now on an event's callbacks begin when those of the one before have returned.
-- @tparam number limit events that may wait for their turn
function _M:take_turns(limit)
    self.turn = turn.new(self, limit)
    changed(self)
end

--- @tparam number id
-- @treturn boolean whether there was one
function _M:unsubscribe(id)
    local subscriptions = self.subscriptions
    for i = 1, #subscriptions do
        if subscriptions[i].id == id then
            subscriptions[i].active = false
            table.remove(subscriptions, i)
            changed(self)
            return true
        end
    end
    return false
end

-- The library's own notices are for those who ask for them by name.
local function matches(subscription, source, event)
    return (subscription.source == source or (subscription.source == "*" and source ~= "sluice"))
        and (subscription.event == event or subscription.event == "*")
end

local function make(self, source, event)
    local list = { n = 0, turn = self.turn }
    for _, subscription in ipairs(self.subscriptions) do
        if matches(subscription, source, event) then
            list.n = list.n + 1
            list[list.n] = subscription
        end
    end
    return list.n > 0 and list or NONE
end

--- The subscriptions for an event, in the order of subscription.
-- @tparam string source
-- @tparam string event
-- @treturn table an array with its length as `n`, and the bus's `turn` where it takes turns
function _M:list(source, event)
    local by_event = self.lists[source]
    local list = by_event and by_event[event]
    if list then
        return list
    end
    if self.count >= MAX_LISTS then
        self.lists = {}
        self.count = 0
        by_event = nil
    end
    if not by_event then
        by_event = {}
        self.lists[source] = by_event
    end
    list = make(self, source, event)
    by_event[event] = list
    self.count = self.count + 1
    return list
end

--- What each subscription has done in this worker.
-- @treturn table array of `{id, source, event, calls, errors, seconds}`
function _M:stats()
    local out = {}
    for i, subscription in ipairs(self.subscriptions) do
        out[i] = {
            id = subscription.id,
            source = subscription.source,
            event = subscription.event,
            calls = subscription.calls,
            errors = subscription.errors,
            seconds = subscription.seconds,
        }
    end
    return out
end

return _M
