--- The socket transport: every worker is connected to a broker in one of them,
-- over a UNIX domain socket.
--
-- The order of events is that in which the broker read them, so it is the same
-- everywhere. What a worker publishes while the broker is away waits in its
-- outbox. An event that was under way when the broker or the publisher is
-- killed is lost; docs/events-transports.md says what else this one does not
-- promise.
-- @module sluice.events.socket
-- @usage
-- server {
--     listen unix:/run/sluice/events/broker.sock;
--     access_log off;
--     location / { content_by_lua_block { events:run() } }
-- }

local abi = require("sluice.ffi.abi")
local broker = require("sluice.events.broker")
local client = require("sluice.events.client")
local ffi = require("ffi")
local frame = require("sluice.events.frame")
local module = require("sluice.events.module")
local outbox = require("sluice.events.outbox")
local socket_file = require("sluice.events.socket_file")
local worker_id = require("sluice.events.worker_id")

local _M = {}

abi.declare("core/ring", "lib/events")

local KINDS = { all = frame.ALL, worker = frame.WORKER, unique = frame.UNIQUE }

--- Options beside those of sluice.events, with their types.
_M.options = {
    listening = "string",
    broker_id = "number",
    path = "string",
    stall_timeout = "number",
}

-- A broker that is being replaced is back within milliseconds; one line is due for others.
local FIRST_PAUSE_SECONDS = 0.002
local LAST_PAUSE_SECONDS = 0.1

-- A timer that only the end of the worker is meant to fire.
local FAR_SECONDS = 1e6

local MAX_STALL_SECONDS = 3600

local Socket = {}
Socket.__index = Socket

-- By `listening`: all who name the same socket share one connection.
local shared = {}

local function settings(opts)
    local listening, broker_id = opts.listening, opts.broker_id or 0
    local stall = opts.stall_timeout or 10
    if not (listening and listening:find("^unix:/")) then
        error("option 'listening': must be unix: and an absolute path", 4)
    elseif broker_id < 0 or broker_id > worker_id.MAX or broker_id % 1 ~= 0 then
        error("option 'broker_id': must be the id of a worker", 4)
    elseif not (stall > 0 and stall <= MAX_STALL_SECONDS) then
        error("option 'stall_timeout': must be more than 0, at most " .. MAX_STALL_SECONDS, 4)
    end
    return {
        listening = listening,
        name = opts.name,
        broker_id = broker_id,
        stall_timeout = stall,
        max_payload_len = opts.max_payload_len,
        unique_timeout = opts.unique_timeout,
        path = opts.path or "/",
        is_raw = ngx.config.subsystem == "stream",
    }
end

--- Makes the transport, or gives the one that was made for the same socket before; connects
-- nothing.
-- @tparam table opts those of sluice.events, checked, and `listening`: unix: and the path that the
--   broker's server listens on; `broker_id`: the worker that is the broker (0); `stall_timeout`:
--   seconds after which a worker that takes nothing is cut off (10); `path`: of the broker's
--   location (/)
-- @treturn table|nil
-- @treturn string|nil what is missing, for people
-- @phases init, init_worker
function _M.new(opts)
    local given = settings(opts)
    local ok, missing = module.load()
    if not ok then
        return nil, missing
    end
    local known = shared[given.listening]
    if known and known.settings.name ~= given.name then
        error("option 'listening': belongs to the bus of another name", 3)
    elseif known then
        return known
    end
    known = setmetatable({
        settings = given,
        box = outbox.new(opts.queue_len, opts.queue_bytes),
        encoder = frame.encoder(given.max_payload_len),
        connects = 0,
        published = 0,
        published_bytes = 0,
        refused = 0,
        counts = {
            read = 0,
            read_bytes = 0,
            skipped = 0,
            wakeups = 0,
            undecodable = 0,
            lost_in_flight = 0,
            overruns = 0,
            missed = 0,
        },
    }, Socket)
    shared[given.listening] = known
    return known
end

-- Something was lost, or may have been: subscribers to sluice/overrun hear it.
local function report_overrun(self, missed, reason)
    self.counts.overruns = self.counts.overruns + 1
    self.counts.missed = self.counts.missed + missed
    ngx.log(
        ngx.WARN,
        "sluice: this worker missed ",
        missed > 0 and missed or "perhaps some",
        " events (",
        reason,
        "); its subscribers to sluice/overrun are told"
    )
    self.deliver("sluice", "overrun", { missed = missed, reason = reason })
end

-- Connects, unless the worker begins to leave meanwhile: the broker may be leaving too, and
-- nobody answers then.
local function attempt(self, connection)
    local connecting = ngx.thread.spawn(connection.connect, connection)
    local leaving = ngx.thread.spawn(function()
        self.left:wait(FAR_SECONDS)
        return nil, "left"
    end)
    local _, ok, err = ngx.thread.wait(connecting, leaving)
    ngx.thread.kill(connecting)
    ngx.thread.kill(leaving)
    return ok, err
end

