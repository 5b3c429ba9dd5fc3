--- Timers without the C module: the same behind the interface, in Lua, several times slower.
--
-- A timer is a table. A context that waits does so until the next timer is due; nginx's clock
-- ticks each 4 ms on many systems, so timers are up to as much later than with the module. A run
-- that ends its context (ngx.exit) is noticed when contexts are short, or statistics are asked for.
-- @module sluice.timer.plain

local ffi = require("ffi")
local loop = require("sluice.timer.plain_loop")
local memory = require("sluice.timer.plain_memory")
local stats = require("sluice.timer.plain_stats")
local wheel = require("sluice.timer.wheel")

local C = ffi.C
local band, bxor, lshift, rshift = bit.band, bit.bxor, bit.lshift, bit.rshift
local ceil, floor, max, min = math.ceil, math.floor, math.max, math.min
local find, free, hide = memory.find, memory.free, memory.hide

local _M = {
    start = loop.start,
    enter = loop.enter,
    claim = loop.claim,
    leave = loop.leave,
    gave_up = loop.gave_up,
    freeze = loop.freeze,
    place = stats.place,
}

local FIXED_DELAY, QUEUE, CONCURRENT, OWN_STATS = 1, 2, 4, 8
local MAX_TIMERS = 4194304
local MAX_QUEUED = 100
local LAST_SECONDS = 1
local QUIET_SECONDS = 10

local CLOCK_MONOTONIC = 1

-- Under a name of our own: others declare the function with types of theirs.
ffi.cdef([[
typedef struct { long sec; long nsec; } sluice_timespec_t;
int sluice_plain_clock(int clock, sluice_timespec_t *ts) __asm__("clock_gettime");
]])

local now_ts = ffi.new("sluice_timespec_t")

local function clock()
    C.sluice_plain_clock(CLOCK_MONOTONIC, now_ts)
    return tonumber(now_ts.sec) + tonumber(now_ts.nsec) * 1e-9
end

local function tick(seconds)
    return floor(seconds * 1000)
end

-- Timers -----------------------------------------------------------------------------------------

-- From 0 to 1. The generator is the core's own: LuaJIT's gives all workers the same numbers.
local function random(core)
    -- xorshift, Marsaglia 2003
    local x = core.random
    x = bxor(x, lshift(x, 13))
    x = bxor(x, rshift(x, 17))
    x = bxor(x, lshift(x, 5))
    core.random = x
    return x % 2 ^ 32 / 2 ^ 32
end

local function arm(core, t, now)
    t.due = t.grid
    if t.jitter > 0 then
        t.due = t.due + random(core) * t.jitter
    end
    local first = t.due <= now and tick(now) or ceil(t.due * 1000)
    local last = first + tick(t.tolerance)
    if last > first then
        -- the roundest time in reach
        local step = 1
        while ceil(first / (step * 2)) * step * 2 <= last do
            step = step * 2
        end
        first = ceil(first / step) * step
    end
    t.expires = first
    core.wheel:insert(t)
end

--- See module/ngx_sluice_timer_run.c; the same arguments.
function _M.create(
    core,
    flags,
    delay,
    interval,
    jitter,
    tolerance,
    warn_after,
    level,
    name,
    callback,
    ...
)
    local now = clock()
    if core.destroyed then
        return nil, "destroyed"
    elseif core.exiting and (delay > 0 or now - core.exiting > LAST_SECONDS) then
        return nil, "process exiting"
    elseif name and core.names[name] then
        return nil, "already exists timer"
    elseif core.count >= MAX_TIMERS then
        return nil, "too many timers"
    end
    core.created = core.created + 1
    local count = select("#", ...)
    local t = {
        name = name,
        callback = callback,
        count = count,
        arguments = count > 0 and { ... } or nil,
        flags = flags,
        grid = now + delay,
        interval = interval > 0 and interval or nil,
        jitter = jitter,
        tolerance = tolerance,
        warn_after = warn_after,
        place = stats.place_of(core, stats.describe_place(core, 3 + level)),
        own = band(flags, OWN_STATS) ~= 0 and stats.new_account() or nil,
        running = 0,
        queued = 0,
        runs = 0,
        failures = 0,
        elapsed = { min = 0, max = 0, mean = 0, variance = 0 },
    }
    t.place.created = t.place.created + 1
    t.place.timers = t.place.timers + 1
    memory.keep(core, t)
    arm(core, t, now)
    loop.poke(core, t.expires)
    if core.total == 0 and not loop.revive(core, now) and core.exiting then
        _M.cancel(core, t.handle)
        return nil, "process exiting"
    end
    return t.handle
