--- Runs callbacks: one after the other in one long-lived context, for as long as none yields.
--
-- The context is a timer's coroutine that waits for a semaphore, so it may do all that timers
-- may. While it works, a second, spare one has a wakeup under way: if a callback yields, nginx's
-- loop goes on and wakes the spare, which sees that the first is not back and takes over where it
-- is; if no callback yields, the C module takes the wakeup back, and without it the spare finds
-- nothing to do. So a callback that waits holds up
-- nobody, and one that does not costs no coroutine. Work goes in slices of a millisecond, between
-- which nginx's loop turns.
--
-- There is one dispatcher for each Lua machine, that is, for each worker and subsystem.
-- Long on purpose: one machine's state, and all that changes it.
-- @module sluice.events.dispatcher

local exits = require("sluice.events.exits")
local failure = require("sluice.events.failure")
local module = require("sluice.events.module")
local unroll = require("sluice.unroll")

local ffi = require("ffi")

local _M = {}

local SLICE_SECONDS = 0.001
-- As long as a semaphore can wait, 23 days; then it waits again.
local FOREVER_SECONDS = 2000000
-- More callbacks that wait than this hold up the others: a context takes one of nginx's
-- connections, and of lua_max_running_timers (256).
local MAX_CONTEXTS = 64
-- How often to look whether some of them have ended without a word.
local LOOK_SECONDS = 1
-- To read the clock costs as much as a small callback. So where the last ones of a subscription
-- were quick, its next ones share a look.
local QUICK_SECONDS = 0.00001
local SHARED_LOOK = 8
-- Events of transports that push, before their readers have to wait.
local MAX_PUSHED = 4096

local clock -- seconds

-- The state of the machine's dispatcher.
local owner -- the context that dispatches
local busy = false -- it is at work, or one of its callbacks has yielded
local armed = false -- the spare's wakeup is under way
local posted = false -- the owner's is
local spares = 0 -- contexts that wait to be one, or are on their way
-- Those that might be alive. Not their coroutines: nginx keeps these, to use them again.
local contexts = setmetatable({}, { __mode = "k" })
local coroutines = setmetatable({}, { __mode = "k" }) -- in which contexts run
local started = false
local stopping = false
local ends_with_worker = false
local next_look, is_retrying = 0, false -- for contexts that have ended
local deadline = 0
local wake, spare -- semaphores, made in init_worker: see docs/events.md
local source_of_frames -- a transport that is asked for its events, or nil
local first, last = 1, 0 -- of pushed events
local pushed = {}
local free_turns = {} -- of buses whose held events can run (sluice.events.turn)
local holders = {} -- contexts that hold a turn, and whose end without a word is noted

_M.delivered = 0
_M.failed = 0

-- Errors -----------------------------------------------------------------------------------------

-- A unique event is done when the last of its callbacks is.
local function finish_unique(unique)
    unique.pending = unique.pending - 1
    if unique.pending == 0 then
        unique.done(unique)
    end
end

-- The handler of a context's errors: it tells what happened. It runs on what stack the callback has
-- left, and LuaJIT may end it where that is not enough, so nothing that must be done is done here.
local function describe(context, err)
    local subscription = context.subscription
    if subscription and clock() < subscription.quiet_until then
        return failure.text(err)
    end
    return failure.describe(err)
end

-- After a callback that failed.
local function settle_failure(context, text)
    context.unlooked = 0
    local subscription = context.subscription
    if not subscription then
        ngx.log(ngx.ERR, "sluice: events: ", text)
        return
    end
    context.subscription = nil
    _M.failed = _M.failed + 1
    subscription.errors = subscription.errors + 1
    subscription.calls = subscription.calls + 1
    if context.unique then
        finish_unique(context.unique)
    end
    failure.log(subscription, context, text, clock())
end

-- One event --------------------------------------------------------------------------------------

-- Reads the clock. The time since the last look was that of the callbacks that share this one:
-- those of the subscription, or of the only one in the list that runs. A function of its own, since
-- what is called often gets compiled, and drain, with loops that turn once, does not: a call of C
-- that is interpreted takes 400 ns.
local function look_at_clock(context, subscription)
    local now = clock()
    local callbacks = context.unlooked
    if callbacks > 0 then
        local list = context.timed
        local spent = now - context.clock
        subscription = subscription or list[1]
        subscription.seconds = subscription.seconds + spent
        local quick = list.n == 1 and spent < callbacks * QUICK_SECONDS
        context.looks_after = quick and SHARED_LOOK or 1
        context.unlooked = 0
    end
    context.clock = now
    return now
