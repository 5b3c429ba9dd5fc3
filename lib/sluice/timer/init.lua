--- Timers: a million of them in a worker, accurate to a millisecond, free when idle.
--
-- docs/timer.md has the synopsis, the guarantees and the limits. This file is the interface. Behind
-- it are a timing wheel in C (module/) and the contexts that run callbacks (sluice.timer.contexts).
--
-- Times are seconds, with fractions; a timer fires at or after its time, never before, by the
-- monotonic clock. A handle is a number. It is never used again, so a stale one finds nothing.
-- @module sluice.timer
-- @usage
-- local timer = require("sluice.timer")
-- local t = timer.new()                                   -- in init or init_worker
-- t:start()                                               -- in init_worker
-- t:at(0.5, function(premature, name) end, "Ann")         -- in any phase
-- local handle = t:every(1, function(premature) end)
-- t:cancel(handle)

local contexts = require("sluice.timer.contexts")
local module = require("sluice.timer.module")
local replace = require("sluice.timer.replace")
local report = require("sluice.timer.report")

local _M = {}

local mt = { __index = _M }

-- 3,170 years.
local MAX_SECONDS = 1e11

-- Flags of a timer, as in module/core/wheel/wheel_timers.h.
local FIXED_DELAY = 1
local QUEUE = 2
local CONCURRENT = 4
local OWN_STATS = 8

local OVERLAPS = { skip = 0, queue = QUEUE, concurrent = CONCURRENT }
local FIXED = { rate = 0, delay = FIXED_DELAY }

-- Options of `new`: type, default, bounds.
local OPTIONS = {
    max_contexts = { type = "number", default = 128, min = 2, max = 16384, whole = true },
    min_contexts = { type = "number", default = 2, min = 2, max = 16384, whole = true },
    tolerance = { type = "number", default = 0, min = 0, max = 4000000 },
    debug = { type = "boolean", default = false },
}

-- Options of one timer, beside `delay` and `interval`.
local TIMER_OPTIONS = {
    delay = { type = "number", min = 0, max = MAX_SECONDS },
    interval = { type = "number", min = 0.001, max = MAX_SECONDS },
    jitter = { type = "number", min = 0, max = 4000000 },
    tolerance = { type = "number", min = 0, max = 4000000 },
    warn_after = { type = "number", min = 0, max = 4000000 },
    level = { type = "number", min = 0, max = 100, whole = true },
    stats = { type = "boolean" },
    overlap = { words = OVERLAPS, said = "skip, queue or concurrent" },
    fixed = { words = FIXED, said = "rate or delay" },
}

-- Options of `stats`: the types they may have.
local STATS_OPTIONS = {
    timers = { boolean = true, number = true, string = true, said = "boolean, handle or name" },
    flamegraph = { boolean = true, said = "boolean" },
}

-- Options that only recurrent timers have.
local RECURRENT = { interval = true, overlap = true, fixed = true }

-- The text of an error that a public function throws at its caller's line.
local function misuse(argument, verb, name, expected, got)
    return ("bad argument #%d '%s' to '%s' (%s expected, got %s)"):format(
        argument,
        name,
        verb,
        expected,
        got
    )
end

local function show(value)
    return type(value) == "string" and ("'%s'"):format(value) or tostring(value)
end

local function check_option(name, option, value)
    if option.words then
        if not option.words[value] then
            return ("option '%s': must be %s, not %s"):format(name, option.said, show(value))
        end
    elseif type(value) ~= option.type then
        return ("option '%s': %s expected, got %s"):format(name, option.type, type(value))
    elseif option.min then
        if not (value >= option.min and value <= option.max) then
            return ("option '%s': must be from %s to %s, not %s"):format(
                name,
                option.min,
                option.max,
                value
            )
        elseif option.whole and value % 1 ~= 0 then
            return ("option '%s': must be a whole number, not %s"):format(name, value)
        end
    end
    return nil
end

local function check_options(known, opts)
    for name, value in pairs(opts) do
        local option = known[name]
        if not option then
            return ("unknown option %s"):format(show(name))
        end
        local problem = check_option(name, option, value)
        if problem then
            return problem
        end
    end
    return nil
end

