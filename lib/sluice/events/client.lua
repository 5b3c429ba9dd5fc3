--- One connection of a worker to the broker, from connect to its end.
--
-- One thread writes, one reads. The reader hands events over and never runs a
-- subscription itself; it waits where `deliver` does, and then the broker does.
-- @module sluice.events.client

local frame = require("sluice.events.frame")
local http_response = require("sluice.http_response")
local seconds = require("sluice.clock").monotonic

local ALL, BYE, NOBODY = frame.ALL, frame.BYE, frame.NOBODY

local _M = {}

-- For connecting, and for all that follows until the broker's welcome.
local HANDSHAKE_MS = 1000
local IDLE_MS = 24 * 3600 * 1000

local LOG_INTERVAL_SECONDS = 10

-- A welcome has a few bytes; what is longer is none.
local MAX_WELCOME_BYTES = 1024

local SWITCHING_PROTOCOLS = 101

-- After so many bytes on end nginx's loop gets its turn; nobody waits for a
-- reader that always finds something to read.
local SLICE_BYTES = 512 * 1024
local PAUSE_SECONDS = 0.001

local Client = {}
Client.__index = Client

--- Makes a connection that is not yet connected.
-- @tparam table opts `address`, `path`, `is_raw`, `max_payload`, `worker` (id or NOBODY), `wanted`
--   (optional: whether an event is worth decoding)
-- @tparam table box outbox, open
-- @tparam table counts numbers that are counted up
-- @tparam function deliver `deliver(source, event, data, wid)`
-- @treturn table
-- @phases timer
function _M.new(opts, box, counts, deliver)
    return setmetatable({
        opts = opts,
        box = box,
        counts = counts,
        deliver = deliver,
        wanted = opts.wanted,
        decoder = frame.decoder(opts.max_payload),
        quiet_until = 0,
        over = require("ngx.semaphore").new(),
    }, Client)
end

-- Reads what there is, as long as the handshake may take.
local function read_until(sock, deadline, max_bytes)
    local left_ms = math.ceil((deadline - seconds()) * 1000)
    if left_ms <= 0 then
        return nil, "timeout"
    end
    sock:settimeouts(HANDSHAKE_MS, HANDSHAKE_MS, left_ms)
    return sock:receiveany(max_bytes)
end

-- Returns what has come behind the response.
local function upgrade(sock, opts, deadline)
    local protocol = frame.PROTOCOL .. "/" .. frame.VERSION
    local ok, err = sock:send({
        ("GET %s HTTP/1.1\r\nHost: events\r\n"):format(opts.path),
        ("Connection: Upgrade\r\nUpgrade: %s\r\n\r\n"):format(protocol),
    })
    if not ok then
        return nil, err
    end
    local response = http_response.new(function(max_bytes)
        return read_until(sock, deadline, max_bytes)
    end)
    local head
    head, err = response:read_head()
    if not head then
        return nil, err
    elseif head.status ~= SWITCHING_PROTOCOLS then
        return nil, "the response is " .. head.status
    end
    return response:rest()
end

-- Says who this is and reads the broker's welcome, `rest` its first bytes.
local function greet(self, sock, rest, deadline)
    local decoder = self.decoder
    local ok, err = sock:send(frame.control(frame.HELLO, self.opts.worker, ngx.worker.pid()))
    local kind
    if rest ~= "" then
        decoder:feed(rest)
    end
    while ok and not kind and not err do
        kind, err = decoder:next()
        if not kind and not err and decoder.size > MAX_WELCOME_BYTES then
            err = "oversized"
        elseif not kind and not err then
            ok, err = read_until(sock, deadline, MAX_WELCOME_BYTES)
            if ok then
                decoder:feed(ok)
            end
        end
    end
    if kind ~= frame.WELCOME or not decoder:speaks_ours() then
        return nil, err or "the response is no welcome"
    end
    self.missed = decoder.timeout_ms
    return true
end

