--- Who a request comes from, as C keeps it (module/gateway/plugin/ngx_http_sluice_identity.h).
-- @module gateway.request.identity

local abi = require("sluice.abi")
local ffi = require("ffi")

-- Without nginx (the command line, unit tests) there are no requests.
local get_request = ngx and require("resty.core.base").get_request

abi.declare([[
typedef struct {
    size_t length;
    const char *data;
} sluice_identity_text_t;
typedef struct {
    sluice_identity_text_t consumer;
    sluice_identity_text_t credential;
    sluice_identity_text_t custom_id;
    sluice_identity_text_t username;
    uint32_t consumer_slot;
    uint32_t consumer_generation;
    uint32_t credential_slot;
    uint32_t credential_generation;
    uint32_t is_own;
    uint32_t zero;
} sluice_identity_t;
int sluice_authenticate(void *r, const sluice_identity_t *identity);
int sluice_identity(void *r, sluice_identity_t *identity);
]])

local C = ffi.C
local type = type

local OK = 0

local _M = {}

local identity = ffi.new("sluice_identity_t")

local function put(text, value)
    local given = type(value) == "string" and value or ""
    text.data, text.length = given, #given
end

--- Records who the request comes from, and tells the upstream.
-- @tparam table|nil consumer `id`, `custom_id`, `username`, as far as it has them
-- @tparam table|nil credential `id`; nil: the consumer is anonymous
-- @raise no memory
-- @phases rewrite, access
function _M.set(consumer, credential)
    put(identity.consumer, consumer and consumer.id)
    put(identity.custom_id, consumer and consumer.custom_id)
    put(identity.username, consumer and consumer.username)
    put(identity.credential, credential and credential.id)
    if C.sluice_authenticate(get_request(), identity) ~= OK then
        error("no memory", 0)
    end
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
