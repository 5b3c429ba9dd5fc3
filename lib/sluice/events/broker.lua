--- The broker of the socket transport: takes frames from every worker's
-- connection and passes them on. Runs in one worker, in the http or the stream
-- subsystem.
--
-- A connection begins with its HELLO frame, which the broker answers with a
-- WELCOME; in the http subsystem an HTTP/1.1 upgrade goes before. Frames for
-- all are passed on as they came, a whole run of them at a time: the broker
-- looks at their heads only.
-- Long on purpose: both sides of one conversation, with its queues.
-- @module sluice.events.broker

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")
local frame = require("sluice.events.frame")
local outbox = require("sluice.events.outbox")

local ALL, BYE, HELLO, WORKER = frame.ALL, frame.BYE, frame.HELLO, frame.WORKER

local _M = {}

abi.declare("core/ring", "lib/events")
ffi.cdef([[
uint32_t geteuid(void);
int kill(int32_t pid, int signal);
]])

-- A read of an idle connection begins anew after so long.
local IDLE_MS = 24 * 3600 * 1000
local HANDSHAKE_MS = 5000

-- No frame is read while this much waits for one of the connections.
local HIGH_BYTES = 1024 * 1024
local LOW_BYTES = 256 * 1024

-- Early frames are kept for workers that have yet to connect, this long and
-- this many at most.
local EARLY_SECONDS = 1
local EARLY_BYTES = 16 * 1024 * 1024

-- Keys beyond this many are looked through for expired ones.
local KEYS_KEPT = 1024

local Broker = {}
Broker.__index = Broker

--- Makes a broker.
-- @tparam table opts `max_payload` bytes, `stall_ms` after which a connection
-- that takes nothing is closed, `workers` how many to expect
-- @treturn table
function _M.new(opts)
    return setmetatable({
        max_payload = opts.max_payload,
        stall_s = opts.stall_ms / 1000,
        workers = opts.workers,
        connections = {},
        turn = 0,
        keys = {},
        key_count = 0,
        key_limit = KEYS_KEPT,
        congested = 0,
        early = {},
        early_bytes = 0,
        served = {},
        cut_off = {},
        counts = {
            accepted = 0,
            refused = 0,
            malformed = 0,
            frames = 0,
            broadcast = 0,
            repeats = 0,
            unrouted = 0,
            stalled = 0,
        },
    }, Broker)
end

local function log(...)
    ngx.log(ngx.ERR, "sluice: broker: ", ...)
end

--- The process at the other end, if it runs as the user that this one does.
-- @treturn[1] number process id
-- @treturn[2] nil
-- @treturn[2] string why it is refused
local function peer()
    local pid, uid = ffi.new("int32_t[1]"), ffi.new("uint32_t[1]")
    -- Once a connection, and sluice.var is not there in the stream subsystem.
    local number = tonumber(ngx.var.connection)
    if ffi.C.sluice_listen_credentials(number, pid, uid) ~= 0 then
        return nil, "no UNIX connection"
    elseif uid[0] ~= ffi.C.geteuid() then
        return nil, "process " .. pid[0] .. " of user " .. uid[0]
    end
    return pid[0]
end

-- Answers the upgrade; a raw connection has no such prelude.
local function upgrade()
    local headers = ngx.req.get_headers()
    if headers.upgrade ~= frame.PROTOCOL .. "/" .. frame.VERSION then
        return nil, "no upgrade to " .. frame.PROTOCOL .. "/" .. frame.VERSION
    end
    ngx.status = 101
    ngx.header["Upgrade"] = headers.upgrade
    ngx.header["Connection"] = "Upgrade"
    local ok, err = ngx.send_headers()
    if not ok then
        return nil, err
    end
    return ngx.flush(true)
end

-- Feeds the decoder; silence is no error.
local function receive(sock, decoder)
    while true do
        local bytes, err = decoder:read(sock)
        if bytes or err ~= "timeout" then
            return bytes, err
        end
    end
end

