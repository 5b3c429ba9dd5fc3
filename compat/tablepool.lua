--- lua-tablepool's pools of empty tables, by tag.
-- @module tablepool

local clear = require("table.clear")
local new = require("table.new")

local error = error
local setmetatable = setmetatable

-- Tables of a tag, and how often they are given back before the pool begins anew: tables that once
-- were large do not stay for ever.
local MAX_TABLES, MAX_RELEASES = 200, 20000

local _M = {}

-- Tag -> {tables, count, releases}.
local pools = {}

local function pool_of(tag)
    local pool = pools[tag]
    if not pool then
        pool = { tables = {}, count = 0, releases = 0 }
        pools[tag] = pool
    end
    return pool
end

--- Takes an empty table.
-- @tparam string tag
-- @tparam number array entries that a new one has room for
-- @tparam number fields likewise
-- @treturn table
-- @phases any
function _M.fetch(tag, array, fields)
    local pool = pool_of(tag)
    local count = pool.count
    if count == 0 then
        return new(array, fields)
    end
    local found = pool.tables[count]
    pool.tables[count] = nil
    pool.count = count - 1
    return found
end

--- Gives a table back; nobody may use it any more.
-- @tparam string tag
-- @tparam table object
-- @tparam[opt] boolean is_cleared keeps what is in it
-- @phases any
function _M.release(tag, object, is_cleared)
    if not object then
        error("object empty", 2)
    end
    local pool = pool_of(tag)
    pool.releases = pool.releases + 1
    if pool.releases >= MAX_RELEASES then
        pools[tag] = nil
        return
    elseif pool.count >= MAX_TABLES then
        return
    elseif not is_cleared then
        setmetatable(object, nil)
        clear(object)
    end
    pool.count = pool.count + 1
    pool.tables[pool.count] = object
end

return _M
