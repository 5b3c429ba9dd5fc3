--- Kinds of entities by any of their names: that of files, and the one of paths of the Admin API,
-- singular or plural, with dashes, underscores or neither.
-- @module gateway.config.kind_names

local entities = require("gateway.entities")
local nearest = require("sluice.nearest")

local ipairs = ipairs

local _M = {}

-- What all spellings of a name have in common.
local function key_of(name)
    return (name:lower():gsub("[-_ ]", ""):gsub("s$", ""))
end

-- Every kind, or those that can stand in an entity of one: arrays of keys and of their kinds.
local function names(parent)
    local keys, kinds = {}, {}
    for _, kind in ipairs(entities.kinds) do
        if not parent or entities.children(parent)[kind] then
            local all = { kind, entities.path_name(kind), entities.path_name(kind, true) }
            for _, name in ipairs(all) do
                keys[#keys + 1] = key_of(name)
                kinds[#keys] = kind
            end
        end
    end
    return keys, kinds
end

--- Reads the name of a kind.
-- @tparam string name in any spelling
-- @tparam[opt] string parent kind of the entity that it stands in, in a path
-- @treturn string|nil the kind
-- @treturn nil|string where it is none: the nearest kind, where one is near
function _M.read(name, parent)
    local key = key_of(name)
    local keys, kinds = names(parent)
    for i, each in ipairs(keys) do
        if each == key then
            return kinds[i]
        end
    end
    local near = nearest.find(key, keys)
    for i, each in ipairs(keys) do
        if each == near then
            return nil, kinds[i]
        end
    end
    return nil
end

return _M