end

--- What follows a callback that returned.
-- @treturn boolean whether to go on: false when another context dispatches now, or time is up
local function settle(context, subscription)
    subscription.calls = subscription.calls + 1
    _M.delivered = _M.delivered + 1
    context.subscription = nil
    if context.unique then
        finish_unique(context.unique)
    end
    local unlooked = context.unlooked + 1
    context.unlooked = unlooked
    if owner ~= context then
        context.unlooked = 0
        return false
    elseif unlooked >= context.looks_after then
        return look_at_clock(context, subscription) < deadline
    end
    return true
end

-- The first eight without a loop, which LuaJIT would not compile (sluice.unroll).
local UNROLLED = 8
local run_first = unroll.compile(
    [[
    local settle, finish_unique = ...
    return function(context, list)
        local n = list.n
        {{if n < $i then return true end
        local subscription = list[$i]
        context.at = $i
        if subscription.active then
            context.subscription = subscription
            subscription.callback(context.data, context.event, context.source, context.worker)
            if not settle(context, subscription) then return false end
        elseif context.unique then
            finish_unique(context.unique)
        end
        }}
        return true
    end
]],
    UNROLLED
)(settle, finish_unique)

local function run_rest(context)
    local list = context.list
    while context.at < list.n do
        local i = context.at + 1
        local subscription = list[i]
        context.at = i
        if subscription.active then
            context.subscription = subscription
            subscription.callback(context.data, context.event, context.source, context.worker)
            if not settle(context, subscription) then
                return false
            end
        elseif context.unique then
            finish_unique(context.unique)
        end
    end
    context.list = nil
    context.data = nil
    context.unique = nil
    return true
end

-- For an event that has to wait for its turn.
local function hold(turn, list, source, event, data, worker, unique)
    local held = {
        list = list,
        at = 0,
        source = source,
        event = event,
        data = data,
        worker = worker,
        unique = unique,
    }
    if unique then
        unique.pending = list.n
    end
    if not turn:hold(held) and unique then
        unique.done(unique)
    end
end

--- Runs the subscriptions in a list; for transports that are asked for their events.
-- @tparam table context as given to the transport
-- @tparam table list of subscriptions (sluice.events.bus)
-- @tparam string source
-- @tparam string event
-- @param data
-- @tparam number|nil worker id of the sender's worker
-- @tparam table|nil unique `{done = function(unique)}` to call when all have returned
-- @treturn boolean whether to go on: false when another context has taken over, or time is up
function _M.run(context, list, source, event, data, worker, unique)
    local turn = list.turn
    if turn and turn.is_taken then
        hold(turn, list, source, event, data, worker, unique)
        return context.clock < deadline
    end
    context.source = source
    context.event = event
    context.data = data
    context.worker = worker
    context.list = list
    context.at = 0
    if context.timed ~= list then
        if context.unlooked > 0 then
            look_at_clock(context)
        end
        context.timed = list
        context.looks_after = 1
    end
    if unique then
        unique.pending = list.n
        context.unique = unique
    end
    if not run_first(context, list) then
        return false
    end
    if list.n > UNROLLED or unique then
        if not run_rest(context) then
            return false
        end
    else
        context.list = nil
    end
    return context.clock < deadline
end

-- Pushed events ----------------------------------------------------------------------------------

local function kick()
    if started and not busy and not posted then
        posted = true
        wake:post(1)
    end
end

--- Hands over an event; its subscriptions run in the background.
-- @treturn number events that wait now
local function push(bus, source, event, data, worker)
    last = last + 1
    pushed[last] = { bus, source, event, data, worker }
    kick()
    return last - first + 1
end

local function run_pushed(context)
    local entry = pushed[first]
    pushed[first] = nil
    first = first + 1
    if first > last then
        first, last = 1, 0
    end
    local source, event = entry[2], entry[3]
    local list = entry[1]:list(source, event)
    if list.n == 0 then
        return true
    end
    return _M.run(context, list, source, event, entry[4], entry[5])
end

-- Prepares for a callback that yields. The ring does it by itself, for what it hands out.
local function arm()
    if not armed then
        armed = true
        spare:post(1)
    end
