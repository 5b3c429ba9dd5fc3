--- What a plugin may use of the gateway: the plugin development kit.
--
-- A plugin requires this module, `gateway.schema.typedefs` and the libraries
-- under `lib/`, and nothing else of the gateway.
-- @module gateway.plugin.pdk

local header = require("sluice.header")
local log_entry = require("gateway.request.log_entry")
local resolver = require("gateway.control.names")
local response = require("gateway.request.response")

local variables = require("gateway.request.variables")

local normalize = require("gateway.router.path").normalize

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

local function entity_of_plan(kind)
    local plan = ngx.ctx.plan
    return plan and plan.entities[kind]
end

--- The gateway's timers: a started system of sluice.timer, the only one that plugins need.
-- @treturn table
-- @phases init_worker and later
function _M.timers()
    return timers
end

--- The addresses of a host, at most 30 seconds old unless the resolver fails. Yields.
-- @tparam string host name or address
-- @treturn {string,...}|nil addresses, IPv6 in brackets
-- @treturn string|nil the resolver's reason
-- @phases access, timers
_M.resolve = resolver.resolve

--- What log plugins write about the request: JSON in Kong's layout. Does not yield.
-- @treturn string
-- @phases log
function _M.log_entry()
    return log_entry.encode(ngx.ctx)
end

--- The matched route, nil before routing or where none matched.
-- @phases access, header_filter, body_filter, log
function _M.route()
    return entity_of_plan("route")
end

--- The matched route's service, or nil.
-- @phases access, header_filter, body_filter, log
function _M.service()
    return entity_of_plan("service")
end

--- The authenticated consumer, or nil.
-- @phases access, header_filter, body_filter, log
function _M.consumer()
    return ngx.ctx.consumer
end

--- The credential that authenticated the request, or nil.
-- @phases access, header_filter, body_filter, log
function _M.credential()
    return ngx.ctx.credential
end

local CONSUMER_ID = header.new("X-Consumer-ID")
local CONSUMER_CUSTOM_ID = header.new("X-Consumer-Custom-ID")
local CONSUMER_USERNAME = header.new("X-Consumer-Username")
local CREDENTIAL_IDENTIFIER = header.new("X-Credential-Identifier")
local ANONYMOUS_CONSUMER = header.new("X-Anonymous-Consumer")

local function set_or_clear(handle, value)
    if value then
        handle:set_request(value)
    else
        -- A client must not speak in the gateway's name.
        handle:clear_request()
    end
end

--- Records who the request comes from, for later plugins and for the upstream
-- (X-Consumer-ID, X-Consumer-Custom-ID, X-Consumer-Username,
-- X-Credential-Identifier, X-Anonymous-Consumer). Does not yield.
-- @tparam table|nil consumer
-- @tparam table|nil credential nil for an anonymous consumer
-- @phases access
function _M.authenticate(consumer, credential)
    local ctx = ngx.ctx
    ctx.consumer = consumer
    ctx.credential = credential
    -- Plugins that come find those of this consumer (gateway.plugin.chain).
    ctx.consumer_confs = nil
    set_or_clear(CONSUMER_ID, consumer and consumer.id)
    set_or_clear(CONSUMER_CUSTOM_ID, consumer and consumer.custom_id)
    set_or_clear(CONSUMER_USERNAME, consumer and consumer.username)
    set_or_clear(CREDENTIAL_IDENTIFIER, credential and credential.id)
    set_or_clear(ANONYMOUS_CONSUMER, not credential and "true" or nil)
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

--- The request's path as it was routed: normalised, without the query.
-- @phases rewrite, access, header_filter, body_filter, log
function _M.path()
    local request_uri = variables.request_uri:get()
    local query_at = request_uri:find("?", 1, true)
    return normalize(query_at and request_uri:sub(1, query_at - 1) or request_uri)
end

return _M
