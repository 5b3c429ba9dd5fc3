--- A list of entries, the oldest first. What is added at once stands in one text, an entry a line;
-- that is cut where entries are taken, and nowhere else.
--
-- Needs nothing of nginx; costs do not grow with what is in the list.
-- @module sluice.lines

local find = string.find
local setmetatable = setmetatable
local sub = string.sub

local _M = {}

local List = {}
List.__index = List

--- Makes an empty one.
-- @treturn table `count`: its entries
-- @phases any
function _M.new()
    return setmetatable({
        count = 0,
        texts = {},
        counts = {}, -- entries of each text
        first = 1,
        last = 0,
        from = 1, -- in the first text: what stands before is taken
    }, List)
end

--- Adds entries behind the others.
-- @tparam string text
-- @tparam number count entries that it has; of several each ends with a line feed, and has no other
-- @phases any
function List:push(text, count)
    self.last = self.last + 1
    self.texts[self.last], self.counts[self.last] = text, count
    self.count = self.count + count
end

--- Takes the oldest text, or its first entries. Throws where there is none.
-- @tparam number most entries, at least 1
-- @treturn string
-- @treturn number entries that it has
-- @phases any
function List:take(most)
    local first, from = self.first, self.from
    local text, count = self.texts[first], self.counts[first]
    if count > most then
        local to = from - 1
        for _ = 1, most do
            to = find(text, "\n", to + 1, true)
        end
        self.counts[first], self.from = count - most, to + 1
        self.count = self.count - most
        return sub(text, from, to), most
    end
    self.texts[first], self.counts[first] = nil, nil
    self.first, self.from = first + 1, 1
    if first == self.last then
        self.first, self.last = 1, 0
    end
    self.count = self.count - count
    return from == 1 and text or sub(text, from), count
end

--- Puts a text back that was taken, before all others.
-- @phases any
function List:put_back(text, count)
    local first = self.first
    if self.from > 1 then
        self.texts[first], self.from = sub(self.texts[first], self.from), 1
    end
    self.first = first - 1
    self.texts[self.first], self.counts[self.first] = text, count
    self.count = self.count + count
end

return _M