--- Connects and shakes hands. Yields.
-- @treturn true|nil `missed` is then how many events were lost since the last connection
-- @treturn string|nil why not
function Client:connect()
    local opts, sock = self.opts, ngx.socket.tcp()
    sock:settimeouts(HANDSHAKE_MS, HANDSHAKE_MS, HANDSHAKE_MS)
    local ok, err = sock:connect(opts.address)
    if not ok then
        return nil, err
    end
    local rest, deadline = "", seconds() + HANDSHAKE_MS / 1000
    if not opts.is_raw then
        rest, err = upgrade(sock, opts, deadline)
    end
    ok = rest
    if ok then
        ok, err = greet(self, sock, rest, deadline)
    end
    if not ok then
        sock:close()
        return nil, err
    end
    sock:settimeouts(HANDSHAKE_MS, IDLE_MS, IDLE_MS)
    self.sock = sock
    return true
end

local function finish(self, reason)
    self.reason = self.reason or reason
    self.over:post(1)
end

-- An event that no worker of ours has sent: counted, and logged at most once an interval.
local function complain(self, name, problem)
    self.counts.undecodable = self.counts.undecodable + 1
    local now = ngx.now()
    if now >= self.quiet_until then
        self.quiet_until = now + LOG_INTERVAL_SECONDS
        name = name:gsub("[^ -~]", "?")
        ngx.log(ngx.ERR, "sluice: event ", name, " cannot be decoded: ", problem)
    end
end

local function deliver(self, decoder)
    local counts = self.counts
    counts.read = counts.read + 1
    counts.read_bytes = counts.read_bytes + decoder.after - decoder.at
    local source, event = decoder:source(), decoder:event()
    if self.wanted and not self.wanted(source, event) then
        counts.skipped = counts.skipped + 1
        return
    end
    local ok, data = decoder:data()
    if not ok then
        return complain(self, source .. "/" .. event, data)
    end
    local sender = decoder.sender
    self.deliver(source, event, data, sender ~= NOBODY and sender or nil)
end

-- Hands over what was fed. Returns why the connection has to end, if it has to.
local function drain(self)
    local decoder = self.decoder
    local kind, problem = decoder:next()
    while kind do
        if kind >= ALL then
            deliver(self, decoder)
        elseif kind == BYE then
            self.is_ending = true
            self.box:finish("now")
        else
            problem = "malformed"
            break
        end
        kind, problem = decoder:next()
    end
    return problem and problem .. " frame"
end

local function read(self)
    local sock, decoder, counts = self.sock, self.decoder, self.counts
    local slice = 0
    local problem = drain(self)
    while not problem do
        local bytes, err = decoder:read(sock)
        if bytes then
            counts.wakeups = counts.wakeups + 1
            problem = drain(self)
            slice = slice + bytes
        elseif err ~= "timeout" then
            problem = err
        end
        if slice > SLICE_BYTES then
            slice = 0
            ngx.sleep(PAUSE_SECONDS)
        end
    end
    finish(self, problem)
end

local function write(self)
    local ok, _, lost = self.box:write(self.sock)
    if not ok then
        -- The reader comes to the end by itself, after what the broker still sent.
        self.counts.lost_in_flight = self.counts.lost_in_flight + lost
        return
    end
    self.sock:send(frame.control(BYE, self.opts.worker, 0))
    if self.is_leaving then
        finish(self, "left")
    end
    -- Otherwise the broker said goodbye first, and is the one that closes.
end

--- Serves the connection to its end. Yields.
-- @treturn string "left", "closed" or what went wrong
function Client:serve()
    local reader = ngx.thread.spawn(read, self)
    local writer = ngx.thread.spawn(write, self)
    while not self.reason do
        self.over:wait(IDLE_MS / 1000)
    end
    ngx.thread.kill(reader)
    ngx.thread.kill(writer)
    self.sock:close()
    return self.reason
end

--- Sends what waits and ends the connection.
function Client:leave()
    self.is_leaving = true
    self.box:finish("sent")
end

return _M
