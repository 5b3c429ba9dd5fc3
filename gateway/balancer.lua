--- nginx's balancer phase: names the peer of each try.
-- @module gateway.balancer

local ngx_balancer = require("ngx.balancer")

local variables = require("gateway.variables")

local get_last_failure = ngx_balancer.get_last_failure
local set_current_peer = ngx_balancer.set_current_peer
local set_more_tries = ngx_balancer.set_more_tries
local set_timeouts = ngx_balancer.set_timeouts
local recreate_request = ngx_balancer.recreate_request

local _M = {}

local function retry(ctx, upstream)
    local peer = upstream:pick_untried(variables.upstream_addr:get() or "")
    if upstream.host_varies and ctx.peer and peer.host ~= ctx.peer.host then
        -- The request for the next peer differs in its Host header.
        ctx.peer = peer
        variables.sluice_host:set(peer.host)
        local ok, err = recreate_request()
        if not ok then
            ngx.log(ngx.ERR, "failed to write the request anew for the next target: ", err)
        end
    end
    return peer
end

--- nginx's balancer phase: names the peer of this try. The access phase has
-- left a destination in ngx.ctx (gateway.proxy).
-- @phases balancer
function _M.balance()
    local ctx = ngx.ctx
    local destination = ctx.destination
    local peer
    if get_last_failure() then
        peer = retry(ctx, destination.upstream)
    else
        peer = ctx.peer or destination.upstream:pick()
        if destination.retries > 0 then
            set_more_tries(destination.retries)
        end
    end
    if destination.timeouts then
        set_timeouts(
            destination.connect_seconds,
            destination.send_seconds,
            destination.read_seconds
        )
    end
    local ok, err = set_current_peer(peer.ip, peer.port)
    if not ok then
        ngx.log(ngx.ERR, "failed to set the peer ", peer.name, ": ", err)
        return ngx.exit(500)
    end
end

return _M