--- Makes an independent set of timers with contexts of its own. It does not yield.
-- @tparam[opt] table opts a wrong one throws
--
-- - `max_contexts` (128): one more than callbacks can wait at a time, as one stays free to take
--   over. A context takes one of nginx's `worker_connections` and one of its
--   `lua_max_running_timers` (256 unless set).
-- - `min_contexts` (2): contexts that stay when there is nothing to do.
-- - `tolerance` (0): default of the timers' option.
-- - `debug` (false): see `set_debug`.
--
-- It throws where nginx has not loaded the Sluice module.
-- @treturn table timers, which can be created at once and run after `start`
-- @phases all
function _M.new(opts)
    if opts == nil then
        opts = {}
    elseif type(opts) ~= "table" then
        error(misuse(1, "new", "opts", "table", type(opts)), 2)
    end
    local problem = check_options(OPTIONS, opts)
    if problem then
        error(problem, 2)
    end
    local min = opts.min_contexts or OPTIONS.min_contexts.default
    local max = opts.max_contexts or math.max(min, OPTIONS.max_contexts.default)
    if min > max then
        error("option 'min_contexts': must not be greater than max_contexts", 2)
    end
    local backend, err = module.load()
    if not backend then
        error(err, 2)
    end
    local self = setmetatable({
        backend = backend,
        create = backend.create,
        core = backend.open(min, max),
        tolerance = opts.tolerance or 0,
    }, mt)
    backend.set_debug(self.core, opts.debug or false)
    return self
end

--- Begins to run timers, in a worker; those created before count from their creation. It does not
-- yield. A second call does nothing.
-- @treturn true|nil
-- @treturn string|nil "destroyed"; "not in a worker"; or why nginx gives no context, for people
-- @phases init_worker; later ones too
function _M:start()
    if self.destroyed then
        return nil, "destroyed"
    elseif self.started then
        return true
    elseif ngx.get_phase() == "init" then
        return nil, "not in a worker"
    end
    local ok, err = contexts.start(self)
    if not ok then
        return nil, err
    end
    self.started = true
    return true
end

-- Creation ---------------------------------------------------------------------------------------

-- A timer whose first argument is a table of options. Called by tail calls only: the level of the
-- user's line counts on it.
local function create_with(self, verb, key, at, opts, name, callback, ...)
    local problem = check_options(TIMER_OPTIONS, opts)
    if not problem then
        for option in pairs(RECURRENT) do
            if key == "delay" and opts[option] ~= nil then
                problem = ("option '%s': is for recurrent timers"):format(option)
            end
        end
        if opts[key] == nil then
            problem = problem or ("option '%s': is missing"):format(key)
        end
    end
    if problem then
        error(("bad argument #%d '%s' to '%s' (%s)"):format(at, key, verb, problem), 2)
    end
    local flags = (OVERLAPS[opts.overlap] or 0)
        + (FIXED[opts.fixed] or 0)
        + (opts.stats and OWN_STATS or 0)
    local handle, err = self.create(
        self.core,
        flags,
        opts.delay or opts.interval,
        opts.interval or 0,
        opts.jitter or 0,
        opts.tolerance or self.tolerance,
        opts.warn_after or 0,
        opts.level or 0,
        name,
        callback,
        ...
    )
    return handle, err
end

local function wrong_time(argument, verb, name, value, min)
    if type(value) ~= "number" then
        return misuse(argument, verb, name, "number or table", type(value))
    end
    local range = ("%s to %s seconds"):format(min, MAX_SECONDS)
    return misuse(argument, verb, name, range, tostring(value))
end

local function wrong_callback(argument, verb, value)
    return misuse(argument, verb, "callback", "function", type(value))
end

local function wrong_name(verb, value)
    return misuse(1, verb, "name", "string", type(value))
end

--- Runs a callback once. It does not yield, and costs under half a microsecond.
-- @tparam number|table delay 0 to 1e11 seconds; or options: `delay`,
--
-- - `jitter`: up to so many seconds are added, at random; of a recurrent timer each time anew, to
--   its grid, so that it does not drift.
-- - `tolerance`: how many seconds later it may fire, so that timers share a wakeup.
-- - `warn_after`: a run that takes longer than so many seconds is a warning in the error log.
-- - `stats`: true gives the timer a distribution (p99) of its own, 1.4 KB.
-- - `level`: so many callers further up are its creation place; for wrappers.
-- @tparam function callback called with (premature, ...); premature is true if the worker exits
-- @param ... for the callback
-- @treturn number|nil handle
-- @treturn string|nil "process exiting"; "too many timers": 4 million; "destroyed"; "no memory"
-- @phases all; they run once `start` was called in the process
-- @usage t:at({ delay = 60, jitter = 5 }, callback)
function _M:at(delay, callback, ...)
    if type(callback) ~= "function" then
        error(wrong_callback(2, "at", callback), 2)
    elseif type(delay) == "table" then
        return create_with(self, "at", "delay", 1, delay, nil, callback, ...)
    elseif type(delay) ~= "number" or not (delay >= 0 and delay <= MAX_SECONDS) then
        error(wrong_time(1, "at", "delay", delay, 0), 2)
    end
    -- No tail call, which would hide the caller's place.
    local handle, err =
        self.create(self.core, 0, delay, 0, 0, self.tolerance, 0, 0, nil, callback, ...)
    return handle, err