end

-- Turns ------------------------------------------------------------------------------------------

-- Goes on with an event that was begun elsewhere, or held.
local function inherit(context, from)
    if context.unlooked > 0 then
        look_at_clock(context)
    end
    context.list, context.at = from.list, from.at
    context.source, context.event = from.source, from.event
    context.data, context.worker = from.data, from.worker
    context.unique = from.unique
    context.timed, context.looks_after = from.list, 1
end

local function run_held(context)
    local turn = free_turns[1]
    local held, dropped = turn:next()
    if not held then
        table.remove(free_turns, 1)
        if dropped > 0 then
            push(turn.bus, "sluice", "overrun", { missed = dropped, reason = "overflow" })
        end
        return
    end
    arm()
    inherit(context, held)
    run_rest(context)
end

-- The callback that held a turn is back: the owner goes on with what was held.
local function release(turn)
    turn:give_back()
    free_turns[#free_turns + 1] = turn
    kick()
end

local function give_back(context)
    local turn = context.turn
    context.turn = nil
    for i = #holders, 1, -1 do
        if holders[i] == context then
            table.remove(holders, i)
        end
    end
    release(turn)
end

-- Gives back the turns of contexts that have ended without a word.
local function look_for_exits()
    for i = #holders, 1, -1 do
        if exits.has_ended(holders[i].serial) then
            give_back(holders[i])
        end
    end
end

-- Contexts ---------------------------------------------------------------------------------------

-- Reads and runs what there is. Returns true when there is no more, false when time is up.
-- `is_resumed`: after a callback that failed, in the slice that it was part of.
local function drain(context, is_resumed)
    local now = look_at_clock(context)
    if not is_resumed then
        deadline = now + SLICE_SECONDS
    elseif now >= deadline then
        return false
    end
    if holders[1] then
        look_for_exits()
    end
    if context.list then
        arm()
        if not run_rest(context) then
            return false
        end
    end
    local frames = source_of_frames
    while owner == context do
        if context.clock >= deadline then
            return false
        end
        if free_turns[1] then
            run_held(context)
        elseif first <= last then
            arm()
            run_pushed(context)
        elseif not frames then
            return true
        else
            local step = frames.step
            while step(frames, context) do
            end
            if owner == context and context.clock < deadline then
                look_at_clock(context)
                local more = frames:fill()
                if more == nil then
                    return false
                elseif not more and first > last then
                    return true
                end
            end
        end
    end
    return false
end

local function wait(which)
    -- "timeout" after weeks: the caller looks around and waits again
    which:wait(FOREVER_SECONDS)
end

local add_context, add_spare

local function count_contexts()
    local n = 0
    for _ in pairs(contexts) do
        n = n + 1
    end
    return n
end

-- A callback can end its context (ngx.exit); those are in no one's count, but are collected. To
-- collect everything costs milliseconds: if nothing was found, the next look comes later.
local function may_add()
    local before = count_contexts()
    if before < MAX_CONTEXTS then
        return true
    elseif clock() < next_look then
        return false
    end
    collectgarbage()
    local found = before - count_contexts()
    next_look = found > 0 and 0 or clock() + LOOK_SECONDS
    return found > 0
end

-- So that there is a spare. Without one the next callback that waits is waited for, and one that
-- ends its context would be the last of all: hence another try later.
function add_spare()
    if spares > 0 or stopping then
        return
    elseif may_add() then
        add_context()
    elseif not is_retrying then
        is_retrying = true
        ngx.timer.at(LOOK_SECONDS, function(premature)
            is_retrying = false
            next_look = 0
            if not premature then
                add_spare()
            end
        end)
    end
end

-- Dispatches until another context takes over, or the worker ends: then one slice more.
local function lead(context)
    local is_resumed = false
    while true do
        busy = true
        posted = false
        local ok, finished = xpcall(drain, context.describe, context, is_resumed)
        is_resumed = not ok
        if not ok then
            settle_failure(context, finished)
        end
        if owner ~= context then
            return
        end
        if ok then
            busy = false
            if stopping then
                return
            elseif finished then
                wait(wake)
            elseif source_of_frames then
                source_of_frames:pause()
                wait(wake)
            else
                ngx.sleep(SLICE_SECONDS)
            end
        end
    end
end

-- Takes over what the owner, whose callback has yielded, has left to do.
local function take_over(context)
    local before = owner
    owner = context
    arm()
    local turn = before and before.list and before.list.turn
    if turn then
        if free_turns[1] == turn then
            table.remove(free_turns, 1)
        end
        before.turn = turn
        if before.serial then
            holders[#holders + 1] = before
        end
        turn:take(before, not before.serial and release)
    elseif before then
        inherit(context, before)
    end
    if before then
        before.list = nil
    end
    add_spare()
end

local function serve(premature)
    spares = spares - 1
    if premature then
        return
    end
    local context = { clock = 0, at = 0, unlooked = 0, looks_after = 1 }
    context.describe = function(err)
        return describe(context, err)
    end
    context.serial = exits.enter(wake)
    contexts[context] = true
    coroutines[coroutine.running()] = true
    while not stopping do
        if not owner or busy then
            take_over(context)
            lead(context)
            context.unique, context.data = nil, nil
            if context.turn then
                give_back(context)
            end
        end
        if stopping or spares > 0 then
            break
        end
        spares = spares + 1
        wait(spare)
        spares = spares - 1
        armed = false
    end
    exits.leave(context.serial)
    contexts[context] = nil
    coroutines[coroutine.running()] = nil
end

function add_context()
    local ok, err = ngx.timer.at(0, serve)
    if ok then
        spares = spares + 1
    else
        ngx.log(ngx.ERR, "sluice: no context for callbacks: ", err)
    end
end

-- nginx does not end a worker that has timers, and waiting contexts have one. The C module sets
-- them apart; without it the contexts have to end: nginx runs this before its time then.
local function end_with_worker(premature)
    if not premature then
        ngx.timer.at(FOREVER_SECONDS, end_with_worker)
        return
    end
    if source_of_frames then
        return
    end
    -- posts alone would wait for the loop's next turn; a timer makes it turn
    ngx.timer.at(0, function()
        stopping = true
        wake:post(1)
        spare:post(2)
    end)
end

--- Starts the dispatcher, once for each worker.
-- @tparam table|nil frames a transport to ask for events: `step(self, context)` runs one and says
--   whether to go on, `fill()` fetches more (true; false: none, wait to be woken; nil: ask again
--   later), `pause()` asks to be woken in the loop's next turn
-- @phases init_worker
function _M.start(frames)
    if not started then
        started = true
        local semaphore = require("ngx.semaphore")
        wake = assert(semaphore.new(0))
        spare = assert(semaphore.new(0))
        clock = module.load() and ffi.C.sluice_events_clock or ngx.now
        add_context()
    end
    if frames then
        source_of_frames = frames
    elseif not source_of_frames and not ends_with_worker then
        ends_with_worker = true
        ngx.timer.at(FOREVER_SECONDS, end_with_worker)
    end
    kick()
end

--- The semaphores that wake the dispatcher, and the spare, for the C module.
-- @treturn cdata
-- @treturn cdata
function _M.semaphores()
    return wake.sem, spare.sem
end

--- Hands over an event of a transport that pushes; it yields while too many wait.
function _M.deliver(bus, source, event, data, worker)
    if bus:list(source, event).n == 0 then
        return
    end
    local waiting = push(bus, source, event, data, worker)
    while waiting > MAX_PUSHED and not stopping do
        ngx.sleep(SLICE_SECONDS)
        waiting = last - first + 1
    end
end

--- Hands over an event for this worker alone, as it is.
-- @tparam table bus
-- @tparam string source
-- @tparam string event
-- @param data
-- @tparam number|nil worker
-- @tparam number limit events that may wait
-- @treturn true|nil
-- @treturn string|nil "full"
function _M.push(bus, source, event, data, worker, limit)
    local turn = bus.turn
    if last - first + 1 + (turn and turn:depth() or 0) >= limit then
        return nil, "full"
    end
    push(bus, source, event, data, worker)
    return true
end

--- Hands over a notice of the library; like an event, but never refused.
_M.notice = push

--- How many events wait for their callbacks outside the transport.
function _M.depth()
    return last - first + 1
end

--- Whether a callback is calling. One that ended its context has left its coroutine to others,
-- and to requests before all.
function _M.is_calling()
    return coroutines[coroutine.running()] == true and ngx.get_phase() == "timer"
end

--- Whether the contexts run.
function _M.is_running()
    return owner ~= nil and not stopping
end

return _M
