--- Compiles a configuration to what a request looks up: plans.
--
-- A plan is all that is known of a route's requests before they come: its
-- destination, plugin chains, the location that has the phases they need, how
-- its path changes.
-- @module gateway.proxy.plan

local chain = require("gateway.plugin.chain")
local address = require("sluice.address")
local late_phases = require("gateway.proxy.late_phases")
local rotation = require("gateway.proxy.rotation")
local router = require("gateway.router")
local store = require("gateway.store")

local _M = {}

local DEFAULT_TIMEOUT_MS = 60000 -- what nginx.conf has
-- Turns of the rotations of all upstreams together, whatever their weights: what they cost.
local MAX_TURNS = 100000

local function split_target(target)
    local host, port = address.split(target)
    return host, tonumber(port)
end

--- Peers of a host and port, one an address. An unresolvable name is a
-- warning: the rest of the configuration is served.
local function add_peers(peers, host, port, weight, header, compiler)
    local literal = address.literal(host)
    local addresses = literal and { literal } or compiler.addresses[host]
    if type(addresses) ~= "table" then
        table.insert(compiler.warnings, ("%s: cannot be resolved: %s"):format(host, addresses))
        return
    end
    for _, ip in ipairs(addresses) do
        peers[#peers + 1] = { ip = ip, port = port, weight = weight, host = header }
    end
end

local function compile_targets(entity, targets, protocol, compiler)
    local peers = {}
    for _, target in ipairs(targets) do
        local host, port = split_target(target.target)
        local header = entity.host_header or address.authority(host, port, protocol)
        add_peers(peers, host, port, target.weight, header, compiler)
    end
    return rotation.new(peers, math.min(entity.slots, compiler.slots))
end

local function rotation_for(service, compiler)
    local entity = compiler.upstreams[service.host]
    local key = entity and service.protocol .. "|" .. entity.id
        or ("%s|%s|%d"):format(service.protocol, service.host, service.port)
    local found = compiler.rotations[key]
    if found then
        return found
    end
    if entity then
        local targets = compiler.targets[entity.id] or {}
        found = compile_targets(entity, targets, service.protocol, compiler)
        found.no_peer = "failure to get a peer from the ring-balancer"
    else
        local peers = {}
        local header = address.authority(service.host, service.port, service.protocol)
        add_peers(peers, service.host, service.port, 100, header, compiler)
        found = rotation.new(peers)
        found.no_peer = "name resolution failed"
    end
    compiler.rotations[key] = found
    return found
end

local function other_timeout(ms)
    return ms ~= DEFAULT_TIMEOUT_MS and ms or nil
end

--- What the way to a service needs to know. It stands in ngx.ctx as it is when no
-- plugin runs, hence the reference to itself.
local function compile_destination(service, compiler)
    local destination = {
        service = service,
        rotation = rotation_for(service, compiler),
        retries = service.retries,
        scheme_upstream = service.protocol == "https" and "https://sluice_https" or nil,
        -- Milliseconds, or nil where nginx.conf has the same.
        connect_timeout = other_timeout(service.connect_timeout),
        write_timeout = other_timeout(service.write_timeout),
        read_timeout = other_timeout(service.read_timeout),
    }
    destination.destination = destination
    return destination
end

local function https_only(route)
    local only = false
    for _, protocol in ipairs(route.protocols) do
        if protocol == "http" then
            return false
        end
        only = only or protocol == "https"
    end
    return only
end

local function compile_plan(route, service, destination, compiler)
    local steps = chain.compile(compiler.plugins, compiler.plugin_index, route, service)
    local level = late_phases.level(steps)
    return {
        route = route,
        service = service,
        store = compiler.store,
        destination = destination,
        run_access = chain.runner(steps.access),
        header_filter = steps.header_filter,
        body_filter = steps.body_filter,
        log = steps.log,
        keeps_ctx = level > 0,
        needs_ctx = steps.access ~= nil
            or level > 0
            or destination == nil
            or destination.rotation.host_varies,
        location = late_phases.location(level, route.request_buffering, route.response_buffering),
        https_only = https_only(route),
        -- The path goes upstream as it came.
        same_path = service ~= nil and (service.path == nil or service.path == "/"),
        strips = route.strip_path,
    }
end

--- A request that matches no route passes the late phases of global plugins.
local function compile_no_route(compiler)
    local steps = chain.compile(compiler.plugins, compiler.plugin_index, nil, nil)
    local level = late_phases.level(steps)
    return {
        store = compiler.store,
        header_filter = steps.header_filter,
        body_filter = steps.body_filter,
        log = steps.log,
        keeps_ctx = level > 0,
        needs_ctx = true,
        location = late_phases.location(level, true, true),
        error_location = late_phases.error_location(level),
    },
        chain.runner(steps.rewrite)
end

local function by(list, field)
    local out = {}
    for _, entity in ipairs(list) do
        out[entity[field]] = entity
    end
    return out
end

local function targets_by_upstream(targets)
    local out = {}
    for _, target in ipairs(targets) do
        local id = target.upstream.id
        out[id] = out[id] or {}
        table.insert(out[id], target)
    end
    return out
end

--- The names that a snapshot's services and targets have, each once; addresses
-- need no resolving.
-- @tparam table snapshot of gateway.config
-- @treturn {string,...} for gateway.control.resolver
function _M.names(snapshot)
    local names, seen = {}, {}
    local function add(host)
        if not seen[host] and not address.literal(host) then
            seen[host] = true
            names[#names + 1] = host
        end
    end
    local upstreams, targets = by(snapshot.upstreams, "name"), targets_by_upstream(snapshot.targets)
    for _, service in ipairs(snapshot.services) do
        local upstream = upstreams[service.host]
        if service.enabled == false then
            upstream = nil
        elseif not upstream then
            add(service.host)
        end
        for _, target in ipairs(upstream and targets[upstream.id] or {}) do
            add((split_target(target.target)))
        end
    end
    return names
end

--- Compiles a snapshot. Nothing live changes, nothing blocks.
-- @tparam table snapshot of gateway.config
-- @tparam table plugins registry
-- @tparam table addresses what gateway.control.resolver answered for `names`
-- @treturn table `{store, router, no_route, rewrite, rotations, plugin_index,
--   warnings}`: the router answers with plans; `no_route` is the plan of a request
--   that no route matches; `rewrite` runs the global plugins' rewrite, or is nil
function _M.compile(snapshot, plugins, addresses)
    local compiler = {
        plugins = plugins,
        plugin_index = chain.index(snapshot.plugins),
        store = store.new(snapshot),
        upstreams = by(snapshot.upstreams, "name"),
        targets = targets_by_upstream(snapshot.targets),
        rotations = {},
        addresses = addresses,
        slots = math.floor(MAX_TURNS / math.max(1, #snapshot.upstreams)),
        warnings = {},
    }
    local services, destinations = by(snapshot.services, "id"), {}
    for _, service in ipairs(snapshot.services) do
        if service.enabled ~= false then
            destinations[service.id] = compile_destination(service, compiler)
        end
    end
    local routes, plans = {}, {}
    for _, route in ipairs(snapshot.routes) do
        local service = route.service and services[route.service.id]
        -- The routes of a disabled service do not exist.
        if not service or service.enabled ~= false then
            routes[#routes + 1] = route
            plans[#plans + 1] =
                compile_plan(route, service, service and destinations[service.id], compiler)
        end
    end
    local no_route, rewrite = compile_no_route(compiler)
    return {
        store = compiler.store,
        -- A pattern that does not compile was refused with its file.
        router = assert(router.new(routes, plans)),
        no_route = no_route,
        rewrite = rewrite,
        rotations = compiler.rotations,
        warnings = compiler.warnings,
        plugin_index = compiler.plugin_index,
    }
end

return _M