end

local function not_found()
    return nil, "timer not found"
end

function _M.cancel(core, which)
    local t = find(core, which)
    if not t then
        return not_found()
    end
    if t.paused then
        core.paused = core.paused - 1
    end
    if t.next then
        core.wheel:remove(t)
    end
    if t.running == 0 then
        free(core, t)
    else
        hide(core, t)
    end
    return true
end

function _M.pause(core, which)
    local t = find(core, which)
    if not t then
        return not_found()
    elseif not t.paused then
        t.paused = true
        core.paused = core.paused + 1
        if t.next then
            core.wheel:remove(t)
            t.left = max(0, t.due - clock())
        end
    end
    return true
end

function _M.resume(core, which)
    local t = find(core, which)
    if not t then
        return not_found()
    elseif t.paused then
        t.paused = false
        core.paused = core.paused - 1
        if t.running == 0 or band(t.flags, CONCURRENT) ~= 0 then
            local now = clock()
            t.grid = now + t.left
            arm(core, t, now)
            loop.poke(core, t.expires)
        end
    end
    return true
end

function _M.is_managed(core, which)
    return find(core, which) ~= nil
end

-- Runs -------------------------------------------------------------------------------------------

local function is_empty(head)
    return head.next == head
end

local function begin(core, now)
    if is_empty(core.current) then
        local w = core.wheel
        w:advance(core.exiting and 2 ^ 52 or tick(now))
        core.current, w.ready = w.ready, core.current
    end
end

local function skip(core, t, n)
    core.skipped = core.skipped + n
    t.place.skipped = t.place.skipped + n
    if t.own then
        t.own.skipped = t.own.skipped + n
    end
end

-- To the first point of the grid that is not past; how many were.
local function pass(t, now)
    t.grid = t.grid + t.interval
    if t.grid > now then
        return 0
    end
    local n = floor((now - t.grid) / t.interval) + 1
    t.grid = t.grid + n * t.interval
    return n
end

local function again(core, t, now)
    if band(t.flags, FIXED_DELAY) ~= 0 then
        t.grid = now + t.interval
    else
        local passed = pass(t, now)
        if band(t.flags, QUEUE) ~= 0 then
            local room = min(passed, MAX_QUEUED - t.queued)
            t.queued = t.queued + room
            passed = passed - room
        end
        skip(core, t, passed)
    end
    if t.paused then
        t.left = max(0, t.grid - now)
    elseif t.queued > 0 then
        t.queued = t.queued - 1
        t.grid = t.grid - t.interval
        t.due, t.expires = now, tick(now)
        core.wheel:insert(t)
    else
        arm(core, t, now)
    end
end

local function note(core, t, seconds, failed)
    core.runs = core.runs + 1
    t.runs = t.runs + 1
    for _, account in ipairs({ t.place, t.own }) do
        account.elapsed:add(seconds)
        if failed then
            account.failures = account.failures + 1
        end
    end
    if failed then
        core.failures = core.failures + 1
        t.failures = t.failures + 1
    end
    local e, delta = t.elapsed, seconds - t.elapsed.mean
    e.min = t.runs == 1 and seconds or min(e.min, seconds)
    e.max = max(e.max, seconds)
    e.mean = e.mean + delta / t.runs
    e.variance = e.variance + (delta * (seconds - e.mean) - e.variance) / t.runs
end

local function log(place, now, level, ...)
    if now < place.quiet_until then
        place.unlogged = place.unlogged + 1
        return
    end
    local more = place.unlogged > 0 and (" (and %d more such lines)"):format(place.unlogged) or ""
    ngx.log(level, "sluice: a timer made at ", place.text, more, ...)
    place.quiet_until = now + QUIET_SECONDS
    place.unlogged = 0
