--- The poll transport: events lie in a shared dictionary, a timer looks for new ones.
--
-- The old design, kept as the yardstick of the benchmarks. Events have numbers
-- and are found by them; each worker remembers the last one it has seen. A full
-- dictionary throws out what was used least recently, so a worker that comes too
-- late finds a gap: it counts it, and says so once an interval.
-- @module sluice.events.poll
-- @usage lua_shared_dict sluice_events 16m;

local buffer = require("string.buffer")
local worker_id = require("sluice.events.worker_id")

local _M = {}

--- Options beside those of sluice.events, with their types.
_M.options = { shm = "string", interval = "number", wait_max = "number" }

local AGENT = worker_id.AGENT

local WAIT_SECONDS = 0.01
local MAX_SECONDS = 86400

local Poll = {}
Poll.__index = Poll

--- Makes the transport.
-- @tparam table opts those of sluice.events, checked, and `shm`: name of a shared dictionary
--   (sluice_events); `interval`: seconds between two looks (1; 0.001 to 86400); `wait_max`: seconds
--   for which one look waits for events whose publishers have numbers but have not stored them yet
--   (0.5; 0 to 86400)
-- @treturn table|nil
-- @treturn string|nil the directive that is missing
-- @phases init, init_worker
function _M.new(opts)
    local name = opts.shm or "sluice_events"
    local interval, wait_max = opts.interval or 1, opts.wait_max or 0.5
    if not (interval >= 0.001 and interval <= MAX_SECONDS) then
        error("option 'interval': must be between 0.001 and " .. MAX_SECONDS, 3)
    elseif not (wait_max >= 0 and wait_max <= MAX_SECONDS) then
        error("option 'wait_max': must be between 0 and " .. MAX_SECONDS, 3)
    end
    local dict = ngx.shared[name]
    if not dict then
        return nil, ("nginx.conf lacks 'lua_shared_dict %s 16m;'"):format(name)
    end
    local prefix = opts.name .. "/"
    return setmetatable({
        dict = dict,
        prefix = prefix,
        -- Workers of this nginx, or of this reload, begin here.
        at_init = ngx.get_phase() == "init" and (dict:get(prefix .. "last") or 0),
        generation = dict:incr(prefix .. "generation", 1, 0),
        interval = interval,
        wait_max = wait_max,
        max_payload_len = opts.max_payload_len,
        unique_timeout = opts.unique_timeout,
        encoder = buffer.new(),
        seen = 0,
        counts = {
            published = 0,
            published_bytes = 0,
            repeats = 0,
            refused = 0,
            read = 0,
            read_bytes = 0,
            skipped = 0,
            polls = 0,
            overruns = 0,
            missed = 0,
            evicted = 0,
        },
    }, Poll)
end

local function key_of(self, number)
    return self.prefix .. "event/" .. number
end

-- An event for one worker: is it this one? For a key: has nobody else taken it?
local function is_ours(self, number, kind, target)
    if kind == "worker" then
        return target == (ngx.worker.id() or AGENT)
    elseif kind == "unique" then
        return self.dict:add(self.prefix .. "taken/" .. number, true, self.taken_timeout)
    end
    return true
end

local function deliver(self, number, stored)
    local counts = self.counts
    local head = buffer.decode(stored)
    if not is_ours(self, number, head.kind, head.target) then
        return
    end
    counts.read = counts.read + 1
    counts.read_bytes = counts.read_bytes + #stored
    if self.wanted and not self.wanted(head.source, head.event) then
        counts.skipped = counts.skipped + 1
    else
        self.deliver(head.source, head.event, head.data, head.wid)
    end
end

-- The event of a number. One that is not there has been thrown out, or its publisher has its
-- number and is yet to store it, whatever others have stored since: which of both, nobody can see.
-- So all that one look misses is waited for `wait_max` seconds, together.
local function fetch(self, number)
    local dict, key = self.dict, key_of(self, number)
    local stored = dict:get(key)
    while not stored and self.patience > 0 do
        ngx.sleep(WAIT_SECONDS)
        self.patience = self.patience - WAIT_SECONDS
        stored = dict:get(key)
    end
    return stored
end

local function report(self, missed)
    local counts = self.counts
    counts.overruns = counts.overruns + 1
    counts.missed = counts.missed + missed
    ngx.log(
        ngx.WARN,
        "sluice: this worker missed ",
        missed,
        " events (overflow); its subscribers to sluice/overrun are told"
    )
    self.deliver("sluice", "overrun", { missed = missed, reason = "overflow" })
