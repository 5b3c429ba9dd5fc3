--- `ngx.ctx.balancer_data`: whom the upstream's tries have gone to, as plugins of Kong read it.
-- @module gateway.kit.ngx.balancer_data

local abi = require("sluice.ffi.abi")
local address = require("sluice.address")
local ffi = require("ffi")
local pdk = require("gateway.pdk")

local C = ffi.C
local ngx = ngx

-- Without nginx (the command line, unit tests) there are no requests.
local get_request = ngx and ngx.get_phase and require("resty.core.base").get_request

abi.declare("core/image", "gateway/request")

local _M = {}

local text = ffi.new("sluice_core_text_t")

local function tries()
    local list, request = {}, get_request()
    local status = C.sluice_tries_peer(request, 0, text)
    while status >= 0 do
        local ip, port = address.split(ffi.string(text.data, text.length))
        local last = list[#list]
        if last then
            last.state = "failed"
        end
        list[#list + 1] = { ip = ip, port = tonumber(port), code = status > 0 and status or nil }
        status = C.sluice_tries_peer(request, #list, text)
    end
    if #list > 0 then
        -- Of the last one Kong says nothing but where it went.
        list[#list].code = nil
    end
    return list
end

local function type_of(host)
    if not address.is_ip(address.split(host) or host) then
        return "name"
    end
    return host:find(":", 1, true) and "ipv6" or "ipv4"
end

--- The table. Another one at each call: what is written into it changes nothing.
-- @treturn table|nil nil: the request has no service
-- @phases access, header_filter, body_filter, log
function _M.get()
    local service = pdk.service()
    if not service then
        return nil
    end
    local list = tries()
    local last = list[#list] or {}
    return {
        scheme = service.protocol,
        type = type_of(service.host),
        host = service.host,
        hostname = service.host,
        ip = last.ip,
        port = last.port or service.port,
        tries = list,
        try_count = #list,
        retries = service.retries,
    }
end

return _M
