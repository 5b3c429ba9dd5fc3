--- `resty.timerng`: the interface of lua-resty-timer-ng 0.2 on sluice.timer.
--
-- Its README is the contract. What is different: a timer fires within a millisecond of its time and
-- never before it, whatever `resolution` and `wheel_setting` say; no delay is too short or too long
-- to be managed; `freeze` holds callbacks back while clocks run. A timer here takes a table besides
-- what it takes in sluice.timer, which new code uses itself.
-- @module resty.timerng
-- @usage
-- local timers = require("resty.timerng").new({ max_threads = 64, min_threads = 8 })
-- timers:start()                                          -- in init_worker
-- local name = timers:every(1, function(premature) end)
-- timers:cancel(name)

local dialect = require("sluice.timer.dialect")
local sluice_timer = require("sluice.timer")

local _M = {}
local mt = { __index = _M }

-- Shorter intervals are as this one.
local MIN_INTERVAL_SECONDS = 0.001

-- Callers between `arm` and the user's code: of what creates, and of `resume`.
local CREATE_LEVEL = 4
local RESUME_LEVEL = 2

-- Options that are known, and their type. Some have nothing to say here: there is no wheel to set
-- up, and contexts come and go as they are needed.
local OPTIONS = {
    debug = "boolean",
    resolution = "number",
    restart_thread_after_runs = "number",
    auto_scaling_load_threshold = "number",
    auto_scaling_interval = "number",
    force_update_time = "boolean",
    min_threads = "number",
    max_threads = "number",
    wheel_setting = "table",
}

local function check_options(options)
    assert(type(options) == "table", "expected `options` to be a table")
    for name, value in pairs(options) do
        local expected = OPTIONS[name]
        assert(expected, ("unknown option `%s`"):format(tostring(name)))
        assert(type(value) == expected, ("expected `%s` to be a %s"):format(name, expected))
    end
    local min, max = options.min_threads, options.max_threads
    if min or max then
        assert(min and max, "both `min_threads` and `max_threads` must be set")
        assert(min > 0 and min % 1 == 0, "expected `min_threads` to be an integer above 0")
        assert(
            max > min and max % 1 == 0,
            "expected `max_threads` to be greater than `min_threads`"
        )
    end
end

--- Makes a system of timers.
-- @tparam[opt] table options of lua-resty-timer-ng; unknown ones throw
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
        -- Name -> {name, handle, delay, is_recurrent, is_paused, running, callback, count, ...}
        records = {},
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

--- Holds all callbacks back until `start`.
-- @phases all
function _M:freeze()
    self.is_enabled = false
    self.timers:freeze()
end

--- Drops all timers; nothing can be done with the object any more.
-- @phases all
function _M:destroy()
    self.records = {}
    self.is_enabled = false
    self.timers:destroy()
end

-- The callback of every timer. A one-shot's name is free again before its callback runs.
local function fire(premature, self, record)
    if not record.is_recurrent and self.records[record.name] == record then
        self.records[record.name] = nil
    end
    record.running = record.running + 1
    local ok, err = pcall(record.callback, premature, unpack(record, 1, record.count))
    record.running = record.running - 1
    if not ok then
        error(err, 0)
    end
end

--- Sets a record's clock to its full time.
local function arm(self, record, level)
    local handle, err
    if record.is_recurrent then
        handle, err =
            self.timers:every({ interval = record.delay, level = level }, fire, self, record)
    else
        handle, err = self.timers:at({ delay = record.delay, level = level }, fire, self, record)
    end
    record.handle = handle
    return handle ~= nil, err
end

local function create(self, name, delay, is_recurrent, callback, ...)
    assert(self.is_enabled, "the timer module is not started")
    assert(type(callback) == "function", "expected `callback` to be a function")
    assert(name == nil or type(name) == "string", "expected `name` to be a string")
    if name == nil then
        self.last = self.last + 1
        name = "timer-" .. self.last
    end
    if self.records[name] then
        return false, "already exists timer"
    end
    local record = {
        name = name,
        delay = delay,
        is_recurrent = is_recurrent,
        running = 0,
        callback = callback,
        count = select("#", ...),
        ...,
    }
    local ok, err = arm(self, record, CREATE_LEVEL)
    if not ok then
        return false, err
    end
    self.records[name] = record
    return name
