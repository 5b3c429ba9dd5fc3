--- Frames of the socket transport: what goes over the wire, in both directions.
--
--     offset  bytes
--          0      4  bytes after this head
--          4      1  mark, 0xd5
--          5      1  kind
--          6      2  worker id of the sender, 1023 if it has none
--          8      2  bytes of the source
--         10      2  bytes of the event
--         12      4  all: 0; worker: its id; unique: bytes of the key; hello: process id
--         16      4  unique: milliseconds for which the key is remembered; welcome: events that
--                    were missed; otherwise 0
--         20         key, source, event, payload
--
-- Numbers have the machine's byte order: both ends are on it. The payload is
-- what LuaJIT's string buffer serialises. Needs no nginx.
-- @module sluice.events.frame

local buffer = require("string.buffer")
local ffi = require("ffi")
local worker_id = require("sluice.events.worker_id")

local cast = ffi.cast
local pcall = pcall
local text = ffi.string

local _M = {}

ffi.cdef([[
typedef struct __attribute__((packed)) {
    uint32_t body;
    uint8_t  mark;
    uint8_t  kind;
    uint16_t sender;
    uint16_t source;
    uint16_t event;
    uint32_t target;
    uint32_t timeout_ms;
} sluice_events_head_t;
]])

local MARK = 0xd5
local HEAD_BYTES = ffi.sizeof("sluice_events_head_t")
local HEAD_POINTER = ffi.typeof("const sluice_events_head_t *")
local BYTE_POINTER = ffi.typeof("const uint8_t *")
local NOTHING = cast(BYTE_POINTER, nil)

-- A decoder gives the memory of a larger frame back.
local KEPT_BYTES = 1024 * 1024

local CHUNK_BYTES = 64 * 1024
local LARGE_BYTES = 8 * 1024

--- Kinds: the two of the handshake, the last one of a connection, the events.
_M.HELLO, _M.WELCOME, _M.BYE, _M.ALL, _M.WORKER, _M.UNIQUE = 1, 2, 3, 4, 5, 6

local ALL, UNIQUE = _M.ALL, _M.UNIQUE

--- Worker id of a process that has none: the privileged agent.
_M.NOBODY = worker_id.AGENT

--- Longest source, event or key, in bytes.
_M.MAX_NAME = 65535

--- Largest payload that a decoder can be made to take, in bytes.
_M.MAX_PAYLOAD = 16 * 1024 * 1024

--- Source and event of a hello and a welcome: protocol and version.
_M.PROTOCOL, _M.VERSION = "sluice-events", "1"

local Encoder = {}
Encoder.__index = Encoder

--- Makes an encoder: it holds one serialised payload at a time.
-- @tparam number max_payload bytes
-- @treturn table
function _M.encoder(max_payload)
    return setmetatable({
        payload = buffer.new(),
        head = ffi.new("sluice_events_head_t", { mark = MARK }),
        max_payload = max_payload,
    }, Encoder)
end

--- Serialises what the next frame carries.
-- @param data anything that LuaJIT's string buffer serialises
-- @treturn true|nil
-- @treturn string|nil "payload too large", "not serialisable"
-- @treturn string|nil with "not serialisable": what
function Encoder:serialise(data)
    local payload = self.payload:reset()
    local ok, problem = pcall(payload.encode, payload, data)
    if not ok then
        payload:free()
        return nil, "not serialisable", problem
    end
    if #payload > self.max_payload then
        payload:free()
        return nil, "payload too large"
    end
    return true
end

--- Bytes of a frame around the payload that was serialised last.
function Encoder:size(key, source, event)
    return HEAD_BYTES + #key + #source + #event + #self.payload
end

--- Appends a frame around the payload that was serialised last.
-- @param out string buffer
-- @tparam number kind ALL, WORKER or UNIQUE
-- @tparam number sender worker id or NOBODY
-- @tparam number target worker id of a WORKER frame, otherwise 0
-- @tparam number timeout_ms of a UNIQUE frame, otherwise 0
-- @tparam string key of a UNIQUE frame, otherwise ""
-- @tparam string source at most MAX_NAME bytes, as key and event
-- @tparam string event
function Encoder:put(out, kind, sender, target, timeout_ms, key, source, event)
    local head, payload = self.head, self.payload
    head.body = #key + #source + #event + #payload
    head.kind = kind
    head.sender = sender
    head.source = #source
    head.event = #event
    head.target = kind == UNIQUE and #key or target
    head.timeout_ms = timeout_ms
    out:putcdata(head, HEAD_BYTES):put(key, source, event)
    out:putcdata(payload:ref())
end

--- A frame without an event, as a string.
-- @tparam number kind HELLO, WELCOME or BYE
-- @tparam number sender worker id or NOBODY
-- @tparam number target process id of a HELLO or WELCOME, 0 in a BYE
-- @tparam[opt] number missed events, of a WELCOME
-- @treturn string
function _M.control(kind, sender, target, missed)
    local out, encoder = buffer.new(), _M.encoder(0)
    encoder:put(out, kind, sender, target, missed or 0, "", _M.PROTOCOL, _M.VERSION)
    return out:get()
