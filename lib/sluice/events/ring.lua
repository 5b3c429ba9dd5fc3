--- The ring transport: a log in shared memory that every worker reads in place.
--
-- Publishing is one encoding into a buffer that is used again, and one call that appends to the
-- log. Reading takes up to 64 events at a call. An event is known by the hash of its names: 64 bits
-- under a seed that nobody outside knows, so names are not compared. They become Lua strings when
-- they are first seen, and a payload is decoded from the log's memory, if somebody subscribed. See
-- module/core/ring/ring.h for the log, module/lib/events/ngx_sluice_events.h for the calls.
--
-- Long on purpose: one reader's place in the log, and all that moves it.
-- @module sluice.events.ring

local bit = require("bit")
local buffer = require("string.buffer")
local dispatcher = require("sluice.events.dispatcher")
local ffi = require("ffi")
local module = require("sluice.events.module")
local payloads = require("sluice.events.payloads")
local pieces = require("sluice.events.pieces")
local ring_stats = require("sluice.events.ring_stats")
local worker_id = require("sluice.events.worker_id")

local _M = {}

--- Options beside those of sluice.events, with their types.
_M.options = {}

local mt = { __index = _M }

local C = ffi.C
local band = bit.band
local OK, QUEUED, REPEAT, NOSLOT = module.OK, module.QUEUED, module.REPEAT, module.NOSLOT
local WORKER, UNIQUE = module.WORKER, module.UNIQUE
local MORE, REDELIVER = module.MORE, module.REDELIVER

local NO_WORKER = worker_id.AGENT

local HIGH_BITS = 0x1fffff -- with 32 more they fit a number exactly
local ASK_SECONDS = 1 -- between two attempts to get a slot
local MAX_ROUTES = 8192
local MAX_NAMES = 8192 -- of published events, before all are forgotten
local SENDER = 2 -- bytes in front of what is for one worker: the sender's worker id
-- Behind a bus's name in a source on the wire. The bus without a name has no such prefix.
local MARK = "\31"

-- A buffer that had to grow beyond this is given back.
local KEEP_BYTES = 1024 * 1024

-- This machine's end of the log. One for all buses: the log is read once.
local handle -- sluice_events_t *, or nil before the first use in a worker
local frames
local at, filled = 0, 0 -- of frames
local routes, route_count = {}, 0 -- by hash of names
local buses = {} -- by name
local attached = false
local is_waiting = false -- for a slot

local encoder = buffer.new()
local decoder = buffer.new() -- of what is not a whole event for all
local missed_out = ffi.new("double[1]")
local receiver = ffi.new("sluice_events_receiver_t")
local frame_type = ffi.typeof("sluice_ring_frame_t")

-- Reading ----------------------------------------------------------------------------------------

local function forget_routes()
    routes, route_count = {}, 0
end

local NOBODY = { n = 0 }

-- The log was written over while callbacks ran: this frame and those behind it are lost, which the
-- next fill finds out.
local function lose(i)
    handle.lost = filled - i
    at = filled
    return false
end

-- First sight of a pair of names, or since subscriptions changed; nil where they were overwritten.
local function find_route(frame, key)
    local wire = ffi.string(frame.source, frame.source_length)
    local event = ffi.string(frame.event, frame.event_length)
    if C.sluice_events_intact(handle) ~= OK then
        return nil
    end
    local bus, source = buses[""], wire
    if wire:sub(1, 1) == MARK then
        local name
        name, source = wire:match("^\31([^\31]*)\31(.*)$")
        bus = name and buses[name]
    end
    local route = {
        name_high = frame.name_high,
        source = source,
        event = event,
        list = bus and source and bus:list(source, event) or NOBODY,
    }
    if route_count >= MAX_ROUTES then
        forget_routes()
    end
    routes[key] = route
    route_count = route_count + 1
    return route
end

local function undecodable(route, err)
    if C.sluice_events_intact(handle) ~= OK then
        return lose(at - 1)
    end
    dispatcher.failed = dispatcher.failed + 1
    ngx.log(ngx.ERR, "sluice: event ", route.source, "/", route.event, " cannot be decoded: ", err)
    return true
end

local function unique_done(unique)
    C.sluice_events_done(handle, unique.frame)
end

-- Whatever is not a whole event for all.
local function step_special(context, frame, route)
    local kind, flags = frame.kind, frame.flags
    local payload, length, worker = frame.payload, frame.length, frame.worker
    if kind == WORKER then
        if length < SENDER then
            return true
        end
        worker = payload[0] + payload[1] * 256
        payload, length = payload + SENDER, length - SENDER
    end
    local source = decoder:set(payload, length)
    if frame.piece > 0 or band(flags, MORE) ~= 0 then
        source = pieces.add(frame, payload, length)
        if not source then
            return true
        end
    end
    local unique
    if kind == UNIQUE then
        if C.sluice_events_claim(handle, frame) ~= OK then
            return true
        end
        unique = { frame = frame_type(frame), done = unique_done }
    end
    local ok, data = pcall(source.decode, source)
    local is_intact = C.sluice_events_intact(handle) == OK
    if unique and not (ok and is_intact) then
        -- No callback will be: it would be a successor's for ever. An overrun counts it as missed.
        unique:done()
    end
    if not ok then
        return undecodable(route, data)
    elseif not is_intact then
        return lose(at - 1)
    end
    return dispatcher.run(
        context,
        route.list,
        route.source,
        route.event,
        data,
        worker ~= NO_WORKER and worker or nil,
        unique
    )
