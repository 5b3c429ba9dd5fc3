--- The bytes that a server sends to a client of ours: each step has one deadline.
--
-- nginx's sockets have a time for each read, so that a server that sends a byte now and then holds
-- its client for ever. Here a step (a head, a piece of a body, a whole body) has the time of one
-- read, and a second more for each 16 KB that have come.
-- @module resty.http.stream

local http_response = require("sluice.http_response")
local seconds = require("sluice.clock").monotonic

local ceil = math.ceil
local min = math.min
local setmetatable = setmetatable

-- What a server has to send, on average.
local BYTES_A_SECOND = 16384

-- Of a step where nobody has given the socket times: nginx's own default of a read.
local DEFAULT_MS = 60000

local _M = {}

local Stream = {}
Stream.__index = Stream

--- Makes the stream of a client.
-- @tparam table client with `sock`, and `timeouts` {connect_ms, send_ms, read_ms} or nil
-- @treturn table
-- @phases any
function _M.new(client)
    return setmetatable({ client = client, rest = "", started = 0, count = 0 }, Stream)
end

-- Gives the socket what is left of this step's time. A socket that nobody has given times keeps
-- those of nginx.conf for each of its reads.
local function give_time(self)
    local times = self.client.timeouts
    local read_ms = times and times[3] or DEFAULT_MS
    local spent_ms = (seconds() - self.started) * 1000
    local left_ms = ceil(read_ms + self.count / BYTES_A_SECOND * 1000 - spent_ms)
    if left_ms <= 0 then
        return nil, "timeout"
    elseif times then
        self.client.sock:settimeouts(times[1], times[2], min(left_ms, read_ms))
    end
    return true
end

--- Begins a step: its time starts now.
-- @phases any
function Stream:start()
    self.started, self.count = seconds(), 0
end

--- Forgets what was read: the connection is another one.
-- @phases any
function Stream:reset()
    self.rest = ""
end

--- Reads what has come. Yields.
-- @tparam number max_bytes
-- @treturn string|nil between 1 and so many bytes
-- @treturn string|nil "timeout", "closed", or the socket's reason
-- @phases as cosockets
function Stream:read(max_bytes)
    local ok, err = give_time(self)
    if not ok then
        return nil, err
    end
    local piece
    piece, err = self.client.sock:receiveany(max_bytes)
    self.count = self.count + (piece and #piece or 0)
    return piece, err
end

--- A reader of the next response.
-- @treturn table of sluice.http_response
-- @phases as cosockets
function Stream:response()
    local rest = self.rest
    self.rest = ""
    return http_response.new(function(max_bytes)
        return self:read(max_bytes)
    end, rest)
end

--- Gives back what a response has left: the next one begins with it.
-- @tparam table response
-- @phases any
function Stream:finish(response)
    self.rest = response:rest()
end

return _M
