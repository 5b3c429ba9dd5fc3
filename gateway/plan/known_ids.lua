--- The ids that a store has for entities of a file that give none: an entity of the same name, or
-- with the same other unique value, stays the same entity.
-- @module gateway.plan.known_ids

local entities = require("gateway.entities")

-- No entity has it, so that values alone find one.
local NO_ID = ""

local _M = {}

--- Makes what gateway.config looks ids up with.
-- @tparam table store of gateway.store.database
-- @treturn function `(kind, entity)` -> id or nil; blocks on the disk
function _M.finder(store)
    return function(kind, entity)
        local row = store:find(kind, entities.unique_values(kind, entity), NO_ID)
        return row and row.id
    end
end

return _M
