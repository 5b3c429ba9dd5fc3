--- A table that does not grow: two generations, no list of who was used when.
--
-- What is asked for moves into the young generation. When that is full the old one goes, and the
-- young one is the old one. So the last `capacity` that were used are there for sure, and never
-- more than twice as many. A hit is one look-up, which LuaJIT compiles.
-- @module gateway.proxy.cache

local _M = {}
local methods = {}
local mt = { __index = methods }

--- Makes an empty one.
-- @tparam number capacity of a generation, in what `cost_of` counts
-- @tparam[opt] function cost_of `(value)`, a number; each value counts 1 without it
-- @treturn table
function _M.new(capacity, cost_of)
    return setmetatable({
        capacity = capacity,
        cost_of = cost_of,
        young = {},
        old = {},
        used = 0,
    }, mt)
end

--- Keeps a value, in place of the one that had the key.
-- @tparam string|number key
-- @tparam any value not nil
function methods:set(key, value)
    if self.used >= self.capacity then
        self.old, self.young, self.used = self.young, {}, 0
    end
    self.young[key] = value
    self.used = self.used + (self.cost_of and self.cost_of(value) or 1)
end

--- Finds a value.
-- @tparam string|number key
-- @treturn any nil where it is not there, or not any more
function methods:get(key)
    local value = self.young[key]
    if value == nil then
        value = self.old[key]
        if value ~= nil then
            self:set(key, value)
        end
    end
    return value
end

return _M