end

--- Runs the subscriptions of the next event at hand.
-- @tparam table _ this module
-- @tparam table context the dispatcher's
-- @treturn boolean whether to call again at once
function _M.step(_, context)
    local i = at
    if i >= filled then
        return false
    end
    at = i + 1
    local frame = frames[i]
    local key = frame.name_low + band(frame.name_high, HIGH_BITS) * 4294967296
    local route = routes[key]
    if not route or frame.name_high ~= route.name_high then
        route = find_route(frame, key)
        if not route then
            return lose(i)
        end
    end
    local list = route.list
    if list.n == 0 then
        return true
    elseif C.sluice_events_intact(handle) ~= OK then
        return lose(i) -- LuaJIT's decoder can crash on bytes that are none of its
    end
    if frame.kind ~= 0 or frame.flags ~= 0 or frame.piece ~= 0 then
        return step_special(context, frame, route)
    end
    local worker = frame.worker
    local ok, data = payloads.decode(frame)
    if not ok then
        return undecodable(route, data)
    end
    if C.sluice_events_intact(handle) ~= OK then
        return lose(i)
    end
    return dispatcher.run(
        context,
        list,
        route.source,
        route.event,
        data,
        worker ~= NO_WORKER and worker or nil
    )
end

local REASONS = {
    [module.OVERRUN] = "stalled",
    [module.BAD] = "damaged",
}

local function report_overrun(missed, reason)
    ngx.log(
        ngx.WARN,
        "sluice: this worker missed ",
        missed,
        " events (",
        reason,
        "); its subscribers to sluice/overrun are told"
    )
    for _, bus in pairs(buses) do
        dispatcher.notice(bus, "sluice", "overrun", { missed = missed, reason = reason })
    end
end

local function rejoin(rc)
    pieces.drop()
    if C.sluice_events_rejoin(handle, missed_out) ~= OK then
        return nil
    end
    report_overrun(missed_out[0], REASONS[rc])
    return true
end

--- Fetches more events.
-- @treturn boolean|nil true: there are some; false: none; nil: ask again later
function _M.fill()
    at, filled = 0, 0
    handle.delivered = dispatcher.delivered
    handle.failed = dispatcher.failed
    if pieces.count > 0 then
        pieces.mark_orphans(handle)
    end
    local rc = C.sluice_events_next(handle)
    handle.lost = 0
    if rc > 0 then
        filled = rc
        payloads.begin(frames, rc)
        return true
    elseif rc == 0 then
        if pieces.count > 0 then
            pieces.drop(true)
        end
        return false
    elseif REASONS[rc] then
        return rejoin(rc)
    end
    return false
end

--- Asks to be woken in the loop's next turn.
function _M.pause()
    C.sluice_events_pause(handle)
end

-- Publishing -------------------------------------------------------------------------------------

local VM = { http = 0, stream = 1 }

local function open(self)
    if ngx.get_phase() == "init" then
        return nil
    end
    local opened = C.sluice_events_open(VM[ngx.config.subsystem])
    if opened == nil then
        return nil
    end
    handle = opened
    frames = handle.frames
    C.sluice_events_limit(handle, self.queue_len, self.queue_bytes)
    return handle
end

local function encode(data)
    return encoder:reset():encode(data)
end

