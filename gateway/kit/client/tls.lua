--- `kong.client.tls`: the client's side of a TLS connection.
-- @module gateway.kit.client.tls

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")
local phases = require("gateway.kit.phases")

local C = ffi.C
local check = phases.check
local error = error
local find = string.find
local tostring = tostring
local type = type

-- Without nginx (the command line, unit tests) there are no requests.
local get_request = ngx and ngx.get_phase and require("resty.core.base").get_request

abi.declare("core/image", "gateway/tls")

local OK, DECLINED = 0, -5

local HANDSHAKE = phases.set("certificate")

local _M = {}

local pem = ffi.new("sluice_core_text_t")

local function said(rc)
    if rc == OK then
        return true
    end
    return nil, rc == DECLINED and "the connection has no TLS" or "no memory"
end

local REQUEST_CERTIFICATE = phases.allow("client.tls.request_client_certificate", HANDSHAKE)

--- Asks the client for a certificate. Any is taken, also none: who needs one verifies it later.
-- @tparam[opt] cdata ca_certs `STACK_OF(X509) *`: whose subjects the client is told
-- @treturn true|nil
-- @treturn string|nil "the connection has no TLS", "no memory"
-- @phases certificate
function _M.request_client_certificate(ca_certs)
    check(REQUEST_CERTIFICATE)
    return said(C.sluice_tls_client_ask(get_request(), ca_certs))
end

local DISABLE_REUSE = phases.allow("client.tls.disable_session_reuse", HANDSHAKE)

--- Lets no later connection resume this one's session.
-- @treturn true|nil
-- @treturn string|nil "the connection has no TLS"
-- @phases certificate
function _M.disable_session_reuse()
    check(DISABLE_REUSE)
    return said(C.sluice_tls_client_forget(get_request()))
end

local GET_CHAIN = phases.allow(
    "client.tls.get_full_client_certificate_chain",
    phases.set("rewrite", "access", "balancer", "response", "header_filter", "body_filter", "log")
)

--- The certificates that the client has sent, its own first.
-- @treturn string|nil PEM; nil: it has sent none, or there is no TLS
-- @treturn string|nil "no memory"
-- @phases rewrite, access, response, header_filter, body_filter, log
function _M.get_full_client_certificate_chain()
    check(GET_CHAIN)
    local rc = C.sluice_tls_client_chain(get_request(), pem)
    if rc == OK then
        return ffi.string(pem.data, pem.length)
    end
    return nil, rc ~= DECLINED and "no memory" or nil
end

local SET_VERIFY = phases.allow(
    "client.tls.set_client_verify",
    phases.set("rewrite", "access", "balancer", "response")
)

--- Sets what log entries say of the client's certificate (`request.tls.client_verify`).
-- @tparam string verify "SUCCESS", "NONE", or "FAILED:" with a reason
-- @raise it is none of them; no memory
-- @phases rewrite, access, response
function _M.set_client_verify(verify)
    check(SET_VERIFY)
    if
        type(verify) ~= "string"
        or verify ~= "SUCCESS" and verify ~= "NONE" and not find(verify, "^FAILED:")
    then
        error(
            "unknown client verify value: "
                .. tostring(verify)
                .. ' accepted values are: "SUCCESS", "NONE" or "FAILED:<reason>"',
            2
        )
    elseif C.sluice_tls_client_verify(get_request(), verify, #verify) ~= OK then
        error("no memory", 2)
    end
end

local DISABLE_HTTP2 = phases.allow("client.tls.disable_http2_alpn", phases.set("client_hello"))

--- Keeps a handshake from choosing HTTP/2, in a phase that no plugin has, neither in Kong.
-- @raise always
-- @phases client_hello
function _M.disable_http2_alpn()
    check(DISABLE_HTTP2)
end

return _M
