--- What a plugin may use of the gateway: the plugin development kit.
--
-- A plugin requires this module, `gateway.schema.typedefs` and the libraries
-- under `lib/`, and nothing else of the gateway.
-- @module gateway.plugin.pdk

local identity = require("gateway.request.identity")
local log_entry = require("gateway.request.log_entry")
local matched = require("gateway.request.matched")
local names = require("gateway.plugin.names")
local response = require("gateway.request.response")

local variables = require("gateway.request.variables")

local _M = {}

local store, timers

--- Called by the gateway when a worker that serves requests starts.
-- @local
function _M.set_store(entities)
    store = entities
end

--- Called by the gateway when a worker starts.
-- @local
function _M.set_timers(system)
    timers = system
end

--- The entities that are live now, as far as requests find them: `get`, `credential`, `current`
-- (gateway.proxy.entities). In a worker that serves requests.
-- @treturn table
-- @phases configure, rewrite, access, header_filter, body_filter, log, timers
function _M.store()
    return store
end

--- The gateway's timers: a started system of sluice.timer, the only one that plugins need.
-- @treturn table
-- @phases init_worker and later
function _M.timers()
    return timers
end

--- The addresses of a host, at most 30 seconds old unless the resolver fails. Yields.
-- @tparam string host name or address
-- @tparam[opt=30] number limit seconds to wait
-- @treturn {string,...}|nil addresses, IPv6 in brackets
-- @treturn string|nil the resolver's reason
-- @phases access, timers
_M.resolve = names.resolve

--- The matched route, nil before routing or where none matched.
-- @phases access, header_filter, body_filter, log
function _M.route()
    return store:matched("route")
end

--- The matched route's service, or nil.
-- @phases access, header_filter, body_filter, log
function _M.service()
    return store:matched("service")
end

-- In ngx.ctx, which is the plugins' own: the consumer that one of them has named, which the store
-- need not know. Nobody else has this key.
local OWN = {}
local NOBODY = {}

-- ngx.exec begins with a new ngx.ctx: until that plugin runs again nobody is named.
local function own()
    return ngx.ctx[OWN] or NOBODY
end

--- The authenticated consumer, or nil.
-- @phases access, header_filter, body_filter, log
function _M.consumer()
    local found = identity.get()
    if not found then
        return nil
    elseif found.is_own ~= 0 then
        return own().consumer
    end
    local id = identity.text(found.consumer)
    return id and store:consumer_at(found.consumer_slot, found.consumer_generation, id)
end

--- The credential that authenticated the request, or nil.
-- @phases access, header_filter, body_filter, log
function _M.credential()
    local found = identity.get()
    if not found then
        return nil
    elseif found.is_own ~= 0 then
        return own().credential
    end
    local id = identity.text(found.credential)
    return id and store:credential_at(found.credential_slot, found.credential_generation, id)
end

--- What log plugins write about the request: JSON in Kong's layout. Does not yield.
-- @treturn string
-- @phases log
function _M.log_entry()
    return log_entry.encode({
        route = _M.route(),
        service = _M.service(),
        consumer = _M.consumer(),
        credential = _M.credential(),
    })
end

--- Records who the request comes from, for later plugins and for the upstream
-- (X-Consumer-ID, X-Consumer-Custom-ID, X-Consumer-Username,
-- X-Credential-Identifier, X-Anonymous-Consumer). Does not yield.
-- @tparam table|nil consumer
-- @tparam table|nil credential nil for an anonymous consumer
-- @phases access
function _M.authenticate(consumer, credential)
    identity.set(consumer, credential)
    ngx.ctx[OWN] = { consumer = consumer, credential = credential }
end

--- Ends the request with an error in the format that the client accepts.
-- Does not return.
-- @tparam number status 200 to 599
-- @tparam string|nil message default: Kong's words for the status
-- @tparam table|nil headers name -> value
-- @phases rewrite, access
function _M.error(status, message, headers)
    return response.error(status, message, headers)
end

--- Ends the request with a response of the plugin's own. Does not return.
-- @tparam number status 200 to 599
-- @tparam string|table|nil body a table is sent as JSON
-- @tparam table|nil headers name -> value
-- @phases rewrite, access
function _M.exit(status, body, headers)
    return response.exit(status, body, headers)
end

-- header name -> variable of nginx, for the names that plugins ask for.
local header_variables = {}

--- One request header, the first of several, or nil. Names differ in case and
-- in `-` against `_` only for the writer.
-- @tparam string name of few: each is remembered
-- @phases rewrite, access, header_filter, body_filter, log
function _M.header(name)
    local variable = header_variables[name]
    if not variable then
        variable = "http_" .. name:lower():gsub("-", "_")
        header_variables[name] = variable
    end
    return variables.get(variable)
end

--- The client's address: of the connection, or as a trusted proxy names it.
-- @phases rewrite, access, header_filter, body_filter, log
function _M.client_ip()
    return variables.remote_addr:get()
end

--- The request's query as it stands, without the question mark, or nil.
-- @phases rewrite, access, header_filter, body_filter, log
function _M.query()
    return variables.args:get()
end

--- The request's path as it is routed: normalised, without the query. Nil if nginx has refused the
-- request before it had one.
-- @function path
-- @phases rewrite, access, header_filter, body_filter, log
_M.path = matched.path

return _M
