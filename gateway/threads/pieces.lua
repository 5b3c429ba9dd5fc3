--- Long lists on their way to a thread and back, as pieces of bytes.
--
-- `ngx.run_worker_thread` copies tables one by one while nothing else of the worker runs: 50,000
-- changes hold it half a second. Bytes are copied at once, and a list is made into them, and read
-- from them, in turns with other requests.
-- @module gateway.threads.pieces

local string_buffer = require("string.buffer")

-- Items of a piece: some tens of kilobytes of entities.
local PIECE = 100

local _M = {}
local methods = {}
local mt = { __index = methods }

--- Begins a list.
-- @treturn table
function _M.new()
    return setmetatable({ done = {}, piece = {} }, mt)
end

local function flush(self)
    self.done[#self.done + 1] = string_buffer.encode(self.piece)
    self.piece = {}
end

--- Adds an item: plain data. Does not yield.
function methods:add(item)
    self.piece[#self.piece + 1] = item
    if #self.piece == PIECE then
        flush(self)
    end
end

--- Ends the list.
-- @treturn {string,...} for `decode`
function methods:finish()
    flush(self)
    return self.done
end

--- Makes a list into pieces.
-- @tparam {table,...} list
-- @treturn {string,...}
function _M.encode(list)
    local pieces = _M.new()
    for _, item in ipairs(list) do
        pieces:add(item)
    end
    return pieces:finish()
end

--- Reads a list from its pieces.
-- @tparam {string,...} pieces
-- @tparam[opt] function pause called after each piece, may yield
-- @treturn {table,...}
function _M.decode(pieces, pause)
    local list = {}
    for _, piece in ipairs(pieces) do
        for _, item in ipairs(string_buffer.decode(piece)) do
            list[#list + 1] = item
        end
        if pause then
            pause()
        end
    end
    return list
end

return _M
