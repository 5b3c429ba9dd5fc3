--- Contexts of timers without the C module: what module/ngx_sluice_timer.c does, as far as Lua can.
--
-- Nothing tells when a callback waits. So the owner wakes another context before it begins: nginx's
-- loop comes to that only if a callback waits or all is done. And a callback may end its context's
-- request (ngx.exit): then a thread that waits in the same request, the witness, does not any more.
-- @module sluice.timer.plain_loop

local bor, bxor = bit.bor, bit.bxor
local floor, max, min = math.floor, math.max, math.min

-- nginx's own: sluice.timer's replace_ngx_timer may put another in its place.
local timer_at = ngx.timer.at

local _M = {}

local SLICE_SECONDS = 0.001
local FOREVER_SECONDS = 2000000
local SCAVENGE_SECONDS = 0.1
-- nginx starts a context at once, or drops it without a word.
local COMING_SECONDS = 1
-- For the rounding of nginx's clock.
local LATER_SECONDS = 0.0005

local WAIT, RUN, END = 0, 1, 2

local function post(core, n)
    if core.semaphore and n > 0 then
        core.semaphore:post(n)
    end
end

--- A timer is due at `expires`: the context that waits for a later one has to look again.
function _M.poke(core, expires)
    local later = not core.armed or expires < core.armed
    if later and not core.poked and not core.owner and core.parked > 0 then
        core.poked = true
        post(core, 1)
    end
end

local function park(core, context, now)
    context.parked = true
    core.parked = core.parked + 1
    local due = not core.frozen and core.wheel:next()
    if not due or (core.armed and core.armed <= due) then
        return WAIT, 0, FOREVER_SECONDS
    end
    core.armed = due
    context.watches = true
    return WAIT, 0, max(0.001, min(due / 1000 - now + LATER_SECONDS, FOREVER_SECONDS))
end

-- Contexts that are yet to ask.
local function coming(core, now)
    if core.coming > 0 and now - core.coming_since > COMING_SECONDS then
        core.coming = 0
    end
    return core.coming
end

-- Asks nginx for contexts. Returns whether they come.
local function call(core, count, now)
    core.coming, core.coming_since = count, now
    return core.add(count)
end

--- A timer has been created and there is no context: all have ended, with the process or by their
-- callbacks. Returns whether there will be one.
function _M.revive(core, now)
    if not core.add or coming(core, now) > 0 then
        return true
    end
    -- In exit_worker nginx's function throws.
    local ok, made = pcall(call, core, 1, now)
    return ok and made
end

--- Forgets contexts whose callbacks have ended their requests: their witnesses do not wait.
function _M.bury(core)
    local dead = false
    for id, context in pairs(core.contexts) do
        if context.witness:count() >= 0 then
            dead = true
            core.contexts[id] = nil
            core.total = core.total - 1
            if context.parked then
                core.parked = core.parked - 1
            end
            if context.watches then
                core.armed = nil
            end
            if context.run then
                core.finish(core, context)
            end
        end
    end
    if dead then
        core.poked = nil
        _M.poke(core, 0)
        if core.total == 0 then
            _M.revive(core, core.clock())
        end
    end
end

-- All contexts are in use, or dead without anybody knowing: nobody may be left to take over.
local function scavenge(core)
    if core.scavenging then
        return
    end
    core.scavenging = timer_at(SCAVENGE_SECONDS, function()
        core.scavenging = false
        _M.bury(core)
        if core.total >= core.max then
            scavenge(core)
        elseif core.parked + coming(core, core.clock()) == 0 then
            call(core, 1, core.clock())
        end
    end)
end

local function lead(core, id, now)
    core.owner = id
    local more = 0
    if core.parked > 0 then
        post(core, 1)
    elseif coming(core, now) == 0 then
        _M.bury(core)
        more = min(core.max - core.total, floor(core.total / 2) + 1)
        core.coming, core.coming_since = more, now
        if more == 0 then
            scavenge(core)
        end
    end
    return RUN, more
