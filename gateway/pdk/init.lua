--- What a plugin may use of the gateway: the plugin development kit.
--
-- A plugin requires this module, `gateway.schema.typedefs` and the libraries
-- under `lib/`, and nothing else of the gateway.
-- @module gateway.pdk

local identity = require("gateway.pdk.identity")
local log_entry = require("gateway.pdk.log_entry")
local matched = require("gateway.pdk.matched")
local dns = require("gateway.pdk.dns")
local response = require("gateway.pdk.response")

local variables = require("gateway.pdk.variables")

local _M = {}

local store, timers, queue_timers

--- Called by the gateway when a worker starts.
-- @local
function _M.set_store(entities)
    store = entities
end

--- Called by the gateway when a worker starts.
-- @local
function _M.set_timers(system, of_queues)
    timers, queue_timers = system, of_queues
end

--- The entities that are live now, as far as requests find them: `get`, `credential`, `current`
-- (gateway.proxy.entities).
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

--- Timers for sluice.queue: senders wait for servers, and in the control worker, where those of all
-- workers are, they must not take all contexts that others need.
-- @treturn table a started system of sluice.timer
-- @phases init_worker and later
function _M.queue_timers()
    return queue_timers
end

--- The addresses of a host, at most 30 seconds old unless the resolver fails. Yields.
-- @tparam string host name or address
-- @tparam[opt=30] number limit seconds to wait
-- @treturn {string,...}|nil addresses, IPv6 in brackets
-- @treturn string|nil the resolver's reason
-- @phases access, timers
_M.resolve = dns.resolve

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

-- What C says (`identity.serial`) where it does not know whether ngx.ctx is another one.
local UNSURE = -math.huge

-- Of the identity that was asked for last: most plugins of a request ask for the same one.
local last = { serial = 0 }

local function find_own(serial)
    local found = own()
    if serial == UNSURE or found == NOBODY then
        return found
    end
    last = { serial = serial, consumer = found.consumer, credential = found.credential }
    return last
end

local function look_up(serial)
    local found = identity.get()
    local of = { serial = serial }
    if found then
        local consumer, credential = identity.text(found.consumer), identity.text(found.credential)
        local slot, generation = found.credential_slot, found.credential_generation
        of.consumer = consumer
            and store:consumer_at(found.consumer_slot, found.consumer_generation, consumer)
        of.credential = credential and store:credential_at(slot, generation, credential)
    end
    last = of
    return of
end

local function who(serial)
    if serial == last.serial then
        return last
    elseif serial > 0 then
        return look_up(serial)
    end
    return serial < 0 and find_own(serial) or NOBODY
end

--- The authenticated consumer, or nil: as it was when a plugin has first asked for it.
-- @phases access, header_filter, body_filter, log
function _M.consumer()
    return who(identity.serial()).consumer
end

--- The credential that authenticated the request, or nil.
-- @phases access, header_filter, body_filter, log
function _M.credential()
    return who(identity.serial()).credential
end

--- The consumer and the credential of a number that C has for them (`sluice_running_t`), in a table
-- that has them; one call less than `consumer`.
-- @local
_M.identified = who

--- What log plugins write about the request: JSON in Kong's layout. Does not yield.
-- @tparam[opt] boolean is_plain without what `kong.log.set_serialize_value` has changed of it
-- @treturn string
-- @phases log
function _M.log_entry(is_plain)
    local found = identity.get()
    local known = found and found.is_own ~= 0 and own() or NOBODY
    return log_entry.encode(known.consumer, known.credential, is_plain)
end

--- Records who the request comes from, for later plugins and for the upstream
-- (X-Consumer-ID, X-Consumer-Custom-ID, X-Consumer-Username,
-- X-Credential-Identifier, X-Anonymous-Consumer). Does not yield.
-- @tparam table|nil consumer
-- @tparam table|nil credential nil for an anonymous consumer
-- @phases access
function _M.authenticate(consumer, credential)
    identity.set(consumer, credential, true)
    ngx.ctx[OWN] = { consumer = consumer, credential = credential }
end

--- The same without telling the upstream, as in Kong.
-- @local
function _M.name_client(consumer, credential)
    identity.set(consumer, credential, false)
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