end

local function uses_ctx(request)
    return C["ngx_" .. ngx.config.subsystem .. "_lua_ffi_get_ctx_ref"](request, nil, nil) >= 0
end

local function finish(core, context, err)
    local run = context.run
    context.run = nil
    local t, now = run.timer, clock()
    local seconds = now - run.start
    t.running = t.running - 1
    t.place.running = t.place.running - 1
    core.running = core.running - 1
    note(core, t, seconds, err)
    if err then
        t.place.last_err, t.last_err = err, err
        log(t.place, now, ngx.ERR, " failed: ", err)
    end
    if t.warn_after > 0 and seconds > t.warn_after then
        log(t.place, now, ngx.WARN, (" ran for %d ms"):format(seconds * 1000))
    end
    if t.gone then
        if t.running == 0 then
            free(core, t)
        end
    elseif band(t.flags, CONCURRENT) == 0 then
        again(core, t, now)
    end
end

local function take(core, context, now)
    local t = wheel.shift(core.current)
    if not t then
        return nil
    end
    if not core.exiting then
        local late = max(0, now - t.due)
        t.place.lateness:add(late)
        if t.own then
            t.own.lateness:add(late)
        end
    end
    if not t.interval or core.exiting then
        hide(core, t)
    elseif band(t.flags, CONCURRENT) ~= 0 then
        skip(core, t, pass(t, now))
        arm(core, t, now)
    elseif band(t.flags, FIXED_DELAY) == 0 and now >= t.grid + t.interval then
        -- what passed before this run began is not to be queued
        skip(core, t, pass(t, now))
        t.grid = t.grid - t.interval
    end
    t.running = t.running + 1
    t.place.running = t.place.running + 1
    core.running = core.running + 1
    context.run = { timer = t, start = now }
    return t
end

--- What `step` is given, and where what that returns leads to.
function _M.runner(core, id)
    return core.contexts[id], core.contexts
end

--- Ends the context's run and begins the next.
function _M.step(context)
    local core, id = context.core, context.id
    if context.run then
        finish(core, context)
        if uses_ctx(context.request) then
            ngx.ctx = {}
        end
    end
    if core.owner ~= id then
        return nil
    end
    local now = clock()
    local t = now < core.slice_end
        and not core.frozen
        and not core.destroyed
        and take(core, context, now)
    if not t then
        core.owner = nil
        return nil
    end
    context.callback = t.callback
    return id, "callback", core.exiting ~= nil, t.count > 0
end

function _M.args(core, id)
    local t = core.contexts[id].run.timer
    return unpack(t.arguments, 1, t.count)
end

function _M.failed(core, id, err)
    local context = core.contexts[id]
    if context.run then
        finish(core, context, err)
        if uses_ctx(context.request) then
            ngx.ctx = {}
        end
    end
end

-- All of them ------------------------------------------------------------------------------------

function _M.open(least, most)
    local core = memory.new()
    core.clock, core.begin, core.finish, core.is_empty = clock, begin, finish, is_empty
    core.wheel, core.current = wheel.new(tick(clock())), wheel.queue()
    core.places, core.by_text, core.contexts = {}, {}, {}
    core.min, core.max = least, most
    for _, number in ipairs({
        "last_context",
        "created",
        "runs",
        "failures",
        "skipped",
        "running",
        "paused",
        "parked",
        "coming",
        "total",
    }) do
        core[number] = 0
    end
    loop.seed(core)
    return core
end

function _M.destroy(core)
    for handle in pairs(core.timers) do
        _M.cancel(core, handle)
    end
    core.destroyed = true
    loop.wake_all(core)
end

function _M.set_debug(core, on)
    core.debug = on
end

function _M.totals(core)
    loop.bury(core)
    return stats.totals(core, clock())
end

function _M.timer(core, which, from)
    if not from then
        local t = find(core, which)
        return t and stats.record(t, clock())
    end
    local t = memory.from(core, which)
    if t then
        return stats.record(t, clock()), t.slot + 1
    end
    return nil
end

return _M
