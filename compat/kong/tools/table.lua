--- Kong's functions for tables.
-- @module kong.tools.table

local clone = require("table.clone")
local is_array_fast = require("table.isarray")
local tablex = require("pl.tablex")

local getmetatable = getmetatable
local ipairs = ipairs
local next = next
local ngx = ngx
local pairs = pairs
local select = select
local setmetatable = setmetatable
local tostring = tostring
local type = type
local unpack = unpack

local _M = {
    --- An empty table that cannot be written to.
    EMPTY = tablex.readonly({}),
}

--- Arguments as a table, `n` of them.
-- @phases any
function _M.pack(...)
    return { n = select("#", ...), ... }
end

--- The entries of a table, `n` of them if it says so.
-- @phases any
function _M.unpack(t, from, to)
    return unpack(t, from or 1, to or t.n or #t)
end

--- A new table of two, the second's entries before the first's.
-- @phases any
function _M.table_merge(first, second)
    local merged = {}
    for _, t in pairs({ first or nil, second or nil }) do
        for key, value in pairs(t) do
            merged[key] = value
        end
    end
    return merged
end

--- The same, but null takes the place of nothing.
-- @phases any
function _M.null_aware_table_merge(first, second)
    local merged = {}
    for key, value in pairs(first or {}) do
        merged[key] = value
    end
    for key, value in pairs(second or {}) do
        if merged[key] == nil or value ~= ngx.null then
            merged[key] = value
        end
    end
    return merged
end

--- Whether a value is in a table.
-- @phases any
function _M.table_contains(t, wanted)
    for _, value in pairs(t or {}) do
        if value == wanted then
            return true
        end
    end
    return false
end

local function is_strict(t)
    local most, count = 0, 0
    for key in pairs(t) do
        if type(key) ~= "number" or key < 1 or key % 1 ~= 0 then
            return false
        end
        most, count = key > most and key or most, count + 1
    end
    return count == most
end

--- Whether a table is an array whose indices may be texts.
-- @phases any
function _M.is_lapis_array(t)
    if type(t) ~= "table" then
        return false
    end
    local count = 0
    for _ in pairs(t) do
        count = count + 1
        if t[count] == nil and t[tostring(count)] == nil then
            return false
        end
    end
    return true
end

--- Whether a table is an array.
-- @tparam any t
-- @tparam[opt="strict"] string mode "strict": without holes; "fast": LuaJIT's; "lapis": indices may
--   be texts
-- @treturn boolean
-- @phases any
function _M.is_array(t, mode)
    if type(t) ~= "table" then
        return false
    elseif mode == "lapis" then
        return _M.is_lapis_array(t)
    elseif mode == "fast" then
        return is_array_fast(t)
    end
    return is_strict(t)
end

--- A copy of all that is in a table, keys and metatables included; it must not contain itself.
-- @tparam any value
-- @tparam[opt=true] boolean copies_metatables
-- @phases any
function _M.deep_copy(value, copies_metatables)
    if type(value) ~= "table" then
        return value
    end
    local copy = {}
    for key, inner in next, value, nil do
        copy[_M.deep_copy(key)] = _M.deep_copy(inner, copies_metatables)
    end
    if copies_metatables ~= false then
        setmetatable(copy, _M.deep_copy(getmetatable(value)))
    end
    return copy
end

--- A copy of a table alone.
-- @phases any
function _M.shallow_copy(value)
    return type(value) == "table" and clone(value) or value
end

--- A new table of two; tables in both are merged.
-- @phases any
function _M.deep_merge(first, second)
    local merged = _M.deep_copy(first)
    for key, value in pairs(second) do
        local is_both = type(value) == "table" and type(merged[key]) == "table"
        merged[key] = is_both and _M.deep_merge(merged[key], value) or _M.deep_copy(value)
    end
    return merged
end

--- A copy of all that is in a table, which may contain itself.
-- @tparam any value
-- @tparam[opt] boolean drops_metatables else the copies have those of the originals
-- @tparam[opt] boolean copies_keys
-- @tparam[opt] table known what is copied already
-- @phases any
function _M.cycle_aware_deep_copy(value, drops_metatables, copies_keys, known)
    if type(value) ~= "table" then
        return value
    end
    known = known or {}
    if known[value] then
        return known[value]
    end
    local copy = {}
    known[value] = copy
    for key, inner in next, value, nil do
        if copies_keys then
            key = _M.cycle_aware_deep_copy(key, drops_metatables, copies_keys, known)
        end
        copy[key] = _M.cycle_aware_deep_copy(inner, drops_metatables, copies_keys, known)
    end
    return drops_metatables and copy or setmetatable(copy, getmetatable(value))
end

--- A new table of two that may contain themselves; tables in both are merged.
-- @phases any
function _M.cycle_aware_deep_merge(first, second, drops_metatables, copies_keys, known)
    known = known or {}
    local merged = _M.cycle_aware_deep_copy(first, drops_metatables, copies_keys, known)
    for key, value in pairs(second) do
        if type(value) == "table" and type(merged[key]) == "table" then
            local inner = merged[key]
            merged[key] =
                _M.cycle_aware_deep_merge(inner, value, drops_metatables, copies_keys, known)
        else
            merged[key] = _M.cycle_aware_deep_copy(value, drops_metatables, copies_keys, known)
        end
    end
    return merged
end

--- A new list of lists.
-- @phases any
function _M.concat(...)
    local all = {}
    for i = 1, select("#", ...) do
        for _, value in ipairs((select(i, ...))) do
            all[#all + 1] = value
        end
    end
    return all
end

-- Marks lists of errors.
local list_mt = {}

--- Adds an error under a key: several of one become a list.
-- @tparam table|nil errors
-- @tparam any key
-- @tparam any value
-- @treturn table
-- @phases any
function _M.add_error(errors, key, value)
    errors = errors or {}
    local known = errors[key]
    if not known then
        errors[key] = value
    elseif type(known) == "table" and getmetatable(known) == list_mt then
        known[#known + 1] = value
    else
        errors[key] = setmetatable({ known, value }, list_mt)
    end
    return errors
end

--- What a path of keys leads to.
-- @tparam table t
-- @tparam {any,...} path
-- @treturn any|nil
-- @phases any
function _M.table_path(t, path)
    local found = t
    for _, key in ipairs(path) do
        found = found[key]
        if found == nil then
            return nil
        end
    end
    return found
end

return _M
