--- `kong.node`: the node that runs plugins.
-- @module gateway.kit.node

local configuration = require("gateway.kit.configuration").view
local heaps = require("gateway.kit.node.heaps")
local node_id = require("gateway.pdk.node_id")

local floor = math.floor
local ngx = ngx
local pairs = pairs
local pcall = pcall

local id, hostname

local _M = {}

--- The id of this node, the one that the Admin API shows: a UUID, the same after a restart.
-- @treturn string
-- @phases any within nginx
function _M.get_id()
    id = id or node_id.of(configuration.prefix)
    return id
end

--- The machine's name.
-- @treturn string "" where it has none
-- @phases any
function _M.get_hostname()
    hostname = hostname or node_id.hostname()
    return hostname
end

local function dictionaries(amount)
    local out = {}
    for name, dictionary in pairs(ngx.shared) do
        local capacity = dictionary:capacity()
        out[name] = {
            capacity = amount(capacity),
            allocated_slabs = amount(capacity - dictionary:free_space()),
        }
    end
    return out
end

--- What memory holds: `lua_shared_dicts`, by name, each with `capacity` and `allocated_slabs`;
-- `workers_lua_vms`, a list of `pid` and `http_allocated_gc`, of some seconds ago.
-- @tparam[opt="b"] string unit b, k, m, g: bytes as numbers, or texts such as "1.50 KiB"
-- @tparam[opt=2] number scale digits behind the point
-- @treturn table
-- @raise the unit is none, or the scale
-- @phases any within nginx
function _M.get_memory_stats(unit, scale)
    -- Needed by few, and it loads a library.
    local texts = require("kong.tools.string")
    unit, scale = unit or "b", scale or 2
    local is_right, err = pcall(texts.bytes_to_str, 0, unit, scale)
    if not is_right then
        error(err, 2)
    end
    local function amount(bytes)
        if unit:lower() == "b" then
            return floor(bytes)
        end
        return texts.bytes_to_str(bytes, unit, scale)
    end
    return { lua_shared_dicts = dictionaries(amount), workers_lua_vms = heaps.list(amount) }
end

return _M
