--- What Kong keeps of a request in `ngx.ctx`, for plugins that read it there.
--
-- Nothing is put there: `ngx.ctx` gets a metatable when it is first asked for, and a field is
-- found out when somebody reads it. A field that a plugin has written is the plugin's; to write
-- `authenticated_consumer` or `authenticated_credential` is what `kong.client.authenticate` does.
-- `pairs` shows only what plugins have written.
-- @module gateway.kit.ngx.ctx

local balancer_data = require("gateway.kit.ngx.balancer_data")
local captures = require("gateway.kit.request.captures")
local ffi = require("ffi")
local pdk = require("gateway.pdk")
local times = require("gateway.kit.ngx.times")

local C = ffi.C
local getmetatable = getmetatable
local rawset = rawset
local setmetatable = setmetatable

local FIELDS = {
    authenticated_consumer = pdk.consumer,
    authenticated_credential = pdk.credential,
    balancer_data = balancer_data.get,
    route = pdk.route,
    service = pdk.service,
    router_matches = function()
        return pdk.route() and { uri_captures = captures.get() }
    end,
}
for name, find in pairs(times) do
    FIELDS[name] = find
end

local WRITERS = {
    authenticated_consumer = function(value)
        pdk.name_client(value, pdk.credential())
    end,
    authenticated_credential = function(value)
        pdk.name_client(pdk.consumer(), value)
    end,
}

local mt = {
    __index = function(_, name)
        local find = FIELDS[name]
        return find and find()
    end,
    __newindex = function(ctx, name, value)
        local write = WRITERS[name]
        if write then
            return write(value)
        end
        rawset(ctx, name, value)
    end,
}

local _M = {}

--- Lets `ngx.ctx` have these fields, in this Lua state and for good. A second call changes nothing.
-- @phases init
function _M.install()
    local base = require("resty.core.base")
    local misc = require("resty.core.misc")
    local get_ctx = require("resty.core.ctx").get_ctx_table
    local tables = debug.getregistry().ngx_lua_ctx_tables
    local get_request = base.get_request
    local in_ssl, ssl_ref = ffi.new("int[1]"), ffi.new("int[1]")

    local function make()
        local ctx = get_ctx()
        local own = getmetatable(ctx)
        if own == nil then
            return setmetatable(ctx, mt)
        end
        -- That of the connection's handshake, which has a metatable itself.
        own.__newindex = mt.__newindex
        return ctx
    end

    misc.register_ngx_magic_key_getter("ctx", function()
        local request = get_request()
        if request then
            local ref = C.ngx_http_lua_ffi_get_ctx_ref(request, in_ssl, ssl_ref)
            if ref >= 0 then
                return tables[ref]
            end
        end
        return make()
    end)
end

return _M