end

--- Runs a callback again and again, the first time after one interval; like `at`.
-- @tparam number|table interval 0.001 to 1e11 seconds; or options: `interval`, those of `at` (with
--   `delay` for the first time), and
--
-- - `overlap`: when it is due again while a run of it waits: "skip" (default) leaves the run out,
--   "queue" runs it afterwards, "concurrent" at once.
-- - `fixed`: "rate" (default) is due on a grid from its creation; periods that passed while the
--   worker stood still are left out, never made good. "delay" is due one interval after a run's
--   end.
-- @tparam function callback called with (premature, ...)
-- @param ... for the callback, each time
-- @treturn number|nil handle
-- @treturn string|nil as `at`
-- @phases all
function _M:every(interval, callback, ...)
    if type(callback) ~= "function" then
        error(wrong_callback(2, "every", callback), 2)
    elseif type(interval) == "table" then
        return create_with(self, "every", "interval", 1, interval, nil, callback, ...)
    elseif type(interval) ~= "number" or not (interval >= 0.001 and interval <= MAX_SECONDS) then
        error(wrong_time(1, "every", "interval", interval, 0.001), 2)
    end
    local handle, err =
        self.create(self.core, 0, interval, interval, 0, self.tolerance, 0, 0, nil, callback, ...)
    return handle, err
end

--- Like `at`, of a timer that a name leads to until it fires or is cancelled; then, and within its
-- callback, the name is free again.
-- @tparam string name
-- @tparam number|table delay
-- @tparam function callback
-- @param ... for the callback
-- @treturn number|nil handle
-- @treturn string|nil as `at`; "already exists timer"
-- @phases all
function _M:named_at(name, delay, callback, ...)
    if type(name) ~= "string" then
        error(wrong_name("named_at", name), 2)
    elseif type(callback) ~= "function" then
        error(wrong_callback(3, "named_at", callback), 2)
    elseif type(delay) == "table" then
        return create_with(self, "named_at", "delay", 2, delay, name, callback, ...)
    elseif type(delay) ~= "number" or not (delay >= 0 and delay <= MAX_SECONDS) then
        error(wrong_time(2, "named_at", "delay", delay, 0), 2)
    end
    local handle, err =
        self.create(self.core, 0, delay, 0, 0, self.tolerance, 0, 0, name, callback, ...)
    return handle, err
end

--- Like `every`, of a timer that a name leads to until it is cancelled.
-- @tparam string name
-- @tparam number|table interval
-- @tparam function callback
-- @param ... for the callback
-- @treturn number|nil handle
-- @treturn string|nil as `at`; "already exists timer"
-- @phases all
function _M:named_every(name, interval, callback, ...)
    if type(name) ~= "string" then
        error(wrong_name("named_every", name), 2)
    elseif type(callback) ~= "function" then
        error(wrong_callback(3, "named_every", callback), 2)
    elseif type(interval) == "table" then
        return create_with(self, "named_every", "interval", 2, interval, name, callback, ...)
    elseif type(interval) ~= "number" or not (interval >= 0.001 and interval <= MAX_SECONDS) then
        error(wrong_time(2, "named_every", "interval", interval, 0.001), 2)
    end
    local handle, err =
        self.create(self.core, 0, interval, interval, 0, self.tolerance, 0, 0, name, callback, ...)
    return handle, err
end

-- One timer --------------------------------------------------------------------------------------

local function check_which(verb, which)
    if type(which) ~= "number" and type(which) ~= "string" then
        error(misuse(1, verb, "which", "handle or name", type(which)), 3)
    end
end

