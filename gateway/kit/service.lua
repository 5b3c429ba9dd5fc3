--- `kong.service`: whom the request goes to, and how.
--
-- What is set holds for this request, in place of what its service says.
-- @module gateway.kit.service

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")
local phases = require("gateway.kit.phases")

local C = ffi.C
local check = phases.check
local error = error
local floor = math.floor
local type = type

-- Without nginx (the command line, unit tests) there are no requests.
local get_request = ngx and ngx.get_phase and require("resty.core.base").get_request

abi.declare("core/image", "gateway/request", "gateway/changed")

local OK, DECLINED = 0, -5
local MAX_PORT = 65535
local MAX_MS = 2147483646
local MAX_RETRIES = 32767

-- Kong has phases `balancer` and `preread`, too, which no plugin has.
local ACCESS = phases.set("access")
local ANY = phases.set("rewrite", "access", "balancer")

local SET_UPSTREAM = phases.allow("service.set_upstream", ACCESS)
local SET_TARGET = phases.allow("service.set_target", ANY)
local SET_RETRIES = phases.allow("service.set_retries", ACCESS)
local SET_TIMEOUTS = phases.allow("service.set_timeouts", ACCESS)
local SET_CERT_KEY = phases.allow("service.set_tls_cert_key", ANY)
local SET_VERIFY = phases.allow("service.set_tls_verify", ANY)
local SET_VERIFY_DEPTH = phases.allow("service.set_tls_verify_depth", ANY)
local SET_VERIFY_STORE = phases.allow("service.set_tls_verify_store", ANY)

local _M = {}

local function changed(rc)
    if rc ~= OK then
        error("no memory", 0)
    end
    return true
end

local function check_whole(name, value, least, most)
    if type(value) ~= "number" or floor(value) ~= value then
        error(name .. " must be an integer", 3)
    elseif value < least or value > most then
        local text = "%s must be an integer between %d and %d: given %s"
        error(text:format(name, least, most, tostring(value)), 3)
    end
end

--- Sends the request to an upstream. Does not yield.
-- @tparam string host its name
-- @treturn boolean|nil
-- @treturn string|nil "could not find an Upstream named '...'"
-- @raise "host must be a string"
-- @phases access
function _M.set_upstream(host)
    check(SET_UPSTREAM)
    if type(host) ~= "string" then
        error("host must be a string", 2)
    end
    local rc = C.sluice_changed_upstream(get_request(), host, #host)
    if rc == DECLINED then
        return nil, "could not find an Upstream named '" .. host .. "'"
    end
    return changed(rc)
end

--- Sends the request to a host, whose name is what its Host header says, and what TLS asks for. A
-- name that no service has is resolved behind the last plugin, which yields; where it cannot be,
-- the client gets a 503. The name of an upstream stands for the upstream. Does not yield.
-- @tparam string host name or address, IPv6 with brackets or without
-- @tparam number port 0 to 65535
-- @raise "host must be a string", "port must be an integer ..."
-- @phases rewrite, access
function _M.set_target(host, port)
    check(SET_TARGET)
    if type(host) ~= "string" then
        error("host must be a string", 2)
    end
    check_whole("port", port, 0, MAX_PORT)
    local request = get_request()
    changed(C.sluice_changed_host(request, host, #host))
    changed(C.sluice_changed_target(request, host, #host, port))
end

--- How often another target is tried. Does not yield.
-- @tparam number retries 0 to 32767; more than 999 are 999
-- @raise "retries must be an integer ..."
-- @phases access
function _M.set_retries(retries)
    check(SET_RETRIES)
    check_whole("retries", retries, 0, MAX_RETRIES)
    changed(C.sluice_changed_retries(get_request(), retries))
end

--- How long a try may take. Does not yield.
-- @tparam number connect_timeout milliseconds, 1 to 2147483646; so are all
-- @tparam number write_timeout between two writes
-- @tparam number read_timeout between two reads
-- @raise "... must be an integer ..."
-- @phases access
function _M.set_timeouts(connect_timeout, write_timeout, read_timeout)
    check(SET_TIMEOUTS)
    check_whole("connect_timeout", connect_timeout, 1, MAX_MS)
    check_whole("write_timeout", write_timeout, 1, MAX_MS)
    check_whole("read_timeout", read_timeout, 1, MAX_MS)
    local request = get_request()
    changed(C.sluice_changed_times(request, connect_timeout, write_timeout, read_timeout))
end

--- The certificate that the upstream is shown. Does not yield.
-- @tparam cdata chain of ngx.ssl.parse_pem_cert
-- @tparam cdata key of ngx.ssl.parse_pem_priv_key
-- @treturn boolean|nil
-- @treturn string|nil the chain has no certificate
-- @raise "chain must be a parsed cdata object", "key must be a parsed cdata object"
-- @phases rewrite, access
function _M.set_tls_cert_key(chain, key)
    check(SET_CERT_KEY)
    if type(chain) ~= "cdata" then
        error("chain must be a parsed cdata object", 2)
    elseif type(key) ~= "cdata" then
        error("key must be a parsed cdata object", 2)
    end
    local rc = C.sluice_changed_certificate(get_request(), chain, key)
    if rc == DECLINED then
        return nil, "the chain has no certificate"
    end
    return changed(rc)
end

--- Whether the upstream has to prove who it is. Does not yield.
-- @tparam boolean on
-- @treturn boolean true
-- @raise "argument must be a boolean"
-- @phases rewrite, access
function _M.set_tls_verify(on)
    check(SET_VERIFY)
    if type(on) ~= "boolean" then
        error("argument must be a boolean", 2)
    end
    return changed(C.sluice_changed_verify(get_request(), on and 1 or 0))
end

--- How many certificates may stand between the upstream's and one that is trusted. Does not yield.
-- @tparam number depth
-- @treturn boolean true
-- @raise "argument must be a number"
-- @phases rewrite, access
function _M.set_tls_verify_depth(depth)
    check(SET_VERIFY_DEPTH)
    if type(depth) ~= "number" then
        error("argument must be a number", 2)
    end
    return changed(C.sluice_changed_depth(get_request(), depth < 0 and 0 or depth))
end

--- Which certificates are trusted. Connections are kept for requests of the same store, so make one
-- when the plugin is loaded, and not for each request. Does not yield.
-- @tparam table store of resty.openssl.x509.store
-- @treturn boolean true
-- @raise "argument must be a resty.openssl.x509.store object"
-- @phases rewrite, access
function _M.set_tls_verify_store(store)
    check(SET_VERIFY_STORE)
    if type(store) ~= "table" or type(store.ctx) ~= "cdata" then
        error("argument must be a resty.openssl.x509.store object", 2)
    end
    return changed(C.sluice_changed_trusted(get_request(), store.ctx))
end

return _M
