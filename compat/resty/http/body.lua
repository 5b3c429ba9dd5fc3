--- Readers of bodies as lua-resty-http has them: functions that return the next piece, nil at the
-- end.
-- @module resty.http.body

local concat = table.concat
local floor = math.floor
local min = math.min
local tonumber = tonumber

-- Pieces of a body that are kept one by one: a server may send a byte in each.
local MAX_PARTS = 1024

local TOO_LONG = "the body of the response is too long"

local _M = {}

-- Exactly so many bytes.
local function read_exactly(response, count)
    local parts, missing = {}, count
    while missing > 0 do
        local piece, err = response:read_piece(missing)
        if not piece then
            return nil, err, concat(parts)
        end
        parts[#parts + 1] = piece
        missing = missing - #piece
    end
    return concat(parts)
end

-- Makes a reader of a function `step(max_bytes)`, which returns a piece, or nil and nothing at the
-- end. A reader that is through stays so, and one that has failed says the same again.
local function reader(source, step)
    local ended, failure
    return function(max_bytes)
        max_bytes = tonumber(max_bytes)
        if ended then
            return nil, failure
        end
        if not source.is_whole then
            source.start()
        end
        local piece, err, partial = step(max_bytes and max_bytes >= 1 and floor(max_bytes) or nil)
        if not piece or err then
            ended, failure = true, err
            source.ended(err)
        end
        return piece, err, partial
    end
end

--- Of a body with a length.
-- @tparam table source `response` (sluice.http_response), `start()` before each piece,
--   `ended(err)`, `max_bytes` of one piece; `is_whole` where one step was started for all pieces
-- @tparam number length
-- @treturn function `reader(max_bytes)`: a piece, nil at the end; without `max_bytes` all of it
-- @phases any
function _M.of_length(source, length)
    local left = length
    if left == 0 then
        source.ended()
    end
    return reader(source, function(max_bytes)
        if left == 0 then
            return nil
        end
        local count = min(left, max_bytes or left)
        if count > source.max_bytes then
            return nil, TOO_LONG
        end
        local piece, err, partial = read_exactly(source.response, count)
        left = left - (piece and #piece or 0)
        if piece and left == 0 then
            source.ended()
        end
        return piece, err, partial
    end)
end

--- Of a body in chunks.
-- @tparam table source as of `of_length`; `on_trailer(name, value)`
-- @treturn function `reader(max_bytes)`: without `max_bytes` a chunk
-- @phases any
function _M.of_chunks(source)
    local left = 0
    local response = source.response
    return reader(source, function(max_bytes)
        if left == 0 then
            local size, err = response:read_chunk_size()
            if not size then
                return nil, err
            elseif size == 0 then
                local done
                done, err = response:read_trailers(source.on_trailer)
                return nil, not done and err or nil
            end
            left = size
        end
        local count = min(left, max_bytes or left)
        if count > source.max_bytes then
            return nil, TOO_LONG
        end
        local piece, err, partial = read_exactly(response, count)
        if not piece then
            return nil, err, partial
        end
        left = left - #piece
        if left == 0 then
            local done
            done, err = response:read_chunk_end()
            if not done then
                return nil, err
            end
        end
        return piece
    end)
end

-- As much as there is, up to so many bytes; then whether the connection has ended.
local function read_up_to(response, max_bytes)
    local parts, missing = {}, max_bytes
    while missing > 0 do
        local piece, err = response:read_piece(missing)
        if not piece then
            return concat(parts), err
        end
        parts[#parts + 1] = piece
        missing = missing - #piece
    end
    return concat(parts)
end

--- Of a body that ends with the connection.
-- @tparam table source as of `of_length`
-- @treturn function `reader(max_bytes)`: without `max_bytes` all of it
-- @phases any
function _M.of_connection(source)
    local closed
    return reader(source, function(max_bytes)
        if closed then
            return nil
        end
        local count = min(max_bytes or source.max_bytes + 1, source.max_bytes + 1)
        local piece, err = read_up_to(source.response, count)
        if #piece > source.max_bytes then
            return nil, TOO_LONG
        elseif err and err ~= "closed" then
            return nil, err, piece
        end
        closed = err == "closed"
        return piece ~= "" and piece or nil
    end)
end

--- All pieces of a reader, as one text.
-- @tparam function read
-- @tparam number max_bytes
-- @treturn string|nil
-- @treturn string|nil the reader's reason, "the body of the response is too long"
-- @treturn string|nil what was read before that
-- @phases as cosockets
function _M.whole(read, max_bytes)
    local parts, small, size = {}, {}, 0
    while true do
        local piece, err, partial = read()
        small[#small + 1] = piece or partial
        if #small == MAX_PARTS or not piece or err then
            parts[#parts + 1] = concat(small)
            small = {}
        end
        size = size + (piece and #piece or 0)
        if size > max_bytes then
            return nil, TOO_LONG
        elseif err then
            return nil, err, concat(parts)
        elseif not piece then
            return concat(parts)
        end
    end
end

return _M