-- What a process misses from now on, for when it is back. Those that died never will be.
local function note_cut(self, connection)
    for pid in pairs(self.cut_off) do
        if ffi.C.kill(pid, 0) ~= 0 then
            self.cut_off[pid] = nil
        end
    end
    self.cut_off[connection.pid] =
        { unsent = connection.box.events, broadcast = self.counts.broadcast }
end

-- Events that a process missed that was cut off.
local function missed_by(self, pid)
    local cut = self.cut_off[pid]
    self.cut_off[pid] = nil
    return cut and cut.unsent + self.counts.broadcast - cut.broadcast or 0
end

-- Reads the HELLO and answers it.
local function greet(self, sock, decoder, pid)
    sock:settimeouts(HANDSHAKE_MS, HANDSHAKE_MS, HANDSHAKE_MS)
    local kind, problem
    repeat
        local bytes, err = decoder:read(sock)
        if not bytes then
            return nil, "no hello: " .. err, err == "closed"
        end
        kind, problem = decoder:next()
    until kind or problem
    if problem or kind ~= HELLO or not decoder:speaks_ours() then
        return nil, (problem or "malformed") .. " hello"
    elseif decoder.target ~= pid then
        return nil, ("process %d says that it is %d"):format(pid, decoder.target)
    end
    if self.is_leaving then
        -- It would be the only one to whom nobody says goodbye. It finds the next broker.
        return nil, "leaving", true
    end
    local wid = ngx.worker.id() or frame.NOBODY
    local welcome = frame.control(frame.WELCOME, wid, ngx.worker.pid(), missed_by(self, pid))
    return sock:send(welcome)
end

-- Early frames

local function settle(self)
    self.early = nil
    self.served = nil
end