end

local Decoder = {}
Decoder.__index = Decoder

--- Makes a decoder of a stream of frames.
--
-- After `next`, these fields describe the frame: `kind`, `sender`, `target`,
-- `timeout_ms`, `at` and `after` (where it begins and where the next one does,
-- for `slice`). They and the frame's bytes are good until the next `feed`.
-- @tparam number max_payload bytes; at most MAX_PAYLOAD
-- @treturn table
function _M.decoder(max_payload)
    return setmetatable({
        bytes = buffer.new(),
        reader = buffer.new(),
        max_payload = max_payload,
        start = NOTHING,
        size = 0,
        at = 0,
        after = 0,
        missing = 0,
        kind = 0,
        sender = 0,
        target = 0,
        timeout_ms = 0,
        key_at = 0,
        source_at = 0,
        event_at = 0,
        payload_at = 0,
    }, Decoder)
end

--- Takes more of the stream; drops the frames that `next` has been over.
-- @tparam string chunk
function Decoder:feed(chunk)
    local bytes = self.bytes
    if self.after > 0 then
        bytes:skip(self.after)
    end
    if #bytes > 0 then
        bytes:put(chunk)
    else
        if self.size > KEPT_BYTES then
            bytes:free()
        end
        bytes:set(chunk)
    end
    self.at, self.after, self.missing = 0, 0, 0
    local start, size = bytes:ref()
    self.start, self.size = cast(BYTE_POINTER, start), size
end

-- Whether the lengths of a head contradict each other or the limit.
local function complaint(decoder, head, keys)
    local names = keys + head.source + head.event
    if head.mark ~= MARK or head.kind < _M.HELLO or head.kind > UNIQUE then
        return "malformed"
    elseif keys > _M.MAX_NAME or head.body < names then
        return "malformed"
    elseif head.body - names > decoder.max_payload then
        return "oversized"
    elseif head.kind < ALL and head.body ~= names then
        return "malformed"
    end
    return nil
end

--- Goes to the next frame; never yields, reads nothing beyond what was fed.
-- @treturn[1] number kind of the frame
-- @treturn[2] nil more has to be fed before there is one
-- @treturn[3] nil the stream is of no more use
-- @treturn[3] string "malformed" or "oversized"
function Decoder:next()
    local at = self.after
    local left = self.size - at
    if left < HEAD_BYTES then
        return nil
    end
    local head = cast(HEAD_POINTER, self.start + at)
    local kind = head.kind
    local keys = kind == UNIQUE and head.target or 0
    local problem = complaint(self, head, keys)
    if problem then
        return nil, problem
    end
    local whole = HEAD_BYTES + head.body
    if left < whole then
        self.missing = whole - left
        return nil
    end
    self.at, self.after = at, at + whole
    self.kind, self.sender = kind, head.sender
    self.target, self.timeout_ms = head.target, head.timeout_ms
    self.key_at = at + HEAD_BYTES
    self.source_at = self.key_at + keys
    self.event_at = self.source_at + head.source
    self.payload_at = self.event_at + head.event
    return kind
end

--- Reads more of the stream, and feeds it. Yields.
--
-- What is known to be missing of a large frame comes in one string: each string
-- costs, and the more the more alike they are.
-- @param sock connected socket
-- @treturn number|nil bytes
-- @treturn string|nil error of the socket; after "timeout" one may go on
function Decoder:read(sock)
    local chunk, err, part
    if self.missing > LARGE_BYTES then
        chunk, err, part = sock:receive(self.missing)
        chunk = chunk or part
    else
        chunk, err = sock:receiveany(CHUNK_BYTES)
    end
    if chunk and #chunk > 0 then
        self:feed(chunk)
        return #chunk
    end
    return nil, err
end

--- The key of a UNIQUE frame.
function Decoder:key()
    return text(self.start + self.key_at, self.source_at - self.key_at)
end

--- The source of the frame.
function Decoder:source()
    return text(self.start + self.source_at, self.event_at - self.source_at)
end

--- The event of the frame.
function Decoder:event()
    return text(self.start + self.event_at, self.payload_at - self.event_at)
end

local function read(reader)
    local data = reader:decode()
    if #reader > 0 then
        error("bytes after the payload")
    end
    return data
end

--- Whether all of what was fed has been used up.
function Decoder:is_empty()
    return self.after == self.size
end

--- The payload, decoded in place: no string is made of it.
-- @treturn[1] boolean true
-- @return[1] the data
-- @treturn[2] boolean false
-- @treturn[2] string why it is not what a string buffer serialises
function Decoder:data()
    local reader = self.reader
    reader:set(self.start + self.payload_at, self.after - self.payload_at)
    return pcall(read, reader)
end

--- A copy of some of the bytes fed last.
-- @tparam number from offset, as `at`
-- @tparam number to offset, as `after`
-- @treturn string
function Decoder:slice(from, to)
    return text(self.start + from, to - from)
end

--- Whether the frame is a handshake of our protocol's version.
function Decoder:speaks_ours()
    return self:source() == _M.PROTOCOL and self:event() == _M.VERSION
end

return _M
