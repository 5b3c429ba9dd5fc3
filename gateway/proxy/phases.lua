--- What a request meets of Lua: the phases that plugins in Lua have.
--
-- Routing, the answers before and after the plugins, and the way to the upstream are C's
-- (ngx_http_sluice_route.c, ngx_http_sluice_access.c), and so are native plugins. A
-- request comes here only in the phases for which one of its plugins has Lua, and ngx.ctx is the
-- plugins' own.
-- @module gateway.proxy.phases

local abi = require("sluice.abi")
local base = require("resty.core.base")
local bit = require("bit")
local ffi = require("ffi")

local chain = require("gateway.plugin.chain")
local entities = require("gateway.proxy.entities")
local flags = require("gateway.image.flags")
local image = require("gateway.proxy.image")
local pdk = require("gateway.plugin.pdk")
local response = require("gateway.request.response")

local band = bit.band
local get_request = base.get_request
local ngx = ngx
local tonumber = tonumber

abi.declare([[
typedef struct {
    uint64_t status;
    size_t message_length;
    const char *message;
    size_t location_length;
    const char *location;
} sluice_refusal_t;
int sluice_ctx_lua(void *r);
int sluice_ctx_set_lua(void *r, int place);
int sluice_access_look(void *r);
int sluice_access_route(void *r, sluice_refusal_t *refusal);
int sluice_access_enter(void *r, sluice_refusal_t *refusal);
int sluice_access_leave(void *r, sluice_refusal_t *refusal);
]])
abi.check_flags("ROUTE", flags.route)
abi.check_flags("SERVICE", flags.service)
abi.check_flags("PLUGIN", flags.plugin)

local C = ffi.C

local OK, AGAIN = 0, -2
-- As in ngx_http_sluice_turn.c.
local TURN = 0.001
-- What sluice_access_look says.
local ROUTED, LATE = 0x01, 0x02

local _M = {}

-- Of the request in hand: nothing yields before it is read.
local refusal = ffi.new("sluice_refusal_t")

-- The ngx.ctx of requests with late phases. nginx forgets it when it goes to the page of an error;
-- the request's own context has its place here (module/gateway/request/ngx_http_sluice_ctx.h).
local kept, free = {}, {}

--- Starts without a configuration; the first request finds what is published.
-- @tparam table settings resolved settings
-- @tparam table plugins of gateway.plugin.registry
-- @tparam function vault of gateway.config.vault
-- @tparam function on_failure `(plugin, id, revision, message)`: a plugin cannot do with its
-- configuration
-- @phases init_worker
function _M.init_worker(settings, plugins, vault, on_failure)
    image.open(settings.image_dir)
    entities.init_worker(plugins, vault, on_failure)
    pdk.set_store(entities.store)
    chain.init_worker(plugins, entities.configuration)
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
    if refusal.message_length > 0 then
        return response.error(status, ffi.string(refusal.message, refusal.message_length))
    elseif refusal.location_length > 0 then
        local location = ffi.string(refusal.location, refusal.location_length)
        return response.exit(status, nil, { Location = location })
    end
    return ngx.exit(status)
end

--- Runs the plugins that come before routing, then routes what they have made of the request.
local function route(request)
    chain.rewrite()
    local rc = C.sluice_access_route(request, refusal)
    while rc == AGAIN do
        ngx.sleep(TURN)
        rc = C.sluice_access_route(request, refusal)
    end
    if rc ~= OK then
        return refuse()
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
    if C.sluice_access_leave(request, refusal) ~= OK then
        return refuse()
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
