--- Messages of the log that come in pieces, until they are whole.
-- @module sluice.events.pieces

local bit = require("bit")
local buffer = require("string.buffer")
local ffi = require("ffi")
local module = require("sluice.events.module")

local C = ffi.C
local band = bit.band
local MORE, OK = module.MORE, module.OK

-- A message of a process without a slot has lost its sender when no piece came for this long.
local ORPHAN_SECONDS = 60
local NO_SLOT = 0xffff
local MAX_MESSAGE_BYTES = 17 * 1024 * 1024

local _M = {
    count = 0, -- messages under way
    dropped = 0, -- messages that never became whole
}

local partials = {} -- by sender, its epoch, and number
local slot_stats = ffi.new("sluice_ring_slot_stats_t")

local function drop_one(key)
    if partials[key] then
        partials[key] = nil
        _M.count = _M.count - 1
        _M.dropped = _M.dropped + 1
    end
end

--- Adds one piece.
-- @tparam cdata frame
-- @tparam cdata payload of the piece
-- @tparam number length in bytes
-- @treturn cdata|nil the whole payload as a buffer, when it was the last piece
function _M.add(frame, payload, length)
    local key = ("%d/%d/%d"):format(frame.sender, frame.epoch, frame.message)
    local partial = partials[key]
    if frame.piece == 0 then
        drop_one(key)
        partial = {
            buffer = buffer.new(),
            sender = frame.sender,
            epoch = frame.epoch,
            next = 0,
            bytes = 0,
        }
        partials[key] = partial
        _M.count = _M.count + 1
    elseif not partial or partial.next ~= frame.piece then
        -- its beginning was before this worker attached or before somebody subscribed
        drop_one(key)
        return nil
    end
    partial.next = partial.next + 1
    partial.touched = C.sluice_events_clock()
    partial.bytes = partial.bytes + length
    if partial.bytes > MAX_MESSAGE_BYTES then
        drop_one(key)
        return nil
    end
    partial.buffer:putcdata(payload, length)
    if band(frame.flags, MORE) ~= 0 then
        return nil
    end
    partials[key] = nil
    _M.count = _M.count - 1
    return partial.buffer
end

--- Marks the messages whose senders have gone: what these have sent is all in the log by now. A
-- sender that is stopped, or waits for space, goes on however late.
-- @tparam cdata handle sluice_events_t *
function _M.mark_orphans(handle)
    for _, partial in pairs(partials) do
        if partial.sender == NO_SLOT then
            partial.is_orphan = partial.touched < C.sluice_events_clock() - ORPHAN_SECONDS
        else
            local rc = C.sluice_events_slot_stats(handle, partial.sender, slot_stats)
            partial.is_orphan = rc ~= OK or slot_stats.epoch ~= partial.epoch
        end
    end
end

--- Forgets messages that never will be whole.
-- @tparam[opt] boolean only_orphans those that were marked, to be called at the end of the log;
--   without it all, as what follows of them was missed
function _M.drop(only_orphans)
    for key, partial in pairs(partials) do
        if partial.is_orphan or not only_orphans then
            drop_one(key)
        end
    end
end

return _M