-- Keeps a frame for workers that have yet to connect; `wid` for that one only.
local function remember(self, piece, events, wid)
    self.early_bytes = self.early_bytes + #piece
    if self.early_bytes > EARLY_BYTES or ngx.now() > self.settled_at then
        settle(self)
        return false
    end
    self.early[#self.early + 1] = { piece = piece, events = events, wid = wid }
    return true
end

local function catch_up(self, connection)
    self.settled_at = self.settled_at or ngx.now() + EARLY_SECONDS
    if self.served[connection.pid] then
        return
    end
    self.served[connection.pid] = true
    for _, kept in ipairs(self.early) do
        if not kept.wid then
            connection.box:push(kept.piece, kept.events)
        elseif kept.wid == connection.wid then
            connection.box:push(kept.piece, kept.events)
            kept.wid = -1
        end
    end
end

-- Whether every worker is connected.
local function is_complete(self)
    local found, count = {}, 0
    for _, connection in ipairs(self.connections) do
        if connection.wid ~= frame.NOBODY and not found[connection.wid] then
            found[connection.wid] = true
            count = count + 1
        end
    end
    return count >= self.workers
end

-- Congestion: connections whose outbox is above HIGH_BYTES and not yet below LOW_BYTES

local function resume_readers(self)
    for _, connection in ipairs(self.connections) do
        if connection.is_held then
            connection.is_held = false
            connection.gate:post(1)
        end
    end
end

local function uncongest(self, connection)
    if connection.stuck_since then
        connection.stuck_since = nil
        self.congested = self.congested - 1
        if self.congested == 0 then
            resume_readers(self)
        end
    end
end

local function send_to(self, connection, piece, events, key)
    local box = connection.box
    box:push(piece, events, key)
    if box.bytes > HIGH_BYTES and not connection.stuck_since then
        connection.stuck_since = ngx.now()
        self.congested = self.congested + 1
    end
end

local function close(connection)
    connection.is_over = true
    connection.done:post(1)
end

local function drop_stalled(self)
    local now = ngx.now()
    for _, connection in ipairs(self.connections) do
        local since = connection.stuck_since
        if since and now - since > self.stall_s and not connection.is_over then
            self.counts.stalled = self.counts.stalled + 1
            log(
                "worker ",
                connection.wid,
                ", process ",
                connection.pid,
                ", takes nothing: closed with ",
                connection.box.events,
                " events unsent"
            )
            note_cut(self, connection)
            close(connection)
        end
    end
end

local function wait_for_room(self, connection)
    while self.congested > 0 and not connection.is_over do
        connection.is_held = true
        if not connection.gate:wait(math.min(1, self.stall_s)) then
            drop_stalled(self)
        end
        connection.is_held = false
    end
end

-- Routes

local function to_all(self, piece, events)
    local connections = self.connections
    self.counts.broadcast = self.counts.broadcast + events
    for i = 1, #connections do
        send_to(self, connections[i], piece, events)
    end
    if self.early then
        remember(self, piece, events)
    end
end

local function to_worker(self, wid, piece)
    local connections = self.connections
    -- The newest: during a reload two processes have the same id.
    for i = #connections, 1, -1 do
        if connections[i].wid == wid then
            return send_to(self, connections[i], piece, 1)
        end
    end
    if not (self.early and remember(self, piece, 1, wid)) then
        self.counts.unrouted = self.counts.unrouted + 1
    end
end

-- In turn, so that unique work is shared out.
local function to_one(self, key, piece)
    local connections = self.connections
    if #connections == 0 then
        self.counts.unrouted = self.counts.unrouted + 1
        return
    end
    self.turn = self.turn % #connections + 1
    send_to(self, connections[self.turn], piece, 1, key)
end

-- Whether a key is new; looks for expired ones each time their number doubled.
local function is_first(self, key, timeout_ms)
    local now = ngx.now()
    local keys = self.keys
    local expires = keys[key]
    if expires and expires > now then
        return false
    end
    keys[key] = now + timeout_ms / 1000
    if not expires then
        self.key_count = self.key_count + 1
    end
    if self.key_count > self.key_limit then
        local count = 0
        for other, moment in pairs(keys) do
            if moment <= now then
                keys[other] = nil
            else
                count = count + 1
            end
        end
        self.key_count = count
        self.key_limit = math.max(KEYS_KEPT, 2 * count)
    end
    return true
end

local function route_one(self, decoder, kind)
    local piece = decoder:slice(decoder.at, decoder.after)
    if kind == WORKER then
        to_worker(self, decoder.target, piece)
        return
    end
    local key = decoder:key()
    if is_first(self, key, decoder.timeout_ms) then
        to_one(self, key, piece)
    else
        self.counts.repeats = self.counts.repeats + 1
    end
end

--- Passes on every whole frame that was fed.
-- @treturn[1] boolean true more may be fed
-- @treturn[2] nil
-- @treturn[2] string why the connection has to end; "bye" if that was agreed
local function route(self, connection, decoder)
    local wid, run, from, frames = connection.wid, 0, 0, 0
    local kind, problem = decoder:next()
    while kind and decoder.sender == wid and kind >= ALL do
        frames = frames + 1
        if kind == ALL then
            if run == 0 then
                from = decoder.at
            end
            run = run + 1
        else
            if run > 0 then
                to_all(self, decoder:slice(from, decoder.at), run)
                run = 0
            end
            route_one(self, decoder, kind)
        end
        kind, problem = decoder:next()
    end
    if run > 0 then
        -- `at` is where the run's last frame begins, unless another one ended it.
        to_all(self, decoder:slice(from, kind and decoder.at or decoder.after), run)
    end
    self.counts.frames = self.counts.frames + frames
    if kind == BYE then
        return nil, "bye"
    elseif kind then
        return nil, "malformed"
    end
    return not problem or nil, problem
end

-- Connections

local function read(self, connection, decoder)
    connection.sock:settimeouts(IDLE_MS, IDLE_MS, IDLE_MS)
    while true do
        local more, problem = route(self, connection, decoder)
        if problem == "bye" then
            connection.said_bye = true
            if not self.is_leaving then
                close(connection)
            end
            return
        elseif not more then
            self.counts.malformed = self.counts.malformed + 1
            log(problem, " frame from process ", connection.pid, ": closed")
            return close(connection)
        end
        wait_for_room(self, connection)
        if not receive(connection.sock, decoder) then
            if not decoder:is_empty() then
                self.counts.malformed = self.counts.malformed + 1
                log("truncated frame from process ", connection.pid)
            end
            return close(connection)
        end
    end
end

local function write(self, connection)
    connection.box:write(connection.sock, function()
        if connection.stuck_since and connection.box.bytes < LOW_BYTES then
            uncongest(self, connection)
        end
    end)
    close(connection)
end

local function unregister(self, connection)
    for i, other in ipairs(self.connections) do
        if other == connection then
            table.remove(self.connections, i)
            break
        end
    end
    uncongest(self, connection)
    -- Unique events that this one never got are for another one.
    for _, piece in ipairs(connection.box:unsent()) do
        to_one(self, "", piece)
    end
end

-- From HELLO to the end of a connection.
local function serve(self, sock, decoder, pid)
    local semaphore = require("ngx.semaphore")
    local connection = {
        sock = sock,
        pid = pid,
        wid = decoder.sender,
        box = outbox.new(math.huge, math.huge),
        gate = semaphore.new(),
        done = semaphore.new(),
    }
    connection.box:open()
    self.counts.accepted = self.counts.accepted + 1
    if self.early then
        catch_up(self, connection)
    end
    table.insert(self.connections, connection)
    if self.early and is_complete(self) then
        settle(self)
    end
    local reader = ngx.thread.spawn(read, self, connection, decoder)
    local writer = ngx.thread.spawn(write, self, connection)
    while not connection.is_over do
        connection.done:wait(IDLE_MS / 1000)
    end
    unregister(self, connection)
    ngx.thread.kill(reader)
    ngx.thread.kill(writer)
end

--- Serves one connection to its end; to be called in `content_by_lua*` of the
-- broker's server. Yields.
-- @tparam[opt] string mode "raw": no HTTP upgrade goes before the HELLO, as is
-- always so in the stream subsystem
-- @treturn[1] boolean true it ended as connections do
-- @treturn[2] nil
-- @treturn[2] string why it was refused; that has been logged
function Broker:run(mode)
    local pid, problem = peer()
    local is_quiet = false
    if pid and mode ~= "raw" and ngx.config.subsystem == "http" then
        local ok, err = upgrade()
        problem = not ok and err or nil
    end
    local sock
    if not problem then
        sock, problem = ngx.req.socket(true)
    end
    local decoder = frame.decoder(self.max_payload)
    if sock then
        local ok
        ok, problem, is_quiet = greet(self, sock, decoder, pid)
        if ok then
            serve(self, sock, decoder, pid)
            return true
        end
    end
    if not is_quiet then
        self.counts.refused = self.counts.refused + 1
        log("connection refused: ", problem)
    end
    if ngx.config.subsystem == "http" and not sock then
        ngx.status = pid and 400 or 403
    end
    return nil, problem
end

--- Ends every connection, each after all that is under way in both directions.
-- Takes at most a tenth of a second; yields.
function Broker:leave()
    self.is_leaving = true
    local bye = frame.control(BYE, ngx.worker.id() or frame.NOBODY, 0)
    for _, connection in ipairs(self.connections) do
        connection.box:push(bye, 0)
    end
    for _ = 1, 50 do
        local open = 0
        for _, connection in ipairs(self.connections) do
            open = open + (connection.said_bye and 0 or 1)
        end
        ngx.sleep(0.001)
        if open == 0 then
            break
        end
    end
    for _, connection in ipairs(self.connections) do
        connection.box:finish("sent")
    end
    for _ = 1, 50 do
        if #self.connections == 0 then
            return
        end
        ngx.sleep(0.001)
    end
    for _, connection in ipairs(self.connections) do
        close(connection)
    end
end

--- Numbers: those of `counts`, `connections`, `queue_depth`, `queue_bytes`, `keys`; `away`:
-- processes that were cut off and are not back.
function Broker:stats()
    local stats = { connections = #self.connections, keys = self.key_count, away = 0 }
    for _ in pairs(self.cut_off) do
        stats.away = stats.away + 1
    end
    for name, count in pairs(self.counts) do
        stats[name] = count
    end
    stats.queue_depth, stats.queue_bytes = 0, 0
    for _, connection in ipairs(self.connections) do
        stats.queue_depth = stats.queue_depth + connection.box.events
        stats.queue_bytes = stats.queue_bytes + connection.box.bytes
    end
    return stats
end

return _M
