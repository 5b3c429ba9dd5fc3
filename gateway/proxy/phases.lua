--- What a request meets of Lua: the phases that plugins in Lua have.
--
-- Routing, the answers before and after the plugins, and the way to the upstream are C's
-- (ngx_http_sluice_route.c, ngx_http_sluice_access.c), and so are native plugins. A
-- request comes here only in the phases for which one of its plugins has Lua, and ngx.ctx is the
-- plugins' own.
-- @module gateway.proxy.phases

local abi = require("sluice.ffi.abi")
local base = require("resty.core.base")
local bit = require("bit")
local ffi = require("ffi")

local chain = require("gateway.plugin.chain")
local dns = require("gateway.pdk.dns")
local entities = require("gateway.proxy.entities")
local response = require("gateway.pdk.response")

local band = bit.band
local get_request = base.get_request
local ngx = ngx
local tonumber = tonumber

abi.declare("core/image", "gateway/image", "gateway/request", "gateway/response", "gateway/proxy")

local C = ffi.C

local OK, AGAIN = 0, -2
-- What sluice_access_look says.
local ROUTED, LATE = 0x01, 0x02

local _M = {}

-- Of the request in hand: nothing yields before it is read.
local refusal = ffi.new("ngx_http_sluice_refusal_t")

-- The ngx.ctx of requests with late phases. nginx forgets it when it goes to the page of an error;
-- the request's own context has its place here (module/gateway/request/ngx_http_sluice_ctx.h).
local kept, free = {}, {}

--- Starts without a configuration; the first request finds what is published.
-- @tparam table plugins of gateway.plugin.registry
-- @tparam function thrown `(name, phase, message)`: a plugin has thrown
-- @phases init_worker
function _M.init_worker(plugins, thrown)
    chain.init_worker(plugins, entities.configuration, entities.report_native, thrown)
end

-- ngx.ctx over redirects --------------------------------------------------------------------------

local function keep(request)
    local place = C.sluice_ctx_lua(request)
    if place == 0 then
        place = table.remove(free) or #kept + 1
        if C.sluice_ctx_set_lua(request, place) ~= OK then
            error("no memory", 0)
        end
    end
    kept[place] = ngx.ctx
end

local function restore(request)
    local place = C.sluice_ctx_lua(request)
    if place ~= 0 and ngx.ctx ~= kept[place] then
        ngx.ctx = kept[place]
    end
end

local function release(request)
    local place = C.sluice_ctx_lua(request)
    if place ~= 0 then
        kept[place] = false
        free[#free + 1] = place
        C.sluice_ctx_set_lua(request, 0)
    end
end

-- The access phase --------------------------------------------------------------------------------

--- Ends the request as C has said; without words and place by nginx's own page.
local function refuse()
    local status = tonumber(refusal.status)
    if refusal.message.len > 0 then
        return response.error(status, ffi.string(refusal.message.data, refusal.message.len))
    elseif refusal.location.len > 0 then
        local location = ffi.string(refusal.location.data, refusal.location.len)
        return response.exit(status, nil, { Location = location })
    end
    return ngx.exit(status)
end

--- Runs the plugins that come before routing, then routes what they have made of the request.
local function route(request)
    chain.rewrite()
    local rc = C.sluice_access_route(request, refusal)
    while rc == AGAIN do
        ngx.sleep(C.sluice_access_wait(request) / 1000)
        rc = C.sluice_access_route(request, refusal)
    end
    if rc ~= OK then
        return refuse()
    end
end

-- Of the call in hand.
local wanted = ffi.new("sluice_core_text_t")

--- Says the addresses of the host that a plugin sends the request to. Yields.
local function resolve(request)
    C.sluice_changed_wanted(request, wanted)
    local host = ffi.string(wanted.data, wanted.length)
    local addresses, err = dns.resolve(host)
    if not addresses then
        ngx.log(ngx.ERR, "a plugin's target '", host, "' has no address: ", err)
        return response.error(503, "name resolution failed")
    end
    for _, address in ipairs(addresses) do
        if C.sluice_changed_address(request, address, #address) ~= OK then
            error("no memory", 0)
        end
    end
end

--- The access phase of a request that has a plugin in Lua there. May yield where one does.
-- @phases access
function _M.access()
    local request = get_request()
    local bits = C.sluice_access_look(request)
    if band(bits, LATE) ~= 0 then
        keep(request)
    end
    if band(bits, ROUTED) == 0 then
        route(request)
        -- By what is live now: a plugin may have come or gone while one before routing waited.
        if band(C.sluice_access_look(request), LATE) ~= 0 then
            keep(request)
        else
            release(request)
        end
    end
    if C.sluice_access_enter(request, refusal) ~= OK then
        return refuse()
    end
    chain.access()
    local rc = C.sluice_access_leave(request, refusal)
    if rc == AGAIN then
        resolve(request)
        rc = C.sluice_access_leave(request, refusal)
    end
    if rc ~= OK then
        return refuse()
    end
end

--- The content phase of a request whose whole response is held back
-- (module/gateway/response/ngx_http_sluice_buffered.h). May yield where a plugin does.
-- @phases content
function _M.response()
    local request = get_request()
    restore(request)
    local ok, err = pcall(chain.response)
    if ok then
        return C.sluice_buffered_release(request)
    end
    ngx.log(ngx.ERR, err)
    if not ngx.headers_sent then
        C.sluice_buffered_drop(request, 1)
        return response.error(500)
    end
end

-- The late phases ---------------------------------------------------------------------------------

--- @phases header_filter
function _M.header_filter()
    restore(get_request())
    return chain.late("header_filter")
end

--- @phases body_filter
function _M.body_filter()
    return chain.late("body_filter")
end

--- @phases log
function _M.log()
    local request = get_request()
    restore(request)
    chain.late("log")
    release(request)
end

return _M
