--- One event at a time: what other libraries promise to their handlers.
--
-- While a callback waits, the dispatcher goes on with what comes next. Events of a bus that takes
-- turns are held instead until the callback has returned, and so are the other callbacks of its own
-- event. The context in which it waits holds the turn. One that has ended (ngx.exit) never gives it
-- back; the dispatcher finds it out (sluice.events.exits), or where it cannot, the garbage
-- collector.
-- @module sluice.events.turn

local _M = {}

local mt = { __index = _M }

local WEAK = { __mode = "v" }

-- The first look whether a holder has ended; each next one after twice the time, since it collects
-- all garbage.
local LOOK_SECONDS = 1
local LONGEST_LOOK_SECONDS = 64

--- @tparam table bus
-- @tparam number limit events that may be held
-- @treturn table `is_taken`: events have to wait; `is_free`: for their run only, no callback waits
function _M.new(bus, limit)
    return setmetatable({
        bus = bus,
        limit = limit,
        is_taken = false,
        is_free = false,
        holder = setmetatable({}, WEAK), -- [1]: the context whose callback waits
        takes = 0,
        is_watched = false,
        first = 1, -- of what is held, each with the fields of a context at an event's begin
        last = 0,
        dropped = 0,
    }, mt)
end

--- How many events wait for their turn.
function _M:depth()
    return self.last - self.first + 1
end

local watch

local function look(premature, self, takes, seconds)
    self.is_watched = false
    if premature or not self.is_taken then
        return
    elseif self.takes == takes and not self.is_free then
        collectgarbage()
        if self.holder[1] then
            return watch(self, math.min(2 * seconds, LONGEST_LOOK_SECONDS))
        end
        self.release(self)
    end
    watch(self, LOOK_SECONDS)
end

function watch(self, seconds)
    self.is_watched = ngx.timer.at(seconds, look, self, self.takes, seconds) ~= nil
end

--- A context's callback waits: what is left of its event is held, before all that is.
-- @tparam table context of the dispatcher
-- @tparam function|boolean release called with the turn if the context has ended; false: the caller
--   finds that out
function _M:take(context, release)
    self.is_taken, self.is_free = true, false
    self.holder[1] = context
    self.release = release
    self.takes = self.takes + 1
    self.first = self.first - 1
    self[self.first] = {
        list = context.list,
        at = context.at,
        source = context.source,
        event = context.event,
        data = context.data,
        worker = context.worker,
        unique = context.unique,
    }
    if release and not self.is_watched then
        watch(self, LOOK_SECONDS)
    end
end

--- The callback has returned, or its context has ended.
function _M:give_back()
    self.is_free = true
    self.holder[1] = nil
end

--- Holds an event.
-- @treturn boolean whether there was room for it
function _M:hold(held)
    if self:depth() >= self.limit then
        if self.dropped == 0 then
            ngx.log(
                ngx.ERR,
                "sluice: a callback waits, and ",
                self.limit,
                " events for it: more are dropped, beginning with ",
                held.source,
                "/",
                held.event,
                "; subscribers to sluice/overrun are told how many"
            )
        end
        self.dropped = self.dropped + 1
        return false
    end
    self.last = self.last + 1
    self[self.last] = held
    return true
end

--- What is to run next.
-- @treturn table|nil nil: nothing is held any more, the turn is free
-- @treturn number|nil with nil: how many events were dropped meanwhile
function _M:next()
    local held = self[self.first]
    if held then
        self[self.first] = nil
        self.first = self.first + 1
        return held
    end
    local dropped = self.dropped
    self.first, self.last, self.dropped = 1, 0, 0
    self.is_taken, self.is_free = false, false
    return nil, dropped
end

return _M
