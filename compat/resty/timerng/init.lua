--- `resty.timerng`: the interface of lua-resty-timer-ng 0.2 on sluice.timer.
--
-- Its README and its specs are the contract. What is different: a timer fires within a millisecond
-- of its time and never before it, whatever `resolution` says; no delay is too short to be managed;
-- within the callback of a one-shot its name is free again. A callback is called by sluice.timer
-- itself: a fire costs no more here than there.
-- @module resty.timerng
-- @usage
-- local timers = require("resty.timerng").new({ max_threads = 64, min_threads = 8 })
-- timers:start()                                          -- in init_worker
-- local name = timers:every(1, function(premature) end)
-- timers:cancel(name)

local report = require("sluice.timer.report")
local timerng = require("sluice.timer.timerng")
local sluice_timer = require("sluice.timer")

local _M = {}
local mt = { __index = _M }

-- nginx's own, for what is beyond the range of the wheels that the options tell of.
local timer_at, timer_every = ngx.timer.at, ngx.timer.every

-- Shorter intervals are as this one; longer times are refused, as by sluice.timer.
local MIN_INTERVAL_SECONDS = 0.001
local MAX_SECONDS = 1e11

-- Callers between sluice.timer and the user's code.
local LEVEL = 2

local RESOLUTION_SECONDS = 0.1
local SLOTS = { 10, 60, 60, 24 }

-- Options that are known. Most have nothing to say here: contexts come and go as they are needed.
local OPTIONS = {
    debug = { type = "boolean" },
    resolution = { type = "number", least = RESOLUTION_SECONDS },
    restart_thread_after_runs = { type = "number", least = 1, whole = true },
    auto_scaling_load_threshold = { type = "number", above = 0 },
    auto_scaling_interval = { type = "number", above = 0 },
    force_update_time = { type = "boolean" },
    min_threads = { type = "number", least = 1, most = 16383, whole = true },
    max_threads = { type = "number", least = 1, most = 16383, whole = true },
    wheel_setting = { type = "table" },
}

local function check(is_right, name, expected)
    assert(is_right, ("expected `%s` to be %s"):format(name, expected))
end

local function check_number(name, value, option)
    check(type(value) == "number" and value == value, name, "a number")
    check(value <= (option.most or MAX_SECONDS), name, "at most " .. (option.most or MAX_SECONDS))
    if option.least then
        check(value >= option.least, name, "at least " .. option.least)
    end
    if option.above then
        check(value > option.above, name, "greater than " .. option.above)
    end
    check(not option.whole or value % 1 == 0, name, "an integer")
end

