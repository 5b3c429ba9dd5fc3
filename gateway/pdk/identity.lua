--- Who a request comes from, as C keeps it (module/gateway/plugin/ngx_http_sluice_identity.h).
-- @module gateway.pdk.identity

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")

-- Without nginx (the command line, unit tests) there are no requests.
local get_request = ngx and ngx.get_phase and require("resty.core.base").get_request

abi.declare("core/image", "gateway/plugin")

local C = ffi.C
local type = type

local OK = 0

local _M = {}

local identity = ffi.new("sluice_identity_t")

local function put(text, value)
    local given = type(value) == "string" and value or ""
    text.data, text.length = given, #given
end

--- Records who the request comes from.
-- @tparam table|nil consumer `id`, `custom_id`, `username`, as far as it has them
-- @tparam table|nil credential `id`; nil: the consumer is anonymous
-- @tparam boolean tells the upstream, by headers
-- @raise no memory
-- @phases rewrite, access
function _M.set(consumer, credential, tells)
    put(identity.consumer, consumer and consumer.id)
    put(identity.custom_id, consumer and consumer.custom_id)
    put(identity.username, consumer and consumer.username)
    put(identity.credential, credential and credential.id)
    identity.is_silent = tells and 0 or 1
    identity.has_credential = credential and 1 or 0
    if C.sluice_identity_set(get_request(), identity) ~= OK then
        error("no memory", 0)
    end
end

--- A number that is another one whenever somebody has said who a request of this worker comes from.
-- @treturn number negative where a plugin in Lua has said it, and -inf where that may not count any
-- more; 0: nobody has, or there is no request
-- @phases any but init
function _M.serial()
    local request = get_request()
    return request and C.sluice_identity_serial(request) or 0
end

--- Who the request comes from.
-- @treturn cdata|nil `sluice_identity_t`, until the next call; nil: nobody has said it
-- @phases rewrite, access, header_filter, body_filter, log
function _M.get()
    return C.sluice_identity(get_request(), identity) == OK and identity or nil
end

--- An id that `get` has found.
-- @tparam cdata text
-- @treturn string|nil
-- @phases any
function _M.text(text)
    return text.length > 0 and ffi.string(text.data, text.length) or nil
end

return _M
