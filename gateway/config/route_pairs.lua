--- How many entries of the router routes make: the pairs of a host and a path of each.
--
-- A long list of each in one route is the product of both, so what comes as one, a file or a
-- request, may make 10,000, or a quarter as many as it has bytes.
-- @module gateway.config.route_pairs

local format = string.format
local max = math.max

local LEAST_PAIRS = 10000
local BYTES_A_PAIR = 4

local _M = {}
local methods = {}
local mt = { __index = methods }

--- How many what comes as one may make.
-- @tparam number size its bytes
-- @treturn number
function _M.most(size)
    return max(LEAST_PAIRS, size / BYTES_A_PAIR)
end

--- Begins to count.
-- @tparam number size bytes of what the routes came in
-- @treturn table with `count`
function _M.new(size)
    return setmetatable({ count = 0, most = _M.most(size) }, mt)
end

--- How many a route makes.
-- @tparam table route checked by its schema
-- @treturn number
function _M.of(route)
    return max(1, #(route.hosts or {})) * max(1, #(route.paths or {}))
end

--- Counts a route.
-- @tparam table route checked by its schema
-- @treturn boolean|nil true
-- @treturn nil|string why that is too many
function methods:add(route)
    local here = _M.of(route)
    self.count = self.count + here
    if self.count <= self.most then
        return true
    end
    local message = "too many combinations of hosts and paths: %d, with the routes before it %d; "
        .. "at most %d in a file of this size"
    return nil, format(message, here, self.count, self.most)
end

return _M
