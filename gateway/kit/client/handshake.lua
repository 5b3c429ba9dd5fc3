--- The client of a handshake. There is no request yet whose variables nginx could be asked for.
-- @module gateway.kit.client.handshake

local abi = require("sluice.ffi.abi")
local configuration = require("gateway.kit.configuration").view
local ffi = require("ffi")
local phases = require("gateway.kit.phases")
local trusted = require("gateway.kit.trusted")

abi.declare("core/image", "gateway/tls")

local C = ffi.C

-- Without nginx (the command line, unit tests) there are no requests.
local get_request = ngx and ngx.get_phase and require("resty.core.base").get_request

local OK = 0
local CERTIFICATE = phases.BITS.certificate

local _M = {}

-- Of the call in hand.
local peer = ffi.new("sluice_tls_peer_t")

local function look()
    if C.sluice_tls_client_peer(get_request(), peer) ~= OK then
        error("the connection is not known", 0)
    end
end

local function text(of)
    return ffi.string(of.data, of.length)
end

local function port(number)
    return number > 0 and number or nil
end

-- A header of a request is still to come, but the PROXY protocol has spoken.
local function is_claimed()
    return peer.claimed.length > 0
        and configuration.real_ip_header == "proxy_protocol"
        and trusted.has(text(peer.address))
end

--- Whether one runs.
-- @treturn boolean
-- @phases any
function _M.runs()
    return phases.bit() == CERTIFICATE
end

--- The address of the connection's peer.
-- @treturn string
-- @phases certificate
function _M.ip()
    look()
    return text(peer.address)
end

--- The peer's port.
-- @treturn number|nil nil: it has none
-- @phases certificate
function _M.port()
    look()
    return port(peer.port)
end

--- The client's address, as far as it is known.
-- @treturn string
-- @phases certificate
function _M.forwarded_ip()
    look()
    return text(is_claimed() and peer.claimed or peer.address)
end

--- The client's port, as far as it is known.
-- @treturn number|nil nil: it has none
-- @phases certificate
function _M.forwarded_port()
    look()
    return port(is_claimed() and peer.claimed_port or peer.port)
end

--- The port of the listener.
-- @treturn number|nil nil: it has none
-- @phases certificate
function _M.own_port()
    look()
    return port(peer.own_port)
end

return _M