end

local function create_once(self, name, delay, callback, ...)
    assert(type(delay) == "number", "expected `delay` to be a number")
    assert(delay >= 0, "expected `delay` to be greater than or equal to 0")
    local created, err = create(self, name, delay, false, callback, ...)
    return created, err
end

local function create_recurrent(self, name, interval, callback, ...)
    assert(type(interval) == "number", "expected `interval` to be a number")
    assert(interval > 0, "expected `interval` to be greater than 0")
    interval = math.max(interval, MIN_INTERVAL_SECONDS)
    local created, err = create(self, name, interval, true, callback, ...)
    return created, err
end

--- Runs a callback once.
-- @tparam string|nil name nil: one is made up
-- @tparam number delay seconds, from 0
-- @tparam function callback called with (premature, ...)
-- @param ... for the callback
-- @treturn string|boolean the name, or false
-- @treturn string|nil "already exists timer", or an error of sluice.timer's `at`
-- @phases all, after `start`
function _M:named_at(name, delay, callback, ...)
    local created, err = create_once(self, name, delay, callback, ...)
    return created, err
end

--- Runs a callback again and again; see `named_at`.
-- @phases all, after `start`
function _M:named_every(name, interval, callback, ...)
    local created, err = create_recurrent(self, name, interval, callback, ...)
    return created, err
end

--- `named_at` with a name that is made up.
-- @phases all, after `start`
function _M:at(delay, callback, ...)
    local created, err = create_once(self, nil, delay, callback, ...)
    return created, err
end

--- `named_every` with a name that is made up.
-- @phases all, after `start`
function _M:every(interval, callback, ...)
    local created, err = create_recurrent(self, nil, interval, callback, ...)
    return created, err
end

local function find(self, name)
    assert(type(name) == "string", "expected `name` to be a string")
    return self.records[name]
end

--- Stops a timer's clock.
-- @tparam string name
-- @treturn boolean
-- @treturn string|nil "timer not found"
-- @phases all
function _M:pause(name)
    local record = find(self, name)
    if not record then
        return false, "timer not found"
    end
    if not record.is_paused then
        record.is_paused = true
        self.timers:pause(record.handle)
    end
    return true
end

--- Sets a paused timer's clock to its full time and lets it go on.
-- @tparam string name
-- @treturn boolean
-- @treturn string|nil "timer not found"; "running": it is not paused
-- @phases all
function _M:resume(name)
    local record = find(self, name)
    if not record then
        return false, "timer not found"
    elseif not record.is_paused then
        return false, "running"
    end
    record.is_paused = false
    self.timers:cancel(record.handle)
    local ok, err = arm(self, record, RESUME_LEVEL)
    return ok, err
end

--- Removes a timer; a run of it that is under way goes on to its end.
-- @tparam string name
-- @treturn boolean
-- @treturn string|nil "timer not found"
-- @phases all
function _M:cancel(name)
    local record = find(self, name)
    if not record then
        return false, "timer not found"
    end
    self.records[name] = nil
    self.timers:cancel(record.handle)
    return true
end

--- Whether there is such a timer.
-- @tparam string name
-- @treturn boolean
-- @phases all
function _M:is_managed(name)
    return self.records[name] ~= nil
end

--- Whether creation places are call stacks.
-- @tparam boolean status
-- @phases all
function _M:set_debug(status)
    self.timers:set_debug(not not status)
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
        out.timers = {}
        local by_handle = {}
        for _, timer in ipairs(found.timers) do
            by_handle[timer.handle] = timer
        end
        for name, record in pairs(self.records) do
            local timer = by_handle[record.handle]
            if timer then
                out.timers[name] = dialect.timer(name, timer, timer.place, record.running > 0)
            end
        end
    end
    if has_flamegraph then
        out.flamegraph = dialect.flamegraph(found.flamegraph)
    end
    return out
end

return _M
