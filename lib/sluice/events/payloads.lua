--- Decodes the payloads of a batch of frames where they lie in the log.
--
-- One buffer holds all of a batch and what lies between the payloads. To set a buffer for each
-- event takes a pointer for each, which was half of the objects that a delivery left to the garbage
-- collector.
-- @module sluice.events.payloads

local buffer = require("string.buffer")

local _M = {}

local decoder = buffer.new()
local decode = decoder.decode
local span = 0 -- bytes from the batch's first payload to the end of its last one

--- Begins a batch, as sluice_ring_next_batch() filled it.
-- @tparam cdata frames
-- @tparam number count of them, 1 at least
function _M.begin(frames, count)
    local last = frames[count - 1]
    span = last.offset + last.length
    decoder:set(frames[0].payload, span)
end

--- Decodes one frame's payload; frames before it may have been left out, none behind it decoded.
-- @tparam cdata frame of the batch
-- @treturn boolean whether it could be decoded and ends where its frame says
-- @return the event's data, or why not
function _M.decode(frame)
    local left = span - frame.offset
    local surplus = #decoder - left
    if surplus < 0 then
        -- The one before said that it was longer.
        decoder:set(frame.payload, left)
    else
        decoder:skip(surplus)
    end
    local ok, data = pcall(decode, decoder)
    if ok and #decoder ~= left - frame.length then
        return false, "its length is another"
    end
    return ok, data
end

return _M