-- How an event is named in the log: its source there, and the hash of the names.
local function name_event(self, source, event)
    if self.name_count >= MAX_NAMES then
        self.names, self.name_count = {}, 0
    end
    local wire = self.prefix .. source
    local known = {
        wire = wire,
        hash = C.sluice_events_name_hash(handle, wire, #wire, event, #event),
    }
    local by_event = self.names[source]
    if not by_event then
        by_event = {}
        self.names[source] = by_event
    end
    by_event[event] = known
    self.name_count = self.name_count + 1
    return known
end

local function answer(rc)
    if rc == OK then
        return true
    elseif rc == REPEAT then
        return true, "repeat"
    elseif rc == QUEUED then
        return "queued"
    elseif rc == NOSLOT then
        return nil, "not ready"
    end
    return nil, module.word(rc)
end

--- Publishes; see sluice.events for what the arguments mean.
-- @tparam string kind "all", "worker" or "unique"
-- @tparam number|string|nil target a worker id or a key
-- @tparam string source
-- @tparam string event
-- @param data
-- @tparam table|nil opts of "unique": `timeout` in seconds, `redeliver`
-- @treturn true|string|nil true, or "queued"
-- @treturn string|nil "full", "payload too large", "not serialisable", "not ready",
--   "too many unique keys"; with true "repeat": the key is known
-- @treturn string|nil what cannot be serialised
function _M:publish(kind, target, source, event, data, opts)
    if not handle and not open(self) then
        return nil, "not ready"
    end
    local ok, err = pcall(encode, data)
    if not ok then
        return nil, "not serialisable", err
    end
    local payload, length = encoder:ref()
    if length > self.max_payload_len then
        encoder:free()
        return nil, "payload too large"
    end
    local rc
    if kind == "all" then
        local by_event = self.names[source]
        local known = by_event and by_event[event] or name_event(self, source, event)
        local wire = known.wire
        rc =
            C.sluice_events_publish(handle, known.hash, wire, #wire, event, #event, payload, length)
    else
        local wire = self.prefix .. source
        local to, key = receiver, ""
        if kind == "unique" then
            key = self.prefix .. target
            to.kind, to.timeout_ms = UNIQUE, opts.timeout * 1000
            to.flags = opts.redeliver and REDELIVER or 0
        else
            to.kind, to.flags, to.worker = WORKER, 0, target
        end
        to.key, to.key_length = key, #key
        rc = C.sluice_events_publish_to(handle, to, wire, #wire, event, #event, payload, length)
    end
    if length > KEEP_BYTES then
        encoder:free()
    end
    return answer(rc)
end

-- Life -------------------------------------------------------------------------------------------

--- @tparam table opts of sluice.events, checked
-- @treturn table|nil transport
-- @treturn string|nil what is missing, for people
-- @phases all
function _M.new(opts)
    local loaded, err = module.load()
    if not loaded then
        return nil, err
    end
    return setmetatable({
        queue_len = opts.queue_len,
        queue_bytes = opts.queue_bytes,
        max_payload_len = opts.max_payload_len,
        prefix = opts.name == "" and "" or MARK .. opts.name .. MARK,
        names = {}, -- by source, then event
        name_count = 0,
    }, mt)
end

-- What the C module calls with the dispatcher's semaphores.
local function semaphore_function(name, prototype)
    return ffi.cast(prototype, C["ngx_" .. ngx.config.subsystem .. "_lua_ffi_sema_" .. name])
end

-- Takes a slot; NOSLOT where there is none.
local function attach()
    local wake, spare = dispatcher.semaphores()
    local rc = C.sluice_events_attach(
        handle,
        wake,
        spare,
        semaphore_function("post", "int (*)(void *, int)"),
        semaphore_function("count", "int (*)(void *)"),
        missed_out
    )
    if rc ~= OK then
        return rc
    end
    attached = true
    -- A machine that closes before its process must not be woken any more.
    _M.anchor = ffi.gc(ffi.new("char[1]"), function()
        C.sluice_events_detach(handle)
    end)
    local missed = missed_out[0]
    if missed < 0 then
        report_overrun(0, "new log")
    elseif missed > 0 then
        report_overrun(missed, "late")
    end
    return OK
end

local ask_again

-- Slots are free again when processes have left. What was published meanwhile is read then, or
-- counted as missed.
local function ask_later()
    local ok, err = ngx.timer.at(ASK_SECONDS, ask_again)
    if not ok then
        ngx.log(ngx.ERR, "sluice: this worker does not ask for a slot any more: ", err)
    end
end

function ask_again(premature)
    if premature then
        return
    end
    local rc = attach()
    if rc == OK then
        ngx.log(ngx.NOTICE, "sluice: this worker has a slot of the events' log")
        dispatcher.start(_M)
    else
        ask_later()
    end
end

--- Takes this worker's place at the log. Where all are taken it asks again, once a second.
-- @tparam function _ not used: the dispatcher asks the ring for its events
-- @tparam table bus whose subscriptions are to be run
-- @treturn true|nil
-- @treturn string|nil with true "no slot": this worker gets its events once it has one; with nil
--   "not ready": this process has no log; "busy"; "system error"
-- @phases init_worker
function _M:start(_, bus)
    if not handle and not open(self) then
        return nil, "not ready"
    end
    C.sluice_events_limit(handle, self.queue_len, self.queue_bytes)
    buses[bus.name] = bus
    bus.on_change = forget_routes
    forget_routes()
    if attached then
        return true
    elseif is_waiting then
        return true, "no slot"
    end
    dispatcher.start(_M)
    local rc = attach()
    if rc == NOSLOT then
        is_waiting = true
        ngx.log(
            ngx.WARN,
            "sluice: this worker gets no events: all slots of the log are taken; it asks again"
        )
        ask_later()
        return true, "no slot"
    elseif rc ~= OK then
        return nil, module.word(rc)
    end
    return true
end

--- Whether this worker hears events.
function _M.is_ready()
    return attached and dispatcher.is_running()
end

--- Figures of all workers, from shared memory, and of the log.
-- @treturn table `{log, workers, total, dropped_partials}`
function _M.stats()
    if handle then
        handle.delivered = dispatcher.delivered
        handle.failed = dispatcher.failed
    end
    local stats = ring_stats.collect(handle)
    stats.dropped_partials = pieces.dropped
    return stats
end

return _M
