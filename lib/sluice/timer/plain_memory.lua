--- Where timers are without the C module: by handle, by name, and in slots, which are used again.
-- @module sluice.timer.plain_memory

local _M = {}

--- The tables of a core.
-- @treturn table to which others add theirs
function _M.new()
    return {
        timers = {}, -- by handle
        names = {}, -- handle by name
        slots = {}, -- false: free
        vacant = {}, -- numbers of free slots
        count = 0,
        last = 0,
    }
end

--- Gives a timer its handle and its slot.
function _M.keep(core, t)
    core.last = core.last + 1
    core.count = core.count + 1
    t.handle = core.last
    t.slot = table.remove(core.vacant) or #core.slots + 1
    core.slots[t.slot] = t
    core.timers[t.handle] = t
    if t.name then
        core.names[t.name] = t.handle
    end
end

--- By handle or name; nil if neither leads to a timer.
function _M.find(core, which)
    if type(which) == "string" then
        which = core.names[which]
    end
    return core.timers[which]
end

--- From here on nothing leads to the timer; it may run still.
function _M.hide(core, t)
    if core.timers[t.handle] then
        core.timers[t.handle] = nil
        if t.name and core.names[t.name] == t.handle then
            core.names[t.name] = nil
        end
    end
    t.gone = true
end

--- Its end.
function _M.free(core, t)
    _M.hide(core, t)
    core.count = core.count - 1
    core.slots[t.slot] = false
    core.vacant[#core.vacant + 1] = t.slot
    t.place.timers = t.place.timers - 1
end

--- The first timer from a slot on that a handle leads to, or nil.
function _M.from(core, slot)
    for i = slot, #core.slots do
        local t = core.slots[i]
        if t and not t.gone then
            return t
        end
    end
    return nil
end

return _M
