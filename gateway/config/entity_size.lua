--- How much an entity may have.
-- @module gateway.config.entity_size

local entities = require("gateway.entities")

local _M = {}

--- Values of an entity without those nested in it: some lists of what an image holds at most,
-- 65,535. To look at one takes no pauses.
_M.MAX_VALUES = 200000

-- What is left of so many values behind one; below 0: it has more, and is not looked through.
local function take_values(value, left)
    if type(value) == "table" then
        for _, item in pairs(value) do
            left = take_values(item, left - 1)
            if left < 0 then
                break
            end
        end
    end
    return left
end

--- Whether an entity has more values than one may have.
-- @tparam string kind
-- @tparam table raw as the file has it
-- @treturn boolean
function _M.is_too_large(kind, raw)
    local children, links = entities.children(kind), entities.get(kind).links or {}
    local left = _M.MAX_VALUES
    for key, value in pairs(raw) do
        left = left - 1
        if not children[key] and not links[key] then
            left = take_values(value, left)
        end
        if left < 0 then
            return true
        end
    end
    return false
end

return _M
