--- Replies of a Redis server (RESP2), with bounds: a server can neither fill the memory nor hold
-- its client for ever.
-- @module resty.redis.replies

local concat = table.concat
local find = string.find
local match = string.match
local min = math.min
local ngx = ngx
local setmetatable = setmetatable
local sub = string.sub
local tonumber = tonumber

local MAX_LINE_BYTES, PIECE_BYTES = 65536, 65536
-- Of one reply: bytes, elements, and arrays in arrays.
local MAX_BYTES, MAX_ELEMENTS, MAX_DEPTH = 64 * 1024 * 1024, 1048576, 16

local _M = {}

local Replies = {}
Replies.__index = Replies

--- Makes a reader.
-- @tparam table stream of resty.http.stream
-- @treturn table
-- @phases any
function _M.new(stream)
    return setmetatable({ stream = stream, buffer = "", at = 1, bytes = 0, elements = 0 }, Replies)
end

--- Forgets what was read: the connection is another one.
-- @phases any
function Replies:reset()
    self.buffer, self.at = "", 1
end

--- Whether all that has come was read.
-- @treturn boolean
-- @phases any
function Replies:is_clean()
    return self.at > #self.buffer
end

local function fill(self)
    local piece, err = self.stream:read(PIECE_BYTES)
    if not piece then
        return nil, err
    end
    self.buffer = self:is_clean() and piece or sub(self.buffer, self.at) .. piece
    self.at = 1
    return true
end

-- A line without its end.
local function read_line(self)
    while true do
        local ends = find(self.buffer, "\r\n", self.at, true)
        if ends then
            local line = sub(self.buffer, self.at, ends - 1)
            self.at = ends + 2
            return line
        elseif #self.buffer - self.at >= MAX_LINE_BYTES then
            return nil, "a line of the reply is too long"
        end
        local ok, err = fill(self)
        if not ok then
            return nil, err
        end
    end
end

local function read_bytes(self, count)
    local parts, missing = {}, count
    while missing > 0 do
        if self:is_clean() then
            local ok, err = fill(self)
            if not ok then
                return nil, err
            end
        end
        local piece = sub(self.buffer, self.at, self.at + min(missing, #self.buffer) - 1)
        parts[#parts + 1] = piece
        self.at = self.at + #piece
        missing = missing - #piece
    end
    return concat(parts)
end

local function read_bulk(self, digits)
    local size = tonumber(match(digits, "^%-?%d+$"))
    if not size then
        return nil, "invalid length in the reply"
    elseif size < 0 then
        return ngx.null
    end
    self.bytes = self.bytes + size
    if self.bytes > MAX_BYTES then
        return nil, "the reply is too long"
    end
    local text, err = read_bytes(self, size + 2)
    if not text then
        return nil, err
    elseif sub(text, -2) ~= "\r\n" then
        return nil, "invalid end of a text in the reply"
    end
    return sub(text, 1, -3)
end

local read_value

local function read_array(self, digits, depth)
    local count = tonumber(match(digits, "^%-?%d+$"))
    if not count then
        return nil, "invalid length in the reply"
    elseif count < 0 then
        return ngx.null
    end
    self.elements = self.elements + count
    if self.elements > MAX_ELEMENTS or depth == MAX_DEPTH then
        return nil, "the reply is too long"
    end
    local values = {}
    for i = 1, count do
        local value, err = read_value(self, depth + 1)
        if value == nil then
            return nil, err
        end
        -- An error within: as lua-resty-redis has it.
        values[i] = value or { false, err }
    end
    return values
end

-- A value; false and its words of an error of the server; nil and the reason of a failure.
function read_value(self, depth)
    local line, err = read_line(self)
    if not line then
        return nil, err
    end
    self.is_within = true
    local kind, rest = sub(line, 1, 1), sub(line, 2)
    if kind == "+" then
        return rest
    elseif kind == "-" then
        return false, rest
    elseif kind == ":" then
        local number = tonumber(match(rest, "^[+-]?%d+$"))
        return number, not number and "invalid number in the reply" or nil
    elseif kind == "$" then
        return read_bulk(self, rest)
    elseif kind == "*" then
        return read_array(self, rest, depth)
    end
    return nil, ('unknown prefix: "%s"'):format(sub(line, 1, 1))
end

--- Reads the next reply. Yields.
-- @treturn any|nil a value; false: the server's error
-- @treturn string|nil its words, or the reason of a failure
-- @phases as cosockets
function Replies:read()
    self.bytes, self.elements = 0, 0
    -- Whether a part of this one is used up: what comes next is no beginning then.
    self.is_within = false
    self.stream:start()
    return read_value(self, 0)
end

return _M