-- Connections come one after the other, each in a timer of its own, so that none
-- inherits the memory of the last.
local function connect(premature, self, pause, logged)
    if premature or self.is_leaving then
        return
    end
    self.box:open()
    local connection = client.new(self.client_options, self.box, self.counts, self.deliver)
    local ok, err = attempt(self, connection)
    if ok then
        if connection.missed > 0 then
            report_overrun(self, connection.missed, "stalled")
        elseif self.has_lost_broker then
            report_overrun(self, 0, "broker lost")
        end
        self.connection = connection
        self.connects = self.connects + 1
        connection:serve()
        self.connection = nil
        self.has_lost_broker = not connection.is_ending
        pause, logged = 0, nil
    elseif pause >= LAST_PAUSE_SECONDS and logged ~= err then
        ngx.log(ngx.ERR, "sluice: no broker at ", self.settings.listening, ": ", err)
        logged = err
    end
    if not self.is_leaving then
        local after = math.min(math.max(2 * pause, FIRST_PAUSE_SECONDS), LAST_PAUSE_SECONDS)
        ngx.timer.at(pause, connect, self, after, logged)
    end
end

-- At the end of the worker nginx fires every timer at once. It does not run what
-- is posted until its loop wakes again, so this sleeps a moment.
local function leave(premature, self)
    if not premature then
        ngx.timer.at(FAR_SECONDS, leave, self)
        return
    end
    self.is_leaving = true
    self.left:post(1)
    if self.connection then
        self.connection:leave()
    end
    ngx.sleep(0.001)
    if self.broker then
        self.broker:leave()
    end
end

--- Starts: the broker's worker goes on accepting, the others leave it to that one.
-- @tparam function deliver `deliver(source, event, data, wid)`; may yield
-- @treturn true|nil
-- @treturn string|nil why not
-- @phases init_worker
function Socket:start(deliver)
    if self.deliver then
        return true
    end
    local given = self.settings
    local address, wid = given.listening, ngx.worker.id()
    -- The privileged agent listens on nothing.
    if wid and ffi.C.sluice_listen_count(address, #address) == 0 then
        return nil, "no server listens on " .. address
    end
    if wid == given.broker_id then
        self.broker = broker.new({
            max_payload = given.max_payload_len,
            stall_ms = given.stall_timeout * 1000,
            workers = ngx.worker.count(),
        })
    elseif ffi.C.sluice_listen_disable(address, #address) < 0 then
        return nil, "other workers than the broker listen on " .. address
    end
    self.deliver = deliver
    self.worker = wid or frame.NOBODY
    self.client_options = {
        address = given.listening,
        path = given.path,
        is_raw = given.is_raw,
        max_payload = given.max_payload_len,
        worker = self.worker,
        wanted = self.wanted,
    }
    self.box:open()
    self.left = assert(require("ngx.semaphore").new())
    local ok, err = ngx.timer.at(0, connect, self, FIRST_PAUSE_SECONDS)
    if not ok then
        return nil, err
    end
    return ngx.timer.at(FAR_SECONDS, leave, self)
end

--- Publishes. Does not yield.
-- @tparam string kind "all", "worker" or "unique"
-- @tparam number|string|nil target worker id, or the key
-- @tparam string source at most 65,535 bytes, as event and key
-- @tparam string event
-- @param data anything that LuaJIT's string buffer serialises
-- @tparam[opt] table opts `timeout`: seconds for which the key is remembered
-- @treturn true|string|nil true: it is sent when the caller yields or ends; "queued": it waits for
--   the broker
-- @treturn string|nil "full", "payload too large", "not serialisable", "not ready"
-- @treturn string|nil with "not serialisable": what
-- @phases all but init
function Socket:publish(kind, target, source, event, data, opts)
    local worker = self.worker
    if not worker or self.is_leaving then
        if self.is_leaving or ngx.get_phase() == "init" then
            return nil, "not ready"
        end
        worker = ngx.worker.id() or frame.NOBODY
    end
    local encoder, box = self.encoder, self.box
    local ok, err, what = encoder:serialise(data)
    if not ok then
        return nil, err, what
    end
    local key, wid, timeout = "", 0, 0
    if kind == "unique" then
        key = target
        timeout = (opts and opts.timeout or self.settings.unique_timeout) * 1000
    elseif kind == "worker" then
        wid = target
    end
    if #source > frame.MAX_NAME or #event > frame.MAX_NAME or #key > frame.MAX_NAME then
        return nil, "payload too large"
    end
    local bytes = encoder:size(key, source, event)
    if not box:has_room(bytes) then
        self.refused = self.refused + 1
        return nil, "full"
    end
    encoder:put(box.frames, KINDS[kind], worker, wid, timeout, key, source, event)
    box:added(bytes)
    self.published = self.published + 1
    self.published_bytes = self.published_bytes + bytes
    return self.connection and true or "queued"
end

--- Serves one connection as the broker; to be called in `content_by_lua*`.
-- @tparam[opt] string mode "raw": the client does not speak HTTP beyond here
-- @see sluice.events.broker
function Socket:run(mode)
    if not self.broker then
        ngx.log(ngx.ERR, "sluice: worker ", ngx.worker.id(), " is not the broker")
        return ngx.exit(ngx.ERROR)
    end
    return self.broker:run(mode)
end

--- Whether this worker is connected.
function Socket:is_ready()
    return self.connection ~= nil
end

--- Numbers of this worker; those that begin with `broker_` only in the broker's.
-- @treturn table
function Socket:stats()
    local stats = {
        published = self.published,
        published_bytes = self.published_bytes,
        refused = self.refused,
        queue_depth = self.box.events,
        queue_bytes = self.box.bytes,
        connects = self.connects,
        connected = self.connection and 1 or 0,
    }
    for name, count in pairs(self.counts) do
        stats[name] = count
    end
    if self.broker then
        for name, count in pairs(self.broker:stats()) do
            stats["broker_" .. name] = count
        end
    end
    return stats
end

--- See sluice.events.socket_file.
_M.clean = socket_file.clean

return _M
