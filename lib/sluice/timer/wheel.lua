--- A hierarchical timing wheel: module/wheel.h in Lua, for where the module is not loaded.
--
-- A node is any table with a whole number `expires`. It waits in the level of the highest group of
-- 6 bits in which its time differs from the wheel's; nodes of equal time come out in the order in
-- which they went in.
-- @module sluice.timer.wheel

local floor = math.floor

local _M = {}

local mt = { __index = _M }

local SLOTS = 64
local LEVELS = 8

local function queue()
    local head = {}
    head.next, head.prev = head, head
    return head
end

local function append(head, node)
    local last = head.prev
    node.next, node.prev = head, last
    last.next = node
    head.prev = node
end

local function unlink(node)
    local following, before = node.next, node.prev
    before.next = following
    following.prev = before
    node.next, node.prev = nil, nil
end

--- @tparam number now whole
-- @treturn table
function _M.new(now)
    local self = { now = now, ready = queue(), levels = {} }
    for level = 0, LEVELS - 1 do
        self.levels[level] = { span = SLOTS ^ level, slots = {}, count = 0 }
    end
    return setmetatable(self, mt)
end

--- Makes a queue like the wheel's ready one.
_M.queue = queue

--- The first of a queue, out of it; nil if there is none.
function _M.shift(head)
    local node = head.next
    if node == head then
        return nil
    end
    unlink(node)
    return node
end

--- Puts a node where it belongs; into the ready queue if its time has come.
function _M:insert(node)
    local expires, now = node.expires, self.now
    if expires <= now then
        append(self.ready, node)
        return
    end
    for level = 0, LEVELS - 1 do
        local above = SLOTS ^ (level + 1)
        if level == LEVELS - 1 or floor(expires / above) == floor(now / above) then
            local at = self.levels[level]
            local number = floor(expires / at.span)
            local slot = at.slots[number]
            if not slot then
                slot = queue()
                slot.number = number
                at.slots[number] = slot
                at.count = at.count + 1
            end
            if not slot.earliest or expires < slot.earliest then
                slot.earliest = expires
            end
            append(slot, node)
            return
        end
    end
end

--- Takes a node out of the wheel or of a queue.
function _M:remove(node)
    local head = node.next
    unlink(node)
    if head.next ~= head or not head.number then
        return
    end
    for level = 0, LEVELS - 1 do
        local at = self.levels[level]
        if at.slots[head.number] == head then
            at.slots[head.number] = nil
            at.count = at.count - 1
            return
        end
    end
end

-- The earliest slot, with its level: the lowest level that has any has it.
local function first(self)
    for level = 0, LEVELS - 1 do
        local at = self.levels[level]
        if at.count > 0 then
            local number = floor(self.now / at.span) + 1
            while not at.slots[number] do
                number = number + 1
            end
            return at.slots[number], at
        end
    end
    return nil
end

--- Moves what has expired to the ready queue, in order.
-- @tparam number now whole
function _M:advance(now)
    while now > self.now do
        local slot, at = first(self)
        if not slot or slot.number * at.span > now then
            self.now = now
            return
        end
        self.now = slot.number * at.span
        at.slots[slot.number] = nil
        at.count = at.count - 1
        local node = _M.shift(slot)
        while node do
            self:insert(node)
            node = _M.shift(slot)
        end
    end
end

--- When to advance next; nil: never.
function _M:next()
    if self.ready.next ~= self.ready then
        return self.now
    end
    local slot = first(self)
    return slot and slot.earliest
end

return _M
