--- Reads the response of an HTTP/1.x server that may be hostile: everything has a bound.
--
-- For clients that we write. The bounds are of bytes, of lines and of interim responses; the
-- deadline is the caller's, whose `read` fails when it has passed. Needs nothing of nginx.
-- @module sluice.http_response
-- @usage
-- local response = http_response.new(function(max_bytes)
--     return socket:receiveany(max_bytes) -- with what is left of the time
-- end)
-- local head, err = response:read_head()
-- local is_whole = head and response:read_body(head, 65536)

local concat = table.concat
local find = string.find
local match = string.match
local min = math.min
local setmetatable = setmetatable
local sub = string.sub
local tonumber = tonumber

-- All heads of one response together, interim ones included: bytes, and lines.
local MAX_HEAD_BYTES = 65536
local MAX_LINES = 200

-- Interim responses before the final one; as many as nginx is allowed from an upstream
-- (ngx_http_sluice_response.c).
local MAX_INTERIM = 16

-- Of a chunk's size with its extensions, and of all trailers together.
local MAX_CHUNK_LINE_BYTES = 4096
local MAX_TRAILER_BYTES = 16384

-- More hexadecimal digits are no size.
local MAX_CHUNK_DIGITS = 8

local PIECE_BYTES = 16384

local SWITCHING_PROTOCOLS = 101

local _M = {}

local Response = {}
Response.__index = Response

--- Makes a reader of one response.
-- @tparam function read `read(max_bytes)` gives between 1 and so many bytes, or nil and why not:
--   "closed" at the end of the stream. May yield.
-- @tparam[opt=""] string rest what the response before it has left
-- @treturn table
-- @phases any
function _M.new(read, rest)
    return setmetatable({
        read = read,
        -- What was read, and is used up to `at`.
        buffer = rest or "",
        at = 1,
        -- Lines and interim responses that may still come.
        lines = MAX_LINES,
        interim = MAX_INTERIM,
    }, Response)
end

-- Reads more, so many bytes at most, when all is used up.
local function fill(self, max_bytes)
    local piece, err = self.read(min(max_bytes, PIECE_BYTES))
    if not piece then
        return nil, err
    end
    self.buffer, self.at = piece, 1
    return true
end

