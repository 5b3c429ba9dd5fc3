--- nginx's balancer phase: names the next peer after a try that failed. The first is named without
-- it (gateway.proxy.peer).
-- @module gateway.proxy.balancer

local ngx_balancer = require("ngx.balancer")

local address = require("gateway.proxy.peer").address
local variables = require("gateway.request.variables")

local set_current_peer = ngx_balancer.set_current_peer
local recreate_request = ngx_balancer.recreate_request

local _M = {}

--- The request for the next peer differs in its Host header.
local function change_host(peer)
    variables.sluice_host:set(peer.host)
    local ok, err = recreate_request()
    if not ok then
        ngx.log(ngx.ERR, "failed to write the request anew for the next target: ", err)
    end
end

--- Names the peer of the next try. The access phase has left a destination in
-- ngx.ctx (gateway.proxy.phases).
-- @phases balancer
function _M.balance()
    local tried = variables.upstream_addr:get()
    if not tried or tried == "" then
        ngx.log(ngx.ERR, "a plugin has ended the access phase before the request had a peer")
        return ngx.exit(500)
    end
    local ctx = ngx.ctx
    local rotation = ctx.destination.rotation
    local peer = rotation:pick_untried(tried)
    -- So that its name is the one under which $upstream_addr will have it after this try.
    address(peer)
    if rotation.host_varies and peer.host ~= ctx.peer.host then
        ctx.peer = peer
        if not ctx.plan.preserve_host then
            change_host(peer)
        end
    end
    local ok, err = set_current_peer(peer.ip, peer.port)
    if not ok then
        ngx.log(ngx.ERR, "failed to set the peer ", peer.name, ": ", err)
        return ngx.exit(500)
    end
end

return _M
