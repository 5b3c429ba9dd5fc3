--- The targets of all upstreams and their addresses.
-- @module gateway.metrics.targets

local address = require("sluice.address")
local entity_text = require("gateway.store.entity_text")

-- Entities that are read at a time.
local PAGE = 1000

local _M = {}

-- All of a kind, each given to `take`. Yields.
local function each(live, kind, take)
    local offset
    repeat
        local rows, next_offset = live.read("list", kind, { size = PAGE, offset = offset })
        for _, row in ipairs(rows or {}) do
            take(entity_text.decode(row.text))
        end
        offset = rows and next_offset
    until not offset
end

local function addresses_of(live, target)
    local host, port = address.split(target)
    local literal = address.literal(host)
    if literal then
        return { target }
    end
    local row = live.read("named", "names", host)
    local name = row and entity_text.decode(row.text) or {}
    local out = {}
    for i, one in ipairs(name.addresses or {}) do
        out[i] = ("%s:%s"):format(one, port)
    end
    return out
end

--- Calls a function with each target. Yields.
-- @tparam table live what `gateway.admin` is given
-- @tparam function take `(upstream, target, addresses)`: names, and texts `ip:port`, none where the
-- host has none
-- @phases content
function _M.each(live, take)
    local names = {}
    each(live, "upstreams", function(upstream)
        names[upstream.id] = upstream.name
    end)
    each(live, "targets", function(target)
        local upstream = names[target.upstream.id]
        if upstream then
            take(upstream, target.target, addresses_of(live, target.target))
        end
    end)
end

return _M
