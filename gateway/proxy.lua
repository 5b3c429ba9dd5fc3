--- One request: match a route, run its plugins, hand it to nginx's proxy.
--
-- What can be known when the configuration loads is in the plan of a route:
-- its destination, plugin chains, location, Host header, how its path changes.
-- @module gateway.proxy

local base = require("resty.core.base")

local chain = require("gateway.plugin.chain")
local dns = require("gateway.dns")
local late_phases = require("gateway.late_phases")
local request_id = require("gateway.request_id")
local response = require("gateway.response")
local rotation = require("gateway.rotation")
local router = require("gateway.router")
local router_path = require("gateway.router.path")

local find, sub = string.find, string.sub
local escape = router_path.escape
local normalize = router_path.normalize
local get_request = base.get_request

local _M = {}

local DEFAULT_TIMEOUT_MS = 60000 -- what nginx.conf has
local DEFAULT_PORT = { http = 80, https = 443 }

-- The live configuration: {router, no_route, rewrite, trusted}.
local live

-- A request on its way from the entry to a named location. nginx goes there at
-- once, in the same call, so one slot is enough; should anything ever come
-- between, the request does not match and is routed anew.
local pending = { request = nil, plan = nil, prefix = nil, ctx = nil }

-- Contexts of requests whose chain has late phases. nginx forgets ngx.ctx when
-- it jumps to the error page; $sluice_ctx holds the index here.
local kept, free = {}, {}

local function keep(ctx)
    local slot = table.remove(free) or #kept + 1
    kept[slot] = ctx
    ngx.var.sluice_ctx = slot
end

