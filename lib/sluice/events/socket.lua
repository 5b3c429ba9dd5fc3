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

local broker = require("sluice.events.broker")
local client = require("sluice.events.client")
local ffi = require("ffi")
local frame = require("sluice.events.frame")
local outbox = require("sluice.events.outbox")
local socket_file = require("sluice.events.socket_file")

local _M = {}

ffi.cdef([[
int sluice_disable_listening(const char *address, size_t length);
int sluice_peer_credentials(uint64_t number, int32_t *pid, uint32_t *uid);
uint32_t geteuid(void);
]])

local KINDS = { all = frame.ALL, worker = frame.WORKER, unique = frame.UNIQUE }

local DEFAULTS = {
    broker_id = 0,
    unique_timeout = 5,
    max_queue_len = 65536,
    max_queue_bytes = 64 * 1024 * 1024,
    max_payload_len = frame.MAX_PAYLOAD,
    stall_timeout = 10,
    path = "/",
}

local FIRST_PAUSE_SECONDS = 0.002
local LAST_PAUSE_SECONDS = 0.1

-- A timer that only the end of the worker is meant to fire.
local FAR_SECONDS = 1e6

local Socket = {}
Socket.__index = Socket

local function native()
    local found, functions = pcall(function()
        return { ffi.C.sluice_disable_listening, ffi.C.sluice_peer_credentials } and ffi.C
    end)
    if not found then
        return nil, "the module is not loaded: load_module modules/ngx_sluice_module.so;"
    end
    return functions
end

local function settings(opts)
    local given = {}
    for name, default in pairs(DEFAULTS) do
        local value = opts[name]
        if value ~= nil and type(value) ~= type(default) then
            local message = "option '%s' has to be a %s, not a %s"
            error(message:format(name, type(default), type(value)), 3)
        end
        given[name] = value == nil and default or value
    end
    if type(opts.listening) ~= "string" or not opts.listening:find("^unix:/") then
        error("option 'listening' has to be unix: and an absolute path", 3)
    elseif given.max_payload_len < 1 or given.max_payload_len > frame.MAX_PAYLOAD then
        error("option 'max_payload_len' has to be 1 to " .. frame.MAX_PAYLOAD, 3)
    end
    given.listening = opts.listening
    given.is_raw = opts.raw or ngx.config.subsystem == "stream"
    return given
end

--- Makes the transport; connects nothing.
-- @tparam table opts `listening` (unix: and the path that the broker's server
-- listens on), and optionally: `broker_id` worker that is the broker (0),
-- `unique_timeout` seconds for which a key is remembered (5), `max_queue_len`
-- events that a worker keeps (65,536), `max_queue_bytes` (64 MB),
-- `max_payload_len` (16 MB), `stall_timeout` seconds after which a worker that
-- takes nothing is cut off (10), `path` of the broker's location (/), `raw`
-- shakes hands without HTTP, as in the stream subsystem
-- @treturn[1] table
-- @treturn[2] nil
-- @treturn[2] string the load_module line that is missing
-- @phases init, init_worker
function _M.new(opts)
    local given = settings(opts)
    local functions, missing = native()
    if not functions then
        return nil, missing
    end
    return setmetatable({
        settings = given,
        native = functions,
        box = outbox.new(given.max_queue_len, given.max_queue_bytes),
        encoder = frame.encoder(given.max_payload_len),
        connects = 0,
        published = 0,
        bytes_published = 0,
        refused = 0,
        counts = {
            delivered = 0,
            bytes_delivered = 0,
            wakeups = 0,
            undecodable = 0,
            lost_in_flight = 0,
        },
    }, Socket)
end

-- Connections come one after the other, each in a timer of its own, so that none
-- inherits the memory of the last.
local function connect(premature, self, pause, logged)
    if premature or self.is_leaving then
        return
    end
    self.box:open()
    local connection = client.new(self.client_options, self.box, self.counts, self.deliver)
    local ok, err = connection:connect()
    if ok then
        self.connection = connection
        self.connects = self.connects + 1
        err = connection:serve()
        self.connection = nil
        pause, logged = 0, nil
        if err == "left" or self.is_leaving then
            return
        end
    elseif pause >= LAST_PAUSE_SECONDS and logged ~= err then
        -- Neither a broker that is being replaced is worth a line, nor the same twice.
        ngx.log(ngx.ERR, "sluice.events: no broker at ", self.settings.listening, ": ", err)
        logged = err
    end
    local after = math.min(math.max(2 * pause, FIRST_PAUSE_SECONDS), LAST_PAUSE_SECONDS)
    ngx.timer.at(pause, connect, self, after, logged)
end

-- At the end of the worker nginx fires every timer at once. It does not run what
-- is posted until its loop wakes again, so this sleeps a moment.
local function leave(premature, self)
    if not premature then
        ngx.timer.at(FAR_SECONDS, leave, self)
        return
    end
    self.is_leaving = true
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
-- @treturn[1] boolean true
-- @treturn[2] nil
-- @treturn[2] string why not
-- @phases init_worker
function Socket:start(deliver)
    local given = self.settings
    local wid = ngx.worker.id()
    if wid == given.broker_id then
        self.broker = broker.new({
            max_payload = given.max_payload_len,
            stall_ms = given.stall_timeout * 1000,
            workers = ngx.worker.count(),
        }, self.native)
    else
        local found = self.native.sluice_disable_listening(given.listening, #given.listening)
        if found < 0 or found == 0 and wid then
            return nil, "no server listens on " .. given.listening
        end
    end
    self.deliver = deliver
    self.worker = wid or frame.NOBODY
    self.client_options = {
        address = given.listening,
        path = given.path,
        is_raw = given.is_raw,
        max_payload = given.max_payload_len,
        worker = self.worker,
    }
    self.box:open()
    local ok, err = ngx.timer.at(0, connect, self, FIRST_PAUSE_SECONDS)
    if not ok then
        return nil, err
    end
    return ngx.timer.at(FAR_SECONDS, leave, self)
end

--- Publishes.
-- @tparam string kind "all", "worker" or "unique"
-- @tparam ?number|string target worker id, or the key; nil for all
-- @tparam string source at most 65,535 bytes, as event and key
-- @tparam string event
-- @param data anything that LuaJIT's string buffer serialises
-- @tparam[opt] table opts `timeout` seconds for which the key is remembered
-- @treturn[1] boolean true it will be sent when the caller yields or ends
-- @treturn[1] string or "queued": it waits for the broker to come back
-- @treturn[2] nil
-- @treturn[2] string "full", "payload too large", "not serialisable: " and why
-- @phases any but init
function Socket:publish(kind, target, source, event, data, opts)
    local encoder, box = self.encoder, self.box
    local ok, err = encoder:serialise(data)
    if not ok then
        return nil, err
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
    local worker = self.worker or ngx.worker.id() or frame.NOBODY
    encoder:put(box.frames, KINDS[kind], worker, wid, timeout, key, source, event)
    box:added(bytes)
    self.published = self.published + 1
    self.bytes_published = self.bytes_published + bytes
    return self.connection and true or "queued"
end

--- Serves one connection as the broker; to be called in `content_by_lua*`.
-- @tparam[opt] string mode "raw": the client does not speak HTTP beyond here
-- @see sluice.events.broker
function Socket:run(mode)
    if not self.broker then
        ngx.log(ngx.ERR, "sluice.events: worker ", ngx.worker.id(), " is not the broker")
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
        bytes_published = self.bytes_published,
        refused = self.refused,
        queue_events = self.box.events,
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
