--- `kong.client`: who asks.
-- @module gateway.kit.client

local bit = require("bit")
local handshake = require("gateway.kit.client.handshake")
local pdk = require("gateway.pdk")
local phases = require("gateway.kit.phases")
local trusted = require("gateway.kit.trusted")
local variables = require("gateway.pdk.variables")

local check = phases.check
local check_identity = phases.check_identity
local error = error
local find = string.find
local identified = pdk.identified
local lower = string.lower
local tonumber = tonumber
local type = type

local CONNECTED = bit.bor(phases.REQUEST, phases.set("certificate"))
local KNOWN = phases.set("access", "response", "header_filter", "body_filter", "log")

local UUID = "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$"

local _M = {}

-- The connection ----------------------------------------------------------------------------------

local GET_IP = phases.allow("client.get_ip", CONNECTED)

--- The address of the connection's peer, which may be a proxy.
-- @treturn string
-- @phases certificate, rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_ip()
    if not check(GET_IP) and handshake.runs() then
        return handshake.ip()
    end
    return variables.realip_remote_addr:get()
end

local GET_FORWARDED_IP = phases.allow("client.get_forwarded_ip", CONNECTED)

--- The client's address: the peer's, or what a trusted proxy says (`trusted_ips`,
-- `real_ip_header`); in `certificate` by the PROXY protocol alone.
-- @treturn string
-- @phases certificate, rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_forwarded_ip()
    if not check(GET_FORWARDED_IP) and handshake.runs() then
        return handshake.forwarded_ip()
    end
    return variables.remote_addr:get()
end

local GET_PORT = phases.allow("client.get_port", CONNECTED)

--- The port of the connection's peer.
-- @treturn number
-- @phases certificate, rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_port()
    if not check(GET_PORT) and handshake.runs() then
        return handshake.port()
    end
    return tonumber(variables.realip_remote_port:get())
end

local GET_FORWARDED_PORT = phases.allow("client.get_forwarded_port", CONNECTED)

--- The client's port: the peer's, or what a trusted proxy says; in `certificate` by the PROXY
-- protocol alone.
-- @treturn number|nil nil: the proxy has named none
-- @phases certificate, rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_forwarded_port()
    if not check(GET_FORWARDED_PORT) and handshake.runs() then
        return handshake.forwarded_port()
    end
    return tonumber(variables.remote_port:get())
end

-- Authentication ----------------------------------------------------------------------------------

local GET_CREDENTIAL = phases.allow("client.get_credential", KNOWN)

--- The credential that has authenticated the request: the entity, or what a plugin has given to
-- `authenticate`. Not to be changed.
-- @treturn table|nil
-- @phases access, response, header_filter, body_filter, log
function _M.get_credential()
    local serial = check_identity(GET_CREDENTIAL)
    if serial then
        return identified(serial).credential
    end
    return pdk.credential()
end

local GET_CONSUMER = phases.allow("client.get_consumer", KNOWN)

--- The consumer that the request comes from. Not to be changed.
-- @treturn table|nil
-- @phases access, response, header_filter, body_filter, log
function _M.get_consumer()
    local serial = check_identity(GET_CONSUMER)
    if serial then
        return identified(serial).consumer
    end
    return pdk.consumer()
end

local LOAD_CONSUMER = phases.allow("client.load_consumer", KNOWN)

--- Finds a consumer, in what is live now. Does not yield.
-- @tparam string consumer_id
-- @tparam[opt] boolean search_by_username where none has this id, the one with this name
-- @treturn table|nil not to be changed; nil: there is none
-- @raise the id is none, and no name is looked for
-- @phases access, response, header_filter, body_filter, log
function _M.load_consumer(consumer_id, search_by_username)
    check(LOAD_CONSUMER)
    if type(consumer_id) ~= "string" then
        error("consumer_id must be a string", 2)
    elseif not search_by_username and not find(consumer_id, UUID) then
        error("cannot load a consumer with an id that is not a uuid", 2)
    end
    local found = pdk.store():get("consumers", consumer_id)
    if found and not search_by_username and found.id ~= lower(consumer_id) then
        return nil
    end
    return found
end

local AUTHENTICATE = phases.allow("client.authenticate", phases.set("access"))

local function check_entity(name, entity)
    if entity ~= nil and type(entity) ~= "table" then
        error(name .. " must be a table or nil", 3)
    end
end

--- Says who the request comes from. Later plugins run with that consumer's configurations; headers
-- for the upstream are the caller's to set.
-- @tparam table|nil consumer nil: none any more
-- @tparam table|nil credential nil: none any more
-- @raise both are nil, or one is no table
-- @phases access
function _M.authenticate(consumer, credential)
    check(AUTHENTICATE)
    check_entity("consumer", consumer)
    check_entity("credential", credential)
    if consumer == nil and credential == nil then
        error("either credential or consumer must be provided", 2)
    end
    pdk.name_client(consumer, credential)
end

-- The protocol ------------------------------------------------------------------------------------

local GET_PROTOCOL = phases.allow("client.get_protocol", KNOWN)

-- What a trusted proxy says of the client's connection.
local function is_https_before()
    local said = trusted.has_client() and variables.http_x_forwarded_proto:get()
    if not said then
        return false
    elseif find(said, ",", 1, true) then
        return nil, "Only one X-Forwarded-Proto header allowed"
    end
    return lower(said) == "https"
end

--- The protocol by which the route was matched.
-- @tparam[opt] boolean allow_terminated X-Forwarded-Proto of a trusted proxy counts, too
-- @treturn string|nil "http" or "https"; the only one of the route, if it has one
-- @treturn string|nil "No active route found", "Only one X-Forwarded-Proto header allowed"
-- @phases access, response, header_filter, body_filter, log
function _M.get_protocol(allow_terminated)
    check(GET_PROTOCOL)
    local route = pdk.route()
    if not route then
        return nil, "No active route found"
    end
    local protocols = route.protocols
    if type(protocols) == "table" and #protocols == 1 then
        return protocols[1]
    end
    local is_https, err = variables.scheme:get() == "https", nil
    if not is_https and allow_terminated then
        is_https, err = is_https_before()
    end
    if err then
        return nil, err
    end
    return is_https and "https" or "http"
end

return _M
