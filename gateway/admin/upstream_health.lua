--- `/upstreams/{upstreams}/health`: the targets of an upstream. This version checks none, so that a
-- target is known by whether its name has addresses.
-- @module gateway.admin.upstream_health

local address = require("sluice.address")
local entity_text = require("gateway.store.entity_text")
local node_id = require("gateway.pdk.node_id")
local paging = require("gateway.admin.paging")
local response = require("gateway.admin.response")
local views = require("gateway.admin.views")

local _M = {}

local function health_of(live, target)
    local host = address.split(target)
    if address.literal(host) then
        return "HEALTHCHECKS_OFF"
    end
    local row = live.read("named", "names", host)
    local name = row and entity_text.decode(row.text)
    return name and name.failure and "DNS_ERROR" or "HEALTHCHECKS_OFF"
end

--- Answers with a page of the targets, with `health`. Yields.
-- @tparam table live what `gateway.admin` is given
-- @tparam table args arguments of the query
-- @tparam {string,...} segments of the path, unescaped
-- @phases content
function _M.get(live, args, segments)
    local row, err = live.read("get", "upstreams", segments[2])
    if not row and err.err ~= "not found" then
        return paging.unreadable(err)
    elseif not row then
        return response.not_found()
    end
    local path = ("/upstreams/%s/health"):format(row.id)
    return views.list(live, "targets", args, path, { upstream = row.id }, {
        node_id = node_id.of(live.settings.prefix),
        show = function(target)
            target.health = health_of(live, target.target)
            return target
        end,
    })
end

return _M
