--- A queue in a worker's memory that hands its entries over in batches, and again until it works.
--
-- For what follows a request and may be late, but not lost: logs, metrics, traces. Entries are
-- strings (with `size_of` anything); where several come at once, they are lines of one string, cut
-- only where a batch ends. A batch leaves when it is full, or when its first entry has waited for
-- long enough; one that cannot be delivered is tried again, later each time. Waiting takes a timer,
-- not a coroutine.
--
-- It holds at most `max_entries` and `max_bytes`, batches under way included; beyond, the oldest
-- that waits goes, and the log says how many went. A worker that leaves (reload, quit) sends what
-- it holds at once and goes on trying for `drain_time` after the last entry came. An entry may be
-- delivered twice (where the receiver's response was lost), and is lost with a worker that is
-- killed.
-- @module sluice.queue
-- @usage
-- local queue = require("sluice.queue")
-- local q = queue.new({
--     name = "to the archive",
--     timers = timers, -- a started system of sluice.timer
--     current = function() return settings, context end,
--     send = function(context, texts, count) return archive(context, texts) end,
-- })
-- q:push("an entry") -- in any phase of a worker

local lines = require("sluice.lines")
local seconds = require("sluice.clock").monotonic

local floor = math.floor
local max = math.max
local min = math.min
local ngx = ngx

-- Batches under way at once where there is no limit: each takes a connection of its receiver.
local MAX_SENDERS = 64

-- Trouble is logged at most this often by a queue; what falls between is counted.
local REPORT_SECONDS = 10

-- Between attempts of a worker that leaves: it has no time for longer ones.
local DRAIN_RETRY_SECONDS = 0.5

local DEFAULT_DRAIN_SECONDS = 20

-- Senders of all queues in a worker that leaves: each takes one of nginx's own timers, of which 256
-- may run unless nginx is told otherwise.
local MAX_LAST_SENDERS = 100

-- From where to where a number may be. A timer takes each time.
local MAX_SECONDS = 1e9
local LIMITS = {
    max_batch_size = { 1, 2 ^ 31 },
    max_coalescing_delay = { 0, MAX_SECONDS },
    max_entries = { 1, 2 ^ 53 },
    max_bytes = { -2 ^ 53, 2 ^ 53, is_optional = true },
    initial_retry_delay = { 0, MAX_SECONDS },
    max_retry_delay = { 0, MAX_SECONDS },
    max_retry_time = { -2 ^ 53, 2 ^ 53 },
    concurrency_limit = { -1, 2 ^ 31 },
    drain_time = { 0, MAX_SECONDS, is_optional = true },
}

local _M = {}
local mt = { __index = _M }

local run, retry, on_due

-- In a worker that leaves: how many senders there are, and the queues that wait for one.
local last_senders, without_sender = 0, {}

-- Trouble ----------------------------------------------------------------------

local function log_dropped(self)
    ngx.log(
        ngx.ERR,
        self.name,
        ": ",
        self.unreported,
        self.unreported == 1 and " entry was dropped, " or " entries were dropped, ",
        self.drop_reason
    )
    self.unreported = 0
    self.next_report_at = seconds() + REPORT_SECONDS
end

local function report_late(_, self)
    self.is_report_due = false
    if self.unreported > 0 then
        log_dropped(self)
    end
end

local function count_dropped(self, count, reason)
    if self.on_drop then
        self.on_drop(count)
    end
    self.dropped = self.dropped + count
    self.unreported = self.unreported + count
    self.drop_reason = reason
    local now = seconds()
    if now >= self.next_report_at then
        log_dropped(self)
    elseif not self.is_report_due then
        self.is_report_due = self.timers:at(self.next_report_at - now, report_late, self) ~= nil
        if not self.is_report_due then
            log_dropped(self)
        end
    end
end

local function report_failure(self, err)
    self.failures = self.failures + 1
    local now = seconds()
    if now >= self.next_warning_at then
        self.has_warned = true
        self.next_warning_at = now + REPORT_SECONDS
        ngx.log(ngx.WARN, self.name, ": not delivered, ", self.count, " entries wait: ", err)
    end
end

local function report_success(self)
    if self.has_warned then
        self.has_warned = false
        ngx.log(ngx.NOTICE, self.name, ": delivered again")
    end
end

-- Batches ----------------------------------------------------------------------

-- What is wrong with a number.
local function problem_of(name, value)
    local limits = LIMITS[name]
    if value == nil and limits.is_optional then
        return nil
    elseif type(value) ~= "number" then
        return ("%s: number expected, got %s"):format(name, type(value))
    elseif not (value >= limits[1] and value <= limits[2]) then
        return ("%s: must be between %.14g and %.14g"):format(name, limits[1], limits[2])
    end
    return nil
end

-- What is wrong with settings.
local function problem_in(settings)
    for name in pairs(LIMITS) do
        local problem = name ~= "drain_time" and problem_of(name, settings[name])
        if problem then
            return problem
        end
    end
    return nil
end

--- Takes over what is in force now: settings, and what `send` is given. Settings of before stay
-- where the new ones are wrong.
local function refresh(self)
    local settings, context = self.current()
    self.context = context
    if settings == self.settings or settings == self.refused then
        return
    end
    local problem = problem_in(settings)
    if problem then
        self.refused = settings
        ngx.log(ngx.ERR, self.name, ": settings are refused: ", problem)
        return
    end
    self.settings = settings
end

--- The oldest entries that wait: at most a batch.
local function take(self)
    local size = min(self.waiting.count, self.settings.max_batch_size)
    local texts, counts, left, bytes = {}, {}, size, 0
    while left > 0 do
        local text, count = self.waiting:take(left)
        texts[#texts + 1], counts[#counts + 1] = text, count
        bytes = bytes + self.size_of(text)
        left = left - count
    end
    self.since = seconds()
    return {
        texts = texts,
        counts = counts,
        size = size,
        bytes = bytes,
        attempts = 0,
        context = self.context,
    }
end

--- Drops the oldest that waits.
-- @treturn boolean whether there was one
local function drop_oldest(self)
    if self.waiting.count == 0 then
        return false
    end
    self.bytes = self.bytes - self.size_of((self.waiting:take(1)))
    self.count = self.count - 1
    return true
end

--- Takes a batch apart, since it would be another one under the settings of now.
local function put_back(self, batch)
    for i = #batch.texts, 1, -1 do
        self.waiting:put_back(batch.texts[i], batch.counts[i])
    end
    self.since = 0
end

--- A batch is delivered, or given up.
local function settle(self, batch)
    self.count = self.count - batch.size
    self.bytes = self.bytes - batch.bytes
end

--- How long a worker that leaves goes on trying.
local function drain_left(self, now)
    self.drain_until = self.drain_until or now + self.drain_seconds
    return self.drain_until - now
end

--- Seconds until the next attempt, nil when there is to be none.
local function next_wait(self, batch)
    local settings = self.settings
    local now = seconds()
    local wait =
        min(settings.max_retry_delay, settings.initial_retry_delay * 2 ^ (batch.attempts - 1))
    local left = batch.started_at + settings.max_retry_time - now
    if ngx.worker.exiting() then
        left = min(left, drain_left(self, now))
        wait = min(wait, DRAIN_RETRY_SECONDS)
    end
    if left <= 0 then
        return nil
    end
    return min(wait, left)
end

local function attempt(self, batch)
    local left = ngx.worker.exiting() and max(0.1, drain_left(self, seconds())) or nil
    batch.attempts = batch.attempts + 1
    local ok, sent, err = pcall(self.send, batch.context, batch.texts, batch.size, left)
    if not ok then
        return nil, tostring(sent)
    end
    return sent, err
end

--- Tries to deliver a batch. Yields.
-- @treturn boolean whether it is settled; otherwise a timer goes on with it
local function deliver(self, batch)
    batch.started_at = batch.started_at or seconds()
    while true do
        local sent, err = attempt(self, batch)
        if sent then
            self.delivered = self.delivered + batch.size
            settle(self, batch)
            report_success(self)
            return true
        end
        report_failure(self, err)
        local wait = next_wait(self, batch)
        if not wait then
            settle(self, batch)
            count_dropped(self, batch.size, "not delivered in time: " .. tostring(err))
            return true
        elseif ngx.worker.exiting() or not self.timers:at(wait, retry, self, batch) then
            ngx.sleep(wait)
        else
            return false
        end
    end
end

-- Senders ----------------------------------------------------------------------

local function is_due(self)
    local count = self.waiting.count
    if count == 0 then
        return false
    end
    local settings = self.settings
    return count >= settings.max_batch_size
        or ngx.worker.exiting()
        or seconds() - self.since >= settings.max_coalescing_delay
end

--- Waits until a batch is due.
local function arm(self)
    if not self.is_armed and self.waiting.count > 0 then
        local delay = max(0, self.settings.max_coalescing_delay - (seconds() - self.since))
        self.is_armed = self.timers:at(delay, on_due, self) ~= nil
    end
end

--- A sender of a worker that leaves, and then of the queues that wait for one.
local function run_last(_, self)
    while self do
        run(nil, self)
        self = table.remove(without_sender)
    end
    last_senders = last_senders - 1
end

local function start_last(self)
    if last_senders >= MAX_LAST_SENDERS then
        without_sender[#without_sender + 1] = self
        return true
    end
    local is_started = ngx.timer.at(0, run_last, self)
    last_senders = last_senders + (is_started and 1 or 0)
    return is_started
end

--- Starts a sender. In a worker that leaves the contexts of timers may have ended when its last
-- requests do; what is due at once nginx still runs there, and waits for.
local function start(self)
    local is_started
    if ngx.worker.exiting() then
        is_started = start_last(self)
    else
        is_started = self.timers:at(0, run, self)
    end
    if is_started then
        self.senders = self.senders + 1
    end
end

--- Begins to send what is due; asked whenever entries come.
local function wake(self)
    local free = self.max_senders - self.senders
    if free <= 0 then
        return -- one of them takes up what has come
    end
    local batches = floor(self.waiting.count / self.settings.max_batch_size)
    if batches == 0 and not ngx.worker.exiting() then
        return arm(self)
    end
    for _ = 1, min(max(batches, 1), free) do
        start(self)
    end
end

--- Gives up what still waits where a worker that leaves has no time left.
local function give_up_late(self)
    if ngx.worker.exiting() and drain_left(self, seconds()) <= 0 then
        local dropped = 0
        while drop_oldest(self) do
            dropped = dropped + 1
        end
        if dropped > 0 then
            count_dropped(self, dropped, "the worker had to leave")
        end
    end
end

--- One sender: delivers batch after batch while any is due.
run = function(_, self)
    refresh(self)
    self.max_senders = self.settings.concurrency_limit == -1 and MAX_SENDERS or 1
    while is_due(self) do
        if not deliver(self, take(self)) then
            return
        end
        give_up_late(self)
        refresh(self)
    end
    self.senders = self.senders - 1
    arm(self)
end

retry = function(_, self, batch)
    refresh(self)
    if self.context ~= batch.context then
        put_back(self, batch)
    elseif not deliver(self, batch) then
        return
    end
    return run(nil, self)
end

on_due = function(_, self)
    self.is_armed = false
    if self.senders < self.max_senders then
        self.senders = self.senders + 1
        return run(nil, self)
    end
end

-- The interface ----------------------------------------------------------------

--- Makes a queue. It has no timer as long as it is empty.
-- @tparam table opts
-- @tparam string opts.name for the log
-- @tparam table opts.timers a started system of sluice.timer
-- @tparam function opts.current asked before each batch and each attempt, must not yield: the
--   settings in force, a table of numbers `max_batch_size`, `max_coalescing_delay` (seconds),
--   `max_entries`, `max_bytes` (optional), `initial_retry_delay`, `max_retry_delay`,
--   `max_retry_time` (seconds; negative: no retry), `concurrency_limit` (1, or -1: 64); and a
--   context for `send`. A batch that waits is made anew when the context is another one.
-- @tparam function opts.send `(context, texts, count, seconds_left)` delivers a batch of so many
--   entries, as they were pushed: true, or nil and why not. It may yield, and may throw.
--   `seconds_left` is given in a worker that leaves.
-- @tparam[opt=20] number opts.drain_time seconds, 0 to 1e9
-- @tparam[opt] function opts.size_of `(entry)`: its bytes, always the same; must not yield
-- @tparam[opt] function opts.on_drop `(count)`: so many entries were dropped; must not yield
-- @treturn table; a number that is missing, not a number or out of bounds throws. The bounds: times
--   0 to 1e9, `max_retry_time` any, counts from 1. Wrong settings that come later are logged, and
--   those of before stay.
-- @phases init_worker and later
function _M.new(opts)
    local problem = problem_of("drain_time", opts.drain_time) or problem_in((opts.current()))
    if problem then
        error("bad argument #1 to 'new' (" .. problem .. ")", 2)
    end
    local self = setmetatable({
        name = opts.name,
        timers = opts.timers,
        current = opts.current,
        send = opts.send,
        on_drop = opts.on_drop,
        size_of = opts.size_of or string.len,
        drain_seconds = opts.drain_time or DEFAULT_DRAIN_SECONDS,
        waiting = lines.new(),
        since = 0, -- when the first that waits came, or those before it left
        count = 0, -- with those under way
        bytes = 0,
        senders = 0,
        max_senders = 1,
        is_armed = false,
        delivered = 0,
        dropped = 0,
        failures = 0,
        has_warned = false,
        unreported = 0,
        next_report_at = 0,
        next_warning_at = 0,
        is_report_due = false,
    }, mt)
    refresh(self)
    self.max_senders = self.settings.concurrency_limit == -1 and MAX_SENDERS or 1
    return self
end

local function is_over(self)
    local settings = self.settings
    return self.count > settings.max_entries
        or (settings.max_bytes ~= nil and self.bytes > settings.max_bytes)
end

--- Drops the oldest that wait until what is left has room.
local function make_room(self)
    local dropped = 0
    while is_over(self) and drop_oldest(self) do
        dropped = dropped + 1
    end
    if dropped > 0 then
        count_dropped(self, dropped, "the queue is full")
    end
end

--- Adds an entry, or several. Does not yield.
-- @tparam string text
-- @tparam[opt=1] number count entries that it has; of several each is a line with its end
-- @treturn true|nil
-- @treturn string|nil "full": none of it has room even without all that waits
-- @phases any of a worker
function _M:push(text, count)
    count = count or 1
    if self.waiting.count == 0 then
        self.since = seconds()
    end
    self.waiting:push(text, count)
    self.count = self.count + count
    self.bytes = self.bytes + self.size_of(text)
    make_room(self)
    if self.waiting.count == 0 then
        return nil, "full"
    end
    self.drain_until = nil
    wake(self)
    return true
end

--- What it holds and has done: `entries` and `bytes` with those under way, `senders`, and since the
-- worker's start `delivered`, `dropped`, `failures` (attempts).
-- @treturn table
-- @phases any
function _M:stats()
    return {
        entries = self.count,
        bytes = self.bytes,
        senders = self.senders,
        delivered = self.delivered,
        dropped = self.dropped,
        failures = self.failures,
    }
end

return _M
