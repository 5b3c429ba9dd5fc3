--- `kong.table`: tables of Lua.
-- @module gateway.kit.table

local clear = require("table.clear")
local new = require("table.new")

local pairs = pairs

local _M = {}

--- Makes a table with room for so many elements and fields.
-- @tparam[opt=0] number elements
-- @tparam[opt=0] number fields
-- @treturn table
-- @phases any
function _M.new(elements, fields)
    return new(elements or 0, fields or 0)
end

--- Empties a table, which keeps its room.
-- @tparam table tab
-- @phases any
function _M.clear(tab)
    return clear(tab)
end

--- Makes a table with what is in two; the second's goes before the first's. Tables in them are not
-- copied.
-- @tparam[opt] table first
-- @tparam[opt] table second
-- @treturn table
-- @phases any
function _M.merge(first, second)
    local merged = {}
    for key, value in pairs(first or {}) do
        merged[key] = value
    end
    for key, value in pairs(second or {}) do
        merged[key] = value
    end
    return merged
end

return _M