end

-- Slices of a millisecond; between two of them one context waits as long, so that nginx's loop
-- turns, and the others wait for it. Returns whether it is time to run.
local function may_run(core, context, now)
    if context.rests then
        if now < core.rests_until then
            return false
        end
        context.rests, core.rests_until, core.slice_end = nil, nil, nil
    elseif core.rests_until then
        return false
    end
    core.slice_end = core.slice_end or now + SLICE_SECONDS
    if now >= core.slice_end then
        context.rests, core.rests_until = true, now + SLICE_SECONDS
        return false
    end
    return true
end

--- What a context shall do, how many to add, how many seconds to wait.
function _M.claim(core, id)
    local context, now = core.contexts[id], core.clock()
    -- Whoever runs here while another one is the owner does so because that one waits.
    core.owner = nil
    if context.parked then
        context.parked = false
        core.parked = core.parked - 1
    end
    if context.watches or core.poked then
        core.armed, core.poked, context.watches = nil, nil, nil
    end
    if core.destroyed then
        post(core, core.parked)
        return END, 0
    end
    if not core.frozen then
        core.begin(core, now)
        if not core.is_empty(core.current) then
            if may_run(core, context, now) then
                return lead(core, id, now)
            end
            context.parked = true
            core.parked = core.parked + 1
            return WAIT, 0, context.rests and SLICE_SECONDS or FOREVER_SECONDS
        end
    end
    context.rests, core.rests_until, core.slice_end = nil, nil, nil
    if core.exiting then
        post(core, core.parked)
        return END, 0
    end
    if core.parked >= core.min and core.parked * 2 > core.total then
        return END, 0
    end
    return park(core, context, now)
end

--- A new context; nil if it is not needed any more.
function _M.enter(core)
    core.coming = max(0, core.coming - 1)
    if core.destroyed or core.total >= core.max then
        return nil
    end
    core.total = core.total + 1
    core.last_context = core.last_context + 1
    local id = core.last_context
    local context = {
        core = core,
        id = id,
        request = require("resty.core.base").get_request(),
        witness = assert(require("ngx.semaphore").new(0)),
    }
    core.contexts[id] = context
    ngx.thread.spawn(function()
        context.witness:wait(FOREVER_SECONDS)
    end)
    return id
end

--- A context ends.
function _M.leave(core, id)
    core.contexts[id].witness:post(1)
    core.contexts[id] = nil
    core.total = core.total - 1
    if core.owner == id then
        core.owner = nil
    end
end

--- So many contexts do not come.
function _M.gave_up(core, n)
    core.coming = max(0, core.coming - n)
end

-- nginx runs this before its time when the worker begins to exit.
local function watch_exit(premature, core)
    if core.destroyed then
        return
    elseif not premature then
        timer_at(FOREVER_SECONDS, watch_exit, core)
        return
    end
    core.exiting = core.clock()
    core.frozen = false
    -- a post alone would wait for the loop's next turn; a timer makes it turn
    timer_at(0, function()
        post(core, max(1, core.parked))
    end)
end

--- Begins the core's random numbers.
function _M.seed(core)
    local nanoseconds = core.clock() * 1e9
    core.random = bor(bxor(nanoseconds % 2 ^ 32, ngx.worker.pid() * 65537), 1)
end

--- In the worker, with the semaphore of its contexts and a function that adds some.
function _M.start(core, semaphore, add)
    require("resty.core.ctx")
    core.semaphore = semaphore
    core.add = add
    core.coming, core.coming_since = 1, core.clock()
    _M.seed(core) -- of its own: the core may be its master's
    return timer_at(FOREVER_SECONDS, watch_exit, core)
end

--- Holds all callbacks, or goes on.
function _M.freeze(core, on)
    core.frozen = on and not core.exiting
    if not on then
        core.armed = nil
        _M.poke(core, 0)
    end
end

--- Wakes all that wait.
function _M.wake_all(core)
    post(core, core.parked)
end

return _M
