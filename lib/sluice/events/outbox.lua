--- What waits to be sent over one connection: whole frames, in pieces that go
-- out with one call each; bounded by events and bytes.
--
-- Made anywhere; the semaphore that wakes the writer belongs to a worker, so
-- `open` makes it in init_worker or later.
-- @module sluice.events.outbox

local buffer = require("string.buffer")

local _M = {}

-- Enough for some hundred events a call, little enough to share a core.
local PIECE_BYTES = 64 * 1024

-- How long an idle writer waits; it wakes at once when there is something.
local IDLE_SECONDS = 24 * 3600

local Outbox = {}
Outbox.__index = Outbox

--- Makes an outbox.
-- @tparam number max_events
-- @tparam number max_bytes an empty outbox takes a larger piece, too
-- @treturn table fields to read: `events`, `bytes`
function _M.new(max_events, max_bytes)
    return setmetatable({
        max_events = max_events,
        max_bytes = max_bytes,
        events = 0,
        bytes = 0,
        frames = buffer.new(),
        gathered = 0,
        pieces = {},
        counts = {},
        keys = {},
        first = 1,
        last = 0,
        is_waiting = false,
    }, Outbox)
end

--- Makes it ready for a writer: the first one, or the one of a new connection.
-- @phases init_worker and later
function Outbox:open()
    self.semaphore = self.semaphore or assert(require("ngx.semaphore").new())
    self.ending = nil
end

--- Wakes the writer if it waits.
function Outbox:wake()
    if self.is_waiting then
        self.is_waiting = false
        self.semaphore:post(1)
    end
end

--- Whether a frame of so many bytes may come in.
function Outbox:has_room(bytes)
    return self.events < self.max_events
        and (self.bytes + bytes <= self.max_bytes or self.events == 0)
end

-- Closes the piece that is being gathered.
local function seal(self)
    local last = self.last + 1
    self.last = last
    self.pieces[last] = self.frames:get()
    self.counts[last] = self.gathered
    self.gathered = 0
end

--- Counts a frame that was just appended to `frames`, and wakes the writer.
-- @tparam number bytes of that frame
function Outbox:added(bytes)
    self.events = self.events + 1
    self.bytes = self.bytes + bytes
    self.gathered = self.gathered + 1
    if #self.frames >= PIECE_BYTES then
        seal(self)
    end
    if self.is_waiting then
        self:wake()
    end
end

--- Appends a piece of whole frames, whatever the bounds, and wakes the writer.
-- @tparam string piece
-- @tparam number events
-- @tparam[opt] string key marks a piece that `unsent` gives back
function Outbox:push(piece, events, key)
    if self.gathered > 0 then
        seal(self)
    end
    local last = self.last + 1
    self.last = last
    self.pieces[last] = piece
    self.counts[last] = events
    self.keys[last] = key
    self.events = self.events + events
    self.bytes = self.bytes + #piece
    if self.is_waiting then
        self:wake()
    end
end

--- Takes what the next call may send.
-- @tparam table list is filled with strings, and with nothing else
-- @treturn number strings in the list, 0 if nothing waits
-- @treturn number events in them
function Outbox:take(list)
    if self.gathered > 0 and self.first > self.last then
        seal(self)
    end
    local count, bytes, events = 0, 0, 0
    local first, last, pieces, counts = self.first, self.last, self.pieces, self.counts
    while first <= last and bytes < PIECE_BYTES do
        local piece = pieces[first]
        count = count + 1
        list[count] = piece
        bytes = bytes + #piece
        events = events + counts[first]
        pieces[first], counts[first], self.keys[first] = nil, nil, nil
        first = first + 1
    end
    if first > last then
        first, self.last = 1, 0
    end
    self.first = first
    for i = count + 1, #list do
        list[i] = nil
    end
    self.events = self.events - events
    self.bytes = self.bytes - bytes
    return count, events
end

--- The marked pieces that were never taken.
-- @treturn table array of strings
function Outbox:unsent()
    local found = {}
    for i = self.first, self.last do
        if self.keys[i] then
            found[#found + 1] = self.pieces[i]
        end
    end
    return found
end

--- Ends the writer.
-- @tparam string when "sent" once everything has been sent, "now" before more is
function Outbox:finish(when)
    self.ending = when
    self:wake()
end

--- Sends until `finish`, or until sending fails. Yields.
-- @param sock connected socket
-- @tparam[opt] function after is called after each call that sent something
-- @treturn[1] boolean true
-- @treturn[2] nil
-- @treturn[2] string error of the socket
-- @treturn[2] number events in the call that failed
function Outbox:write(sock, after)
    local list = {}
    while self.ending ~= "now" do
        local count, events = self:take(list)
        if count > 0 then
            local sent, err = sock:send(count == 1 and list[1] or list)
            if not sent then
                return nil, err, events
            end
            if after then
                after()
            end
        elseif self.ending then
            break
        else
            self.is_waiting = true
            self.semaphore:wait(IDLE_SECONDS)
            self.is_waiting = false
        end
    end
    return true
end

return _M