end

--- Looks for new events now, and hands them over. May yield.
-- @treturn true|nil
-- @treturn string|nil "recursive": it is looking already
-- @phases those that may yield
function Poll:poll()
    if self.is_polling then
        return nil, "recursive"
    end
    self.is_polling = true
    self.patience = self.wait_max
    self.counts.polls = self.counts.polls + 1
    -- What is looked at is not thrown out.
    self.dict:get(self.mark)
    local missed = 0
    local last = self.dict:get(self.prefix .. "last") or 0
    while self.seen < last do
        local number = self.seen + 1
        local stored = fetch(self, number)
        self.seen = number
        if stored then
            deliver(self, number, stored)
        else
            missed = missed + 1
        end
    end
    self.is_polling = false
    if missed > 0 then
        report(self, missed)
    end
    return true
end

--- Starts looking.
-- @tparam function deliver `deliver(source, event, data, wid)`; may yield
-- @treturn true|nil
-- @treturn string|nil why not
-- @phases init_worker
function Poll:start(deliver_event)
    self.deliver = deliver_event
    -- A worker that takes that long to look may run a unique event twice.
    self.taken_timeout = math.max(60, 10 * self.interval)
    -- A worker that takes the place of a killed one begins with what comes from now on.
    self.mark = ("%sstarted/%d/%d"):format(self.prefix, self.generation, ngx.worker.id() or AGENT)
    local is_first = self.dict:add(self.mark, true)
    self.seen = is_first and self.at_init or self.dict:get(self.prefix .. "last") or 0
    local ok, err = ngx.timer.every(self.interval, function(premature)
        if not premature then
            self:poll()
        end
    end)
    self.is_started = ok and true
    return ok and true, err
end

--- Publishes. Does not yield.
-- @tparam string kind "all", "worker" or "unique"
-- @tparam number|string|nil target worker id, or the key
-- @tparam string source
-- @tparam string event
-- @param data anything that LuaJIT's string buffer serialises
-- @tparam[opt] table opts `timeout`: seconds for which the key is remembered
-- @treturn true|nil
-- @treturn string|nil "full", "payload too large", "not serialisable", "not ready"; with true
--   "repeat": the key is known
-- @treturn string|nil with "not serialisable": what
-- @phases all but init
function Poll:publish(kind, target, source, event, data, opts)
    local counts, dict = self.counts, self.dict
    if not self.is_started and ngx.get_phase() == "init" then
        return nil, "not ready"
    end
    local wid = ngx.worker.id()
    local whole =
        { kind = kind, target = target, source = source, event = event, wid = wid, data = data }
    local encoder = self.encoder:reset()
    local ok, problem = pcall(encoder.encode, encoder, whole)
    if not ok then
        encoder:free()
        return nil, "not serialisable", problem
    elseif #encoder > self.max_payload_len then
        encoder:free()
        return nil, "payload too large"
    end
    if kind == "unique" then
        local timeout = opts and opts.timeout or self.unique_timeout
        local added, err = dict:add(self.prefix .. "key/" .. target, true, timeout)
        if not added then
            counts.repeats = counts.repeats + (err == "exists" and 1 or 0)
            if err == "exists" then
                return true, "repeat"
            end
            return nil, "full"
        end
    end
    local number = dict:incr(self.prefix .. "last", 1, 0)
    local stored = encoder:get()
    local kept, _, evicted = dict:set(key_of(self, number), stored)
    if not kept then
        counts.refused = counts.refused + 1
        if kind == "unique" then
            dict:delete(self.prefix .. "key/" .. target) -- it may be tried again
        end
        return nil, "full"
    end
    counts.published = counts.published + 1
    counts.published_bytes = counts.published_bytes + #stored
    counts.evicted = counts.evicted + (evicted and 1 or 0)
    return true
end

--- Whether this worker looks.
function Poll:is_ready()
    return self.is_started == true
end

--- Numbers of this worker; `evicted` counts publishes for which older events had to go.
-- @treturn table
function Poll:stats()
    local stats = { queue_depth = (self.dict:get(self.prefix .. "last") or 0) - self.seen }
    for name, count in pairs(self.counts) do
        stats[name] = count
    end
    return stats
end

return _M