local function check_wheels(setting)
    local level, slots = setting.level, setting.slots_for_each_level
    local of_slots = "wheel_setting.slots_for_each_level"
    check_number("wheel_setting.level", level, { least = 1, whole = true })
    check(type(slots) == "table", of_slots, "a table")
    check(#slots == level, "wheel_setting.level", "the length of `" .. of_slots .. "`")
    for i = 1, level do
        check_number(("%s[%d]"):format(of_slots, i), slots[i], { least = 1, whole = true })
    end
end

local function check_options(options)
    check(type(options) == "table", "options", "a table")
    for name, value in pairs(options) do
        local option = OPTIONS[name]
        assert(option, ("unknown option `%s`"):format(tostring(name)))
        if option.type == "number" then
            check_number(name, value, option)
        else
            check(type(value) == option.type, name, "a " .. option.type)
        end
    end
    local min, max = options.min_threads, options.max_threads
    if min or max then
        assert(min and max, "both `min_threads` and `max_threads` must be set")
        check(max > min, "max_threads", "greater than `min_threads`")
    end
    if options.wheel_setting then
        check_wheels(options.wheel_setting)
    end
end

-- The delays that the original's wheels have room for, as its README computes it.
local function range_of(options)
    local setting = options.wheel_setting
    local seconds = options.resolution or RESOLUTION_SECONDS
    for _, slots in ipairs(setting and setting.slots_for_each_level or SLOTS) do
        seconds = seconds * slots
    end
    return seconds - 2
end

--- Makes a system of timers.
-- @tparam[opt] table options of lua-resty-timer-ng; unknown and wrong ones throw
-- @treturn table
-- @phases all
function _M.new(options)
    options = options or {}
    check_options(options)
    return setmetatable({
        timers = sluice_timer.new({
            debug = options.debug,
            min_contexts = options.min_threads and math.max(2, options.min_threads),
            -- one stays free to take over
            max_contexts = options.max_threads and options.max_threads + 1,
        }),
        range_seconds = range_of(options),
        paused = {}, -- name -> true
        last = 0,
        is_enabled = false,
    }, mt)
end

--- Starts it, or ends `freeze`.
-- @treturn boolean
-- @treturn string|nil why not
-- @phases init_worker and later
function _M:start()
    local ok, err = self.timers:start()
    if not ok then
        return false, err
    end
    self.timers:unfreeze()
    self.is_enabled = true
    return true
end

--- Holds all callbacks, and the clocks of all timers, until `start`.
-- @phases all
function _M:freeze()
    self.is_enabled = false
    self.timers:freeze()
end

--- Drops all timers; nothing can be done with the object any more.
-- @phases all
function _M:destroy()
    self.is_enabled = false
    self.timers:destroy()
end

-- Called by public functions, and by no tail call: LEVEL counts on it.
local function create(self, verb, name, opts, callback, ...)
    if name == nil then
        self.last = self.last + 1
        name = "timer-" .. self.last
    end
    local handle, err = self.timers[verb](self.timers, name, opts, callback, ...)
    return handle ~= nil and name, err
end

local function check_creation(self, name, callback)
    assert(self.is_enabled, "the timer module is not started")
    check(type(callback) == "function", "callback", "a function")
    check(name == nil or type(name) == "string", "name", "a string")
end

local function once(self, name, delay, callback)
    check_creation(self, name, callback)
    check_number("delay", delay, { least = 0 })
    return { delay = delay, level = LEVEL }
end

local function recurrent(self, name, interval, callback)
    check_creation(self, name, callback)
    check_number("interval", interval, { above = 0 })
    return { interval = math.max(interval, MIN_INTERVAL_SECONDS), fixed = "delay", level = LEVEL }
end

--- Runs a callback once.
-- @tparam string|nil name nil: one is made up
-- @tparam number delay 0 to 1e11 seconds, others throw; a delay that the wheels of the options have
--   no room for (a day, if they do not say) becomes a timer of nginx
-- @tparam function callback called with (premature, ...)
-- @param ... for the callback
-- @treturn string|boolean the name, or false; of a timer of nginx what it returns
-- @treturn string|nil "already exists timer", or an error of sluice.timer's `at`
-- @phases all, after `start`
function _M:named_at(name, delay, callback, ...)
    local opts = once(self, name, delay, callback)
    if delay >= self.range_seconds then
        return timer_at(delay, callback, ...)
    end
    local created, err = create(self, "named_at", name, opts, callback, ...)
    return created, err
end

--- Runs a callback again and again, each time an interval after the end of the run before; see
-- `named_at`. The interval is more than 0, and at most 1e11 seconds.
-- @phases all, after `start`
function _M:named_every(name, interval, callback, ...)
    local opts = recurrent(self, name, interval, callback)
    if interval >= self.range_seconds then
        return timer_every(interval, callback, ...)
    end
    local created, err = create(self, "named_every", name, opts, callback, ...)
    return created, err
end

--- `named_at` with a name that is made up.
-- @phases all, after `start`
function _M:at(delay, callback, ...)
    return self:named_at(nil, delay, callback, ...)
end

--- `named_every` with a name that is made up.
-- @phases all, after `start`
function _M:every(interval, callback, ...)
    return self:named_every(nil, interval, callback, ...)
end

--- Stops a timer's clock.
-- @tparam string name
-- @treturn boolean
-- @treturn string|nil "timer not found"
-- @phases all
function _M:pause(name)
    check(type(name) == "string", "name", "a string")
    local ok, err = self.timers:pause(name)
    self.paused[name] = ok
    return ok or false, err
end

--- Sets a paused timer's clock to its full time and lets it go on; if a run of it is under way,
-- from the end of that.
-- @tparam string name
-- @treturn boolean
-- @treturn string|nil "timer not found"; "running": it is not paused
-- @phases all
function _M:resume(name)
    check(type(name) == "string", "name", "a string")
    if not self.timers:is_managed(name) then
        return false, "timer not found"
    elseif not self.paused[name] then
        return false, "running"
    end
    self.paused[name] = nil
    return self.timers:restart(name)
end

--- Removes a timer; a run of it that is under way goes on to its end.
-- @tparam string name
-- @treturn boolean
-- @treturn string|nil "timer not found"
-- @phases all
function _M:cancel(name)
    check(type(name) == "string", "name", "a string")
    self.paused[name] = nil
    local ok, err = self.timers:cancel(name)
    return ok or false, err
end

--- Whether there is such a timer.
-- @tparam string name
-- @treturn boolean
-- @phases all
function _M:is_managed(name)
    return type(name) == "string" and self.timers:is_managed(name)
end

--- Whether statistics tell the call stacks that created timers, from here on.
-- @tparam boolean status
-- @phases all
function _M:set_debug(status)
    self.timers:set_debug(not not status)
end

-- The timers of sluice.timer's statistics, by name.
local function by_name(timers)
    local out, turn = {}, report.turn()
    for _, timer in ipairs(timers) do
        -- Without one: it runs for the last time, and another has its name by now.
        if timer.name then
            local place = timer.debug and timer.place or "debug off"
            local is_running = timer.state == "running"
            out[timer.name] = timerng.timer(timer.name, timer, place, is_running)
        end
        turn()
    end
    return out
end

--- Figures.
-- @tparam[opt] table options `verbose`: each timer; with it `flamegraph`: folded stacks
-- @treturn table `{sys = {running, pending, waiting, total, runs}, timers = name -> {name,
--   is_running, meta = {name, callstack}, stats = {elapsed_time = {avg, max, min, variance}, runs,
--   finish, last_err_msg}}, flamegraph = {running, pending, elapsed_time}}`; elapsed times in
--   seconds, in the folded stacks milliseconds. With `verbose` it yields now and then where the
--   phase allows it.
-- @phases all
function _M:stats(options)
    options = options or {}
    local is_verbose = options.verbose or false
    local has_flamegraph = is_verbose and options.flamegraph or false
    local found = self.timers:stats({ timers = is_verbose or nil, flamegraph = has_flamegraph })
    local sys = found.sys
    local out = {
        sys = {
            running = sys.running,
            pending = sys.pending,
            waiting = sys.waiting + sys.paused,
            total = sys.total,
            runs = sys.runs,
        },
    }
    if is_verbose then
        out.timers = by_name(found.timers)
    end
    if has_flamegraph then
        out.flamegraph = timerng.flamegraph(found.flamegraph)
    end
    return out
end

return _M