local function release()
    local slot = tonumber(ngx.var.sluice_ctx)
    if slot and kept[slot] then
        kept[slot] = false
        free[#free + 1] = slot
        ngx.var.sluice_ctx = ""
    end
end

-- Compilation ----------------------------------------------------------------

--- host, or host:port where the port is not the protocol's own.
local function authority(host, port, protocol)
    host = dns.bracket(host)
    return port == DEFAULT_PORT[protocol] and host or host .. ":" .. port
end

local function split_target(target)
    local host, port = target:match("^(.*):(%d+)$")
    return host, tonumber(port)
end

--- Peers of a host and port, one an address. An unresolvable name is a
-- warning: the rest of the configuration is served.
local function add_peers(peers, host, port, weight, header, compiler)
    local addresses, err = compiler.resolve(host)
    if not addresses then
        table.insert(compiler.warnings, ("%s: cannot be resolved: %s"):format(host, err))
        return
    end
    for _, ip in ipairs(addresses) do
        peers[#peers + 1] = { ip = ip, port = port, weight = weight, host = header }
    end
end

local function compile_upstream(entity, targets, protocol, compiler)
    local peers = {}
    for _, target in ipairs(targets) do
        local host, port = split_target(target.target)
        local header = entity.host_header or authority(host, port, protocol)
        add_peers(peers, host, port, target.weight, header, compiler)
    end
    return rotation.new(peers, entity.slots)
end

local function upstream_for(service, compiler)
    local entity = compiler.upstreams[service.host]
    local key = entity and service.protocol .. "|" .. entity.id
        or ("%s|%s|%d"):format(service.protocol, service.host, service.port)
    local upstream = compiler.compiled_upstreams[key]
    if upstream then
        return upstream
    end
    if entity then
        local targets = compiler.targets[entity.id] or {}
        upstream = compile_upstream(entity, targets, service.protocol, compiler)
        upstream.no_peer = "failure to get a peer from the ring-balancer"
    else
        local peers = {}
        local header = authority(service.host, service.port, service.protocol)
        add_peers(peers, service.host, service.port, 100, header, compiler)
        upstream = rotation.new(peers)
        upstream.no_peer = "name resolution failed"
    end
    compiler.compiled_upstreams[key] = upstream
    return upstream
end

--- What the balancer needs of a service. It stands in ngx.ctx as it is when no
-- plugin runs, hence the reference to itself.
local function compile_destination(service, compiler)
    local destination = {
        service = service,
        upstream = upstream_for(service, compiler),
        retries = service.retries,
        scheme_upstream = service.protocol == "https" and "https://sluice_https" or nil,
        timeouts = service.connect_timeout ~= DEFAULT_TIMEOUT_MS
            or service.write_timeout ~= DEFAULT_TIMEOUT_MS
            or service.read_timeout ~= DEFAULT_TIMEOUT_MS,
        connect_seconds = service.connect_timeout / 1000,
        send_seconds = service.write_timeout / 1000,
        read_seconds = service.read_timeout / 1000,
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
        destination = destination,
        run_access = chain.runner(steps.access),
        header_filter = steps.header_filter,
        body_filter = steps.body_filter,
        log = steps.log,
        keeps_ctx = level > 0,
        needs_ctx = steps.access ~= nil
            or level > 0
            or destination == nil
            or destination.upstream.host_varies,
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

--- Compiles a snapshot. Blocks while names resolve; nothing live changes.
-- @tparam table snapshot of gateway.config
-- @tparam table plugins registry
-- @treturn table compiled configuration for `activate`, with `warnings`
function _M.compile(snapshot, plugins)
    local compiler = {
        plugins = plugins,
        plugin_index = chain.index(snapshot.plugins),
        upstreams = by(snapshot.upstreams, "name"),
        targets = targets_by_upstream(snapshot.targets),
        compiled_upstreams = {},
        resolve = dns.memoised(),
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
        -- A pattern that does not compile was refused with its file.
        router = assert(router.new(routes, plans)),
        no_route = no_route,
        rewrite = rewrite,
        upstreams = compiler.compiled_upstreams,
        warnings = compiler.warnings,
        plugin_index = compiler.plugin_index,
    }
end

--- Makes a compiled configuration the one that requests see from now on.
-- @tparam table compiled of `compile`
-- @tparam table settings resolved settings
function _M.activate(compiled, settings)
    compiled.forwarded_proto = #settings.trusted_ips > 0 and "sluice_forwarded_proto" or "scheme"
    live = compiled
end

--- Spreads the workers over the peers.
-- @phases init_worker
function _M.init_worker()
    request_id.init_worker()
    for _, upstream in pairs(live.upstreams) do
        upstream:shuffle_start()
    end
end

-- One request ----------------------------------------------------------------

local function host_port()
    local port = (ngx.var.http_host or ""):match(":(%d+)$")
    return tonumber(port or ngx.var.server_port)
end

--- A header's value, or an array of values where it is repeated. The variable
-- of nginx has the first only, but tells cheaply that there is none.
local function get_header(name)
    return ngx.var["http_" .. name:gsub("-", "_")] and ngx.req.get_headers()[name]
end

local function match(path)
    local table_of_routes = live.router
    local needs = table_of_routes.needs
    return table_of_routes:match(
        needs.method and ngx.req.get_method() or nil,
        needs.host and ngx.var.host or nil,
        needs.port and host_port() or nil,
        path,
        needs.scheme and ngx.var[live.forwarded_proto] or nil,
        needs.headers and get_header or nil
    )
end

--- An https-only route asked by http. Returns if the request came by https.
local function require_https(route)
    if ngx.var[live.forwarded_proto] == "https" then
        return
    end
    local status = route.https_redirect_status_code
    if status == 426 then
        return response.error(426, "Please use HTTPS protocol", {
            ["Connection"] = "Upgrade",
            ["Upgrade"] = "TLS/1.2, HTTP/1.1",
        })
    end
    local host = #live.forwarded_proto > #"scheme" and ngx.var.sluice_forwarded_host or ngx.var.host
    return response.exit(status, nil, { Location = "https://" .. host .. ngx.var.request_uri })
end

--- The request URI's path and where its query begins.
local function split_uri(request_uri)
    local query_at = find(request_uri, "?", 1, true)
    return query_at and sub(request_uri, 1, query_at - 1) or request_uri, query_at
end

--- Sets the variables of nginx.conf that differ from what they begin with.
local function set_upstream_uri(plan, raw_path, path, prefix, query_at, request_uri)
    local var = ngx.var
    local is_raw = path == raw_path
    if not (is_raw and plan.same_path and (not plan.strips or not prefix or prefix == "/")) then
        local upstream_path =
            router_path.upstream(plan.route, plan.service.path, path, prefix, is_raw)
        var.sluice_uri = query_at and upstream_path .. sub(request_uri, query_at) or upstream_path
    end
    if query_at then
        var.sluice_request_path = raw_path
    end
    if plan.strips and prefix and prefix ~= "/" then
        var.sluice_prefix = is_raw and prefix or escape(prefix)
    end
end

local function set_upstream_host(plan, upstream, ctx)
    local var = ngx.var
    if upstream.host_varies then
        ctx.peer = upstream:pick()
    end
    if plan.route.preserve_host then
        var.sluice_host = var.http_host or var.host
    else
        var.sluice_host = upstream.host or ctx.peer.host
    end
end

--- The request's own context where something will write to it; else the
-- destination, which is shared and only read.
local function new_ctx(plan, ctx)
    if not plan.needs_ctx and not ctx then
        ngx.ctx = plan.destination
        return plan.destination
    end
    ctx = ctx or {}
    ctx.plan = plan
    ctx.destination = plan.destination
    ngx.ctx = ctx
    if plan.keeps_ctx then
        keep(ctx)
    end
    return ctx
end

--- From the matched route to nginx's proxy module. May yield where a plugin does.
local function proceed(plan, request_uri, raw_path, path, prefix, query_at, ctx)
    ctx = new_ctx(plan, ctx)
    local route = plan.route
    if not route then
        return response.error(404, "no Route matched with those values")
    end
    if plan.https_only then
        require_https(route)
    end
    local run_access = plan.run_access
    if run_access then
        run_access(ctx)
    end
    local destination = plan.destination
    if not destination then
        return response.error(503, "no Service found with those values")
    end
    local upstream = destination.upstream
    if upstream.empty then
        return response.error(503, upstream.no_peer)
    end
    set_upstream_uri(plan, raw_path, path, prefix, query_at, request_uri)
    set_upstream_host(plan, upstream, ctx)
    if destination.scheme_upstream then
        ngx.var.sluice_upstream = destination.scheme_upstream
    end
    local ms = (ngx.now() - ngx.req.start_time()) * 1000
    if ms >= 0.5 then
        ngx.var.sluice_proxy_ms = ("%d"):format(ms + 0.5)
    end
end

local function run_rewrite()
    local ctx = { plan = live.no_route }
    ngx.ctx = ctx
    live.rewrite(ctx)
    return ctx
end

--- The access phase of `location /`, where every request begins.
-- @phases access
function _M.access()
    ngx.var.sluice_request_id = request_id.next()
    local ctx = live.rewrite and run_rewrite()
    local request_uri = ngx.var.request_uri
    local raw_path, query_at = split_uri(request_uri)
    local path = normalize(raw_path)
    local plan, prefix = match(path)
    plan = plan or live.no_route
    local location = plan.location
    if location then
        pending.request, pending.plan, pending.prefix, pending.ctx =
            get_request(), plan, prefix, ctx
        return ngx.exec(location)
    end
    return proceed(plan, request_uri, raw_path, path, prefix, query_at, ctx)
end

--- The access phase of a named location: goes on where `access` jumped.
-- @phases access
function _M.access_variant()
    local request_uri = ngx.var.request_uri
    local raw_path, query_at = split_uri(request_uri)
    local path = normalize(raw_path)
    local plan, prefix, ctx = pending.plan, pending.prefix, pending.ctx
    if pending.request ~= get_request() then
        plan, prefix = match(path)
        plan, ctx = plan or live.no_route, nil
    end
    pending.request, pending.plan, pending.ctx = nil, nil, nil
    return proceed(plan, request_uri, raw_path, path, prefix, query_at, ctx)
end

local function late(phase)
    local ctx = ngx.ctx
    local plan = ctx.plan
    local steps = plan and plan[phase]
    if steps then
        chain.run_late(steps, ctx, phase)
    end
end

--- @phases header_filter
function _M.header_filter()
    return late("header_filter")
end

--- @phases body_filter
function _M.body_filter()
    return late("body_filter")
end

--- @phases log
function _M.log()
    late("log")
    release()
end

--- Answers what nginx itself refuses or could not get from the upstream.
-- @phases content
function _M.error_page()
    local slot = tonumber(ngx.var.sluice_ctx)
    local no_route = live.no_route
    if slot then
        ngx.ctx = kept[slot]
    elseif no_route.keeps_ctx then
        -- Refused before it was routed: global plugins still see it.
        keep({ plan = no_route })
        return ngx.exec(no_route.error_location)
    end
    local status = ngx.status
    return response.error(status == 494 and 400 or status, nil)
end

return _M