-- A line without its end, of at most `max_bytes`, its end included; and how many it had. What came
-- byte by byte is put together once.
local function read_line(self, max_bytes, what)
    local parts, size = {}, 0
    while true do
        local ends = find(self.buffer, "\n", self.at, true)
        parts[#parts + 1] = sub(self.buffer, self.at, (ends or 0) - 1)
        size = size + (ends or #self.buffer) - self.at + 1
        self.at = (ends or #self.buffer) + 1
        if size > max_bytes or (not ends and size == max_bytes) then
            return nil, what .. " is too long"
        elseif ends then
            local line = concat(parts)
            return sub(line, -1) == "\r" and sub(line, 1, -2) or line, nil, size
        end
        local ok, err = fill(self, max_bytes - size)
        if not ok then
            return nil, err
        end
    end
end

-- The name and the value of a field. Takes time with the length of the line alone, whatever it is:
-- one pattern for all of it would go back over each space that the value has within.
local function split_field(line)
    local name, from = match(line, "^([^:%s]+):()")
    if not name then
        return nil
    end
    from = find(line, "%S", from)
    return name, from and match(sub(line, from), "^(.*%S)") or ""
end

-- Lines up to an empty one, handed to a function where there is one.
local function read_fields(self, max_bytes, what, on_field)
    local left = max_bytes
    while true do
        local line, err, size = read_line(self, left, what)
        if not line then
            return nil, err
        elseif line == "" then
            return left - size
        elseif self.lines == 0 then
            return nil, what .. " has too many lines"
        end
        left, self.lines = left - size, self.lines - 1
        local name, value = split_field(line)
        if name and on_field then
            on_field(name, value)
        end
    end
end

-- Puts fields into a table by lower-case name. One that comes twice is joined, as RFC 9110 5.3 has
-- it.
local function collector(fields, on_field)
    return function(name, value)
        local key = name:lower()
        fields[key] = fields[key] and fields[key] .. ", " .. value or value
        if on_field then
            on_field(name, value)
        end
    end
end

-- The status line, taken apart; nil of another line.
local function parse_status(line)
    local version, status, reason = match(line, "^HTTP/(1%.%d) ([1-9]%d%d)%f[^%d] ?(.*)$")
    return version and { status = tonumber(status), version = version, reason = reason }
end

-- Whether a response is the one that was asked for.
local function is_final(status)
    return status >= 200 or status == SWITCHING_PROTOCOLS
end

--- Reads the head of the final response; interim ones (1xx but 101) are passed over. Yields as
-- `read` does.
-- @tparam[opt] function on_field `on_field(name, value)` gets each line of it, as it was sent
-- @tparam[opt] function on_interim `on_interim(status)` is called for each interim response, and
--   may return nil and a reason to go no further
-- @treturn table|nil `status`; `version`, as "1.1"; `reason`, its phrase; `headers` by their name
--   in lower case, lines of one name joined by ", "
-- @treturn string|nil `read`'s reason; "not an HTTP response", "the head of the response is too
--   long", "the head of the response has too many lines", "too many interim responses"
-- @treturn string|nil what stands there in place of a status line
-- @phases any
function Response:read_head(on_field, on_interim)
    local left = MAX_HEAD_BYTES
    local what = "the head of the response"
    while true do
        local line, err, size = read_line(self, left, what)
        if not line then
            return nil, err
        end
        local head = parse_status(line)
        if not head then
            return nil, "not an HTTP response", line
        end
        head.headers = {}
        local last = is_final(head.status)
        local collect = collector(head.headers, last and on_field or nil)
        left, err = read_fields(self, left - size, what, collect)
        if not left then
            return nil, err
        end
        if last then
            return head
        elseif self.interim == 0 then
            return nil, "too many interim responses"
        end
        self.interim = self.interim - 1
        if on_interim then
            local goes_on
            goes_on, err = on_interim(head.status)
            if not goes_on then
                return nil, err
            end
        end
    end
end

local function is_bodiless(head)
    return head.status < 200 or head.status == 204 or head.status == 304
end

--- Whether the connection may serve another request when the body has been read.
-- @tparam table head of `read_head`
-- @treturn boolean
-- @phases any
function _M.keeps_alive(head)
    local headers = head.headers
    local connection = (headers.connection or ""):lower()
    local has_encoding, has_length = headers["transfer-encoding"], headers["content-length"]
    -- With both, one of them is a lie (RFC 9112 6.3); without, the body ends with the connection.
    local is_framed = is_bodiless(head) or (not has_encoding) ~= not has_length
    return is_framed
        and not find(connection, "close", 1, true)
        and (head.version ~= "1.0" or connection == "keep-alive")
end

-- Hands over so many bytes of the body.
local function read_bytes(self, count, keep)
    while count > 0 do
        local ends = min(#self.buffer, self.at + count - 1)
        if ends < self.at then
            local ok, err = fill(self, count)
            if not ok then
                return nil, err
            end
        else
            if keep then
                keep(sub(self.buffer, self.at, ends))
            end
            count = count - (ends - self.at + 1)
            self.at = ends + 1
        end
    end
    return true
end

-- Until the connection ends, which is then no error.
local function read_rest(self, max_bytes, keep)
    while true do
        local size = #self.buffer - self.at + 1
        if size > max_bytes then
            return nil, "the body of the response is too long"
        end
        read_bytes(self, size, keep)
        max_bytes = max_bytes - size
        local ok, err = fill(self, max_bytes + 1)
        if not ok then
            return err == "closed" or nil, err ~= "closed" and err or nil
        end
    end
end

--- Reads the size of the next chunk. Yields as `read` does.
-- @treturn number|nil bytes; 0: it was the last
-- @treturn string|nil `read`'s reason, "a chunk has no size", "the size of a chunk is too long"
-- @treturn number|nil bytes of the line
-- @phases any
function Response:read_chunk_size()
    local line, err, size = read_line(self, MAX_CHUNK_LINE_BYTES, "the size of a chunk")
    if not line then
        return nil, err
    end
    local digits = match(line, "^(%x+)%s*$") or match(line, "^(%x+)%s*;")
    if not digits or #digits > MAX_CHUNK_DIGITS then
        return nil, "a chunk has no size"
    end
    return tonumber(digits, 16), nil, size
end

--- Reads what ends a chunk. Yields as `read` does.
-- @treturn true|nil
-- @treturn string|nil `read`'s reason, "a chunk has no end"
-- @phases any
function Response:read_chunk_end()
    local line, err = read_line(self, 2, "the end of a chunk")
    if line ~= "" then
        return nil, err or "a chunk has no end"
    end
    return true
end

--- Reads what stands behind the last chunk. Yields as `read` does.
-- @tparam[opt] function on_field `on_field(name, value)` gets each line
-- @treturn true|nil
-- @treturn string|nil `read`'s reason, "the trailer of the response is too long", "... has too many
--   lines"
-- @phases any
function Response:read_trailers(on_field)
    local left, err = read_fields(self, MAX_TRAILER_BYTES, "the trailer of the response", on_field)
    return left and true, err
end

--- Reads between 1 and so many bytes. Yields as `read` does.
-- @tparam number max_bytes
-- @treturn string|nil
-- @treturn string|nil `read`'s reason
-- @phases any
function Response:read_piece(max_bytes)
    if self.at > #self.buffer then
        local ok, err = fill(self, max_bytes)
        if not ok then
            return nil, err
        end
    end
    local piece = sub(self.buffer, self.at, self.at + max_bytes - 1)
    self.at = self.at + #piece
    return piece
end

local function read_chunks(self, max_bytes, keep)
    local left = max_bytes
    while true do
        local bytes, err, size = self:read_chunk_size()
        if not bytes then
            return nil, err
        elseif bytes == 0 then
            return self:read_trailers()
        end
        -- What frames it counts: chunks of one byte are as dear as others.
        left = left - size - bytes - 2
        if left < 0 then
            return nil, "the body of the response is too long"
        end
        local done
        done, err = read_bytes(self, bytes, keep)
        if done then
            done, err = self:read_chunk_end()
        end
        if not done then
            return nil, err
        end
    end
end

--- Reads the body, to keep it or to be rid of it. Yields as `read` does.
-- @tparam table head of `read_head`; not of a response to HEAD
-- @tparam number max_bytes of the body, what frames its chunks included
-- @tparam[opt] function keep gets the pieces, one after the other
-- @treturn true|nil
-- @treturn string|nil `read`'s reason; "the body of the response is too long", "invalid
--   Content-Length", "unknown Transfer-Encoding", or what is wrong with a chunk or the trailer
-- @phases any
function Response:read_body(head, max_bytes, keep)
    local encoding, length = head.headers["transfer-encoding"], head.headers["content-length"]
    if is_bodiless(head) then
        return true
    elseif encoding then
        if encoding:lower() ~= "chunked" then
            return nil, "unknown Transfer-Encoding"
        end
        return read_chunks(self, max_bytes, keep)
    elseif not length then
        return read_rest(self, max_bytes, keep)
    elseif not match(length, "^%d+$") then
        return nil, "invalid Content-Length"
    elseif tonumber(length) > max_bytes then
        return nil, "the body of the response is too long"
    end
    return read_bytes(self, tonumber(length), keep)
end

--- What was read beyond the response: after 101 the first bytes of the other protocol.
-- @treturn string
-- @phases any
function Response:rest()
    return sub(self.buffer, self.at)
end

return _M
