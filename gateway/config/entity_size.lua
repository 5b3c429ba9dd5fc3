--- How much an entity may have.
-- @module gateway.config.entity_size

local entities = require("gateway.entities")

local _M = {}

--- Values of an entity without those nested in it: some lists of what an image holds at most,
-- 65,535. To look at one takes no pauses.
_M.MAX_VALUES = 200000

-- An entity of fewer values and bytes is under each limit of images: lists of 65,535 items, texts
-- of 1 MiB.
local LARGE = 2 ^ 15

-- What is left of so many values behind one; below 0: it has more, and is not looked through. And
-- the bytes of its texts, added to those before.
local function take_values(value, left, bytes)
    if type(value) == "string" then
        bytes = bytes + #value
    elseif type(value) == "table" then
        for key, item in pairs(value) do
            bytes = bytes + (type(key) == "string" and #key or 0)
            left, bytes = take_values(item, left - 1, bytes)
            if left < 0 then
                break
            end
        end
    end
    return left, bytes
end

--- Looks at how much an entity has.
-- @tparam string kind
-- @tparam table raw as the file has it
-- @treturn boolean whether it has more values than one may have
-- @treturn boolean whether it has so much that an image may not have it (gateway.image.limits)
function _M.look(kind, raw)
    local children, links = entities.children(kind), entities.get(kind).links or {}
    local left, bytes = _M.MAX_VALUES, 0
    for key, value in pairs(raw) do
        left = left - 1
        if not children[key] and not links[key] then
            left, bytes = take_values(value, left, bytes)
        end
        if left < 0 then
            return true, true
        end
    end
    return false, bytes + _M.MAX_VALUES - left >= LARGE
end

return _M