--- Removes a timer; a run of it that is under way goes on to its end. It does not yield.
-- @tparam number|string which handle or name
-- @treturn true|nil
-- @treturn string|nil "timer not found"
-- @phases all
function _M:cancel(which)
    check_which("cancel", which)
    return self.backend.cancel(self.core, which)
end

--- Stops a timer's clock; a run of it that is under way goes on. Pausing twice is pausing.
-- @tparam number|string which handle or name
-- @treturn true|nil
-- @treturn string|nil "timer not found"
-- @phases all
function _M:pause(which)
    check_which("pause", which)
    return self.backend.pause(self.core, which)
end

--- Lets a paused timer's clock go on, with the time that was left. Of a timer that is not paused
-- it changes nothing.
-- @tparam number|string which handle or name
-- @treturn true|nil
-- @treturn string|nil "timer not found"
-- @phases all
function _M:resume(which)
    check_which("resume", which)
    return self.backend.resume(self.core, which)
end

--- Sets a timer's clock to its whole delay or interval, and lets it go on if it is paused. Of a
-- recurrent timer that runs the clock begins at the end of the run, unless runs may overlap.
-- @tparam number|string which handle or name
-- @treturn true|nil
-- @treturn string|nil "timer not found"
-- @phases all
function _M:restart(which)
    check_which("restart", which)
    return self.backend.restart(self.core, which)
end

--- Whether there is such a timer: waiting, paused, or recurrent.
-- @tparam number|string which handle or name
-- @treturn boolean
-- @phases all
function _M:is_managed(which)
    check_which("is_managed", which)
    return self.backend.is_managed(self.core, which)
end

-- All of them ------------------------------------------------------------------------------------

--- Holds all callbacks until `unfreeze`, and the clocks of all timers; runs under way go on.
-- @phases all
function _M:freeze()
    self.backend.freeze(self.core, true)
end

--- Ends `freeze`.
-- @phases all
function _M:unfreeze()
    self.backend.freeze(self.core, false)
end

--- Drops every timer, without a call, and ends the contexts; runs under way go on to their end.
-- From here on creating returns nil, "destroyed".
-- @phases all
function _M:destroy()
    self.destroyed = true
    self.backend.destroy(self.core)
end

--- Figures. Totals and creation places always; each timer, and folded stacks, on demand.
-- @tparam[opt] table opts
--
-- - `timers`: true for every timer; a handle or a name for that one.
-- - `flamegraph`: true for folded stacks, of creation places or, in debug mode, of call stacks.
-- @treturn table see docs/timer.md. With `timers` it yields each millisecond of work, in phases
--   that may yield.
-- @phases all
function _M:stats(opts)
    if opts ~= nil and type(opts) ~= "table" then
        error(misuse(1, "stats", "opts", "table", type(opts)), 2)
    end
    for name, value in pairs(opts or {}) do
        local types, problem = STATS_OPTIONS[name], nil
        if not types then
            problem = ("unknown option %s"):format(show(name))
        elseif not types[type(value)] then
            problem = ("option '%s': %s expected, got %s"):format(name, types.said, type(value))
        end
        if problem then
            error(("bad argument #1 'opts' to 'stats' (%s)"):format(problem), 2)
        end
    end
    return report.make(self.backend, self.core, opts or {})
end

--- Puts `at` and `every` of these timers in the place of `ngx.timer.at` and `ngx.timer.every`, for
-- all Lua code of the worker, until it is undone. Code that kept nginx's functions in a local has
-- nginx's still. Runs of a recurrent timer may overlap, as with nginx; arguments, errors and what
-- is returned are those of `at` and `every`. `ngx.timer.running_count` and `pending_count` go on
-- counting nginx's own.
-- @treturn function puts back what was there before and returns true; or nil and "not in place",
--   if others have put theirs there since, or it is undone already. Timers that were made stay.
-- @phases all; meant for init_worker, after `start`
-- @usage
-- local undo = t:replace_ngx_timer()
-- ngx.timer.at(0, callback)                               -- a timer of t
-- undo()
function _M:replace_ngx_timer()
    return replace.ngx_timer(self)
end

--- In debug mode a timer's creation place is its whole call stack; that costs microseconds and
-- counts for those created from here on.
-- @tparam boolean on
-- @phases all
function _M:set_debug(on)
    if type(on) ~= "boolean" then
        error(misuse(1, "set_debug", "on", "boolean", type(on)), 2)
    end
    self.backend.set_debug(self.core, on)
end

return _M
