--- One connection of a worker to the broker, from connect to its end.
--
-- Threads: one writes, one of a pool reads and runs the subscriptions, the rest
-- of the pool is parked. A subscription that yields parks its reader in the
-- middle; the spare that was woken before then goes on with the next event, and
-- the late reader joins the parked ones.
-- @module sluice.events.client

local frame = require("sluice.events.frame")

local BYE = frame.BYE

local _M = {}

local CHUNK_BYTES = 64 * 1024
local HANDSHAKE_MS = 1000
local IDLE_MS = 24 * 3600 * 1000

-- Readers that subscriptions may keep at once; beyond it events wait for them.
local MAX_READERS = 256

-- After so long on end others get their turn.
local SLICE_SECONDS = 0.005
local PAUSE_SECONDS = 0.001

local Client = {}
Client.__index = Client

--- Makes a connection that is not yet connected.
-- @tparam table opts `address`, `is_raw`, `max_payload`, `worker` (id or NOBODY)
-- @tparam table box outbox, open
-- @tparam table counts numbers that are counted up
-- @tparam function deliver see sluice.events.socket
-- @treturn table
function _M.new(opts, box, counts, deliver)
    local semaphore = require("ngx.semaphore")
    return setmetatable({
        opts = opts,
        box = box,
        counts = counts,
        deliver = deliver,
        decoder = frame.decoder(opts.max_payload),
        spare = semaphore.new(),
        wanted = semaphore.new(),
        parked = 0,
        readers = {},
        -- Counts up when a spare runs: then the reader has let go of the processor.
        turn = 0,
    }, Client)
end

local function upgrade(sock, opts)
    local ok, err = sock:send("GET " .. opts.path .. " HTTP/1.1\r\nHost: events\r\n"
        .. "Connection: Upgrade\r\nUpgrade: " .. frame.PROTOCOL .. "/" .. frame.VERSION
        .. "\r\n\r\n")
    if not ok then
        return nil, err
    end
    local status
    status, err = sock:receive("*l")
    if not status then
        return nil, err
    elseif not status:find("^HTTP/1%.1 101 ") then
        return nil, "the broker answers " .. status
    end
    for _ = 1, 32 do
        local line
        line, err = sock:receive("*l")
        if not line then
            return nil, err
        elseif line == "" then
            return true
        end
    end
    return nil, "the broker's answer has no end"
end

--- Connects and shakes hands. Yields.
-- @treturn[1] boolean true
-- @treturn[2] nil
-- @treturn[2] string why not
function Client:connect()
    local opts, decoder = self.opts, self.decoder
    local sock = ngx.socket.tcp()
    sock:settimeouts(HANDSHAKE_MS, HANDSHAKE_MS, HANDSHAKE_MS)
    local ok, err = sock:connect(opts.address)
    if not ok then
        return nil, err
    end
    if not opts.is_raw then
        ok, err = upgrade(sock, opts)
        if not ok then
            sock:close()
            return nil, err
        end
    end
    ok, err = sock:send(frame.control(frame.HELLO, opts.worker, ngx.worker.pid()))
    local kind
    while ok and not kind and not err do
        ok, err = sock:receiveany(CHUNK_BYTES)
        if ok then
            decoder:feed(ok)
            kind, err = decoder:next()
        end
    end
    if kind ~= frame.WELCOME or not decoder:speaks_ours() then
        sock:close()
        return nil, err or "malformed"
    end
    sock:settimeouts(HANDSHAKE_MS, IDLE_MS, IDLE_MS)
    self.sock = sock
    return true
end

-- Ends the connection for a reason; "bye" and "closed" are no failure.
local function finish(self, reason)
    self.reason = self.reason or reason
    self.is_over = true
    self.wanted:post(1)
end

local function deliver(self, decoder)
    local counts = self.counts
    local ok, data = decoder:data()
    if not ok then
        counts.undecodable = counts.undecodable + 1
        return
    end
    counts.delivered = counts.delivered + 1
    counts.bytes_delivered = counts.bytes_delivered + decoder.after - decoder.at
    local sender = decoder.sender
    self.deliver(
        decoder:source(),
        decoder:event(),
        data,
        sender ~= frame.NOBODY and sender or nil
    )
end

-- Runs the subscriptions for what was fed. Returns true to go on reading, nil
-- if the reader `me` no longer is the one that reads, or the connection is over.
local function drain(self, me)
    local decoder = self.decoder
    local kind, problem = decoder:next()
    while kind do
        if kind >= frame.ALL then
            deliver(self, decoder)
            if self.reader ~= me then
                return nil
            end
        elseif kind == BYE then
            self.box:finish("now")
        else
            problem = "malformed"
            break
        end
        kind, problem = decoder:next()
    end
    if problem then
        finish(self, problem .. " frame from the broker")
        return nil
    end
    return true
end

-- Lets go of the processor if that did not happen by itself for long.
local function breathe(self)
    if self.turn ~= self.slice_turn then
        self.slice_turn, self.slice_start = self.turn, ngx.now()
        return
    end
    ngx.update_time()
    if ngx.now() - self.slice_start > SLICE_SECONDS then
        ngx.sleep(PAUSE_SECONDS)
    end
end

-- Reads until the connection ends or another reader takes over.
local function read(self, me)
    local sock, decoder, counts = self.sock, self.decoder, self.counts
    while not self.is_over do
        self.is_delivering = true
        if self.parked > 0 and not self.is_spare_called then
            self.is_spare_called = true
            self.spare:post(1)
        end
        if not drain(self, me) then
            return
        end
        self.is_delivering = false
        breathe(self)
        local chunk, err = sock:receiveany(CHUNK_BYTES)
        if chunk then
            counts.wakeups = counts.wakeups + 1
            decoder:feed(chunk)
        elseif err ~= "timeout" then
            finish(self, err)
        end
    end
end

-- The life of a reader: parked, or reading.
local function live(self)
    local me = coroutine.running()
    while not self.is_over do
        if not self.reader or self.is_delivering then
            self.reader = me
            if self.parked == 0 then
                self.wanted:post(1)
            end
            read(self, me)
        end
        if not self.is_over then
            self.parked = self.parked + 1
            self.spare:wait(IDLE_MS / 1000)
            self.parked = self.parked - 1
            self.is_spare_called = false
            self.turn = self.turn + 1
        end
    end
end

local function write(self)
    local ok, err, lost = self.box:write(self.sock)
    if not ok then
        self.counts.lost_in_flight = self.counts.lost_in_flight + lost
        return finish(self, err)
    end
    self.sock:send(frame.control(BYE, self.opts.worker, 0))
    if self.is_leaving then
        finish(self, "left")
    end
    -- Otherwise the broker said goodbye first, and is the one that closes.
end

--- Serves the connection to its end. Yields.
-- @treturn string why it ended
function Client:serve()
    local writer = ngx.thread.spawn(write, self)
    while not self.is_over do
        if self.parked == 0 and #self.readers < MAX_READERS then
            self.readers[#self.readers + 1] = ngx.thread.spawn(live, self)
        end
        if self.parked > 0 or #self.readers == MAX_READERS then
            self.wanted:wait(IDLE_MS / 1000)
        end
    end
    ngx.thread.kill(writer)
    if not self.is_delivering then
        ngx.thread.kill(self.reader)
    end
    if self.parked > 0 then
        self.spare:post(self.parked)
    end
    self.sock:close()
    return self.reason
end

--- Sends what waits and ends the connection.
function Client:leave()
    self.is_leaving = true
    self.box:finish("sent")
end

return _M
