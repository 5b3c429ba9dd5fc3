--- What a request looks up: plans, compiled from the published image when they are first needed.
--
-- A plan is all that is known of a route's requests before they come: its destination, plugin
-- chain, the location that has the phases which that needs, how its path changes. Routes of one
-- service that are alike in all this and run no plugin share one.
--
-- What is kept is bounded, whatever the number of routes, and all of it belongs to an epoch: when
-- services, upstreams, targets, names or plugins change, plans are compiled anew. Configurations
-- outlive that: they are kept elsewhere, by their own revision (gateway.proxy.entities).
-- @module gateway.proxy.plan

local abi = require("sluice.abi")
local bit = require("bit")
local cache = require("gateway.proxy.cache")
local chains = require("gateway.plugin.chain")
local core = require("sluice.core")
local entities = require("gateway.proxy.entities")
local entity_text = require("gateway.store.entity_text")
local ffi = require("ffi")
local flags = require("gateway.image.flags")
local image = require("gateway.proxy.image")
local late_phases = require("gateway.proxy.late_phases")

abi.declare([[
typedef struct {
    const char  *path;
    const char  *empty;
    uint32_t     path_length;
    uint32_t     empty_length;
    uint32_t     https;
    uint32_t     zero;
} sluice_destination_t;

int sluice_destination(uint32_t service, sluice_destination_t *destination);
]])

local C = core.C
local PLUGIN, ROUTE, SERVICE = C.SLUICE_CORE_PLUGIN, C.SLUICE_CORE_ROUTE, C.SLUICE_CORE_SERVICE
local NOBODY = image.NOBODY
local REDIRECT = flags.route.REDIRECT

local band, number = bit.band, image.number
local tonumber = tonumber

local OK, DECLINED = 0, -5

-- Filled for each service that is compiled.
local way = ffi.new("sluice_destination_t")

-- What a generation of each cache holds: of routes, services, consumers.
local CAPACITY = 1024

local _M = {}

local plugins

-- All that belongs to one epoch.
local live

-- Bindings ---------------------------------------------------------------------------------------

--- A reference, nil where it is not given.
local function reference(found, field)
    local slot = number(found, field)
    return slot ~= NOBODY and slot or nil
end

--- The plugin bindings of an owner (gateway.plugin.chain).
-- @tparam number kind of the owner; KINDS, slot 0: all that is global
-- @tparam number slot
local function bindings_of(kind, slot)
    local bindings = image.children(PLUGIN, kind, slot)
    for i, found in ipairs(bindings) do
        local binding = {
            name = image.text(found, C.SLUICE_CORE_PLUGIN_NAME),
            route = reference(found, C.SLUICE_CORE_PLUGIN_ROUTE),
            service = reference(found, C.SLUICE_CORE_PLUGIN_SERVICE),
        }
        local bits = number(found, C.SLUICE_CORE_PLUGIN_FLAGS)
        if band(bits, flags.plugin.CONSUMER_ONLY) ~= 0 then
            binding.consumer_only = true
        else
            binding.conf, binding.err = entities.configuration(found)
        end
        bindings[i] = binding
    end
    return bindings
end

--- The plugin bindings of a consumer, none of one that only a plugin knows.
local function bindings_of_consumer(id)
    local bindings = live.of_consumer:get(id)
    if not bindings then
        local found = entities.consumer_record(id)
        bindings = found and bindings_of(C.SLUICE_CORE_CONSUMER, (image.place(found))) or {}
        live.of_consumer:set(id, bindings)
    end
    return bindings
end

--- A consumer's configurations for the requests of a scope.
-- @tparam table consumer
-- @tparam table scope of a plan
-- @treturn table plugin name -> configuration
local function consumer_confs(consumer, scope)
    local confs = {}
    for name, binding in pairs(chains.choose(bindings_of_consumer(consumer.id), scope)) do
        confs[name] = binding.conf or error(binding.err, 0)
    end
    return confs
end

-- Plans ------------------------------------------------------------------------------------------

local function compile_chain(lists, route, service)
    local chain = chains.compile(plugins, chains.index(lists), route, service)
    chain.level = late_phases.level(chain)
    chain.is_empty = not (chain.access or chain.failure) and chain.level == 0
    chain.run_access = chains.runner(chain.access)
    return chain
end

--- The chain of a route: that of its service, unless it has plugins of its own.
local function chain_of(route, service)
    local own = route and bindings_of(ROUTE, route) or {}
    local key = service or NOBODY
    local chain = #own == 0 and live.chains:get(key)
    if not chain then
        local of_service = service and bindings_of(SERVICE, service) or {}
        chain = compile_chain({ live.global, of_service, own }, route, service)
        if #own == 0 then
            live.chains:set(key, chain)
        end
    end
    return chain
end

--- What Lua needs of the way to a service; its peers are C's.
-- @treturn table|nil `{service, path, empty, scheme_upstream}`; nil: there is no such service
local function compile_destination(slot)
    local rc = ffi.C.sluice_destination(slot, way)
    if rc == DECLINED then
        return nil
    elseif rc ~= OK then
        error("no memory", 0)
    end
    return {
        service = slot,
        path = ffi.string(way.path, way.path_length),
        empty = way.empty_length > 0 and ffi.string(way.empty, way.empty_length) or nil,
        scheme_upstream = way.https ~= 0 and "https://sluice_https" or nil,
    }
end

local function destination_of(slot)
    local destination = live.destinations:get(slot)
    if not destination then
        destination = compile_destination(slot)
        if destination then
            live.destinations:set(slot, destination)
        end
    end
    return destination
end

local lazy = {}

--- Decodes an entity when it is first asked for.
function lazy.__index(self, kind)
    local text = self.texts[kind]
    local entity = text and entity_text.decode(text)
    rawset(self, kind, entity)
    return entity
end

--- The entities of a plan as plugins see them. Texts, since the image may be another by then.
local function lazy_entities(route, service)
    local texts = {
        route = image.body(route),
        service = service and image.body(image.by_slot(SERVICE, service)),
    }
    return setmetatable({ texts = texts }, lazy)
end

--- Stands where a chain would that cannot be run as it is configured: fails closed.
local function refuse(ctx)
    error(ctx.plan.failure, 0)
end

--- What finds the configurations of consumers, where there may be some.
local function scope_of(chain, route, service)
    return chain.by_consumer
            and {
                route = route,
                service = service,
                outranked = chain.outranked,
                consumer_confs = consumer_confs,
            }
        or nil
end

local function compile_plan(bits, route, service, destination, chain)
    local function has(flag)
        return band(bits, flag) ~= 0
    end
    local code = band(bits, REDIRECT * 7) / REDIRECT
    return {
        is_routed = true,
        destination = destination,
        scope = scope_of(chain, route, service),
        failure = chain.failure,
        run_access = chain.failure and refuse or chain.run_access,
        header_filter = chain.header_filter,
        body_filter = chain.body_filter,
        log = chain.log,
        keeps_ctx = chain.level > 0,
        needs_ctx = not chain.is_empty,
        location = late_phases.location(
            chain.level,
            not has(flags.route.STREAM_REQUEST),
            not has(flags.route.STREAM_RESPONSE)
        ),
        https_only = has(flags.route.HTTPS_ONLY),
        redirect_code = flags.redirect_codes[code],
        flags = bits,
        -- As gateway.request.path wants it.
        strip_path = has(flags.route.STRIP_PATH),
        path_handling = has(flags.route.PATH_V1) and "v1" or "v0",
        -- The path goes upstream as it came.
        same_path = destination ~= nil and destination.path == "/",
    }
end

--- Compiles the plan of a matched route, or finds the one that it shares with others.
local function compile(match)
    local bits = number(match.route, C.SLUICE_CORE_ROUTE_FLAGS)
    local slot, service = match.slot, match.service
    local destination = service ~= NOBODY and destination_of(service) or nil
    service = destination and service
    local chain = chain_of(slot, service)
    local key = chain.is_empty and bits + (service or NOBODY) * 2 ^ 16
    local plan = key and live.shared:get(key)
    if not plan then
        plan = compile_plan(bits, slot, service, destination, chain)
        if key then
            live.shared:set(key, plan)
        else
            plan.entities = lazy_entities(match.route, service)
        end
    end
    return plan
end

--- A request that matches no route passes the late phases of global plugins.
local function compile_no_route()
    local chain = chain_of(nil, nil)
    return {
        is_routed = false,
        entities = {},
        scope = scope_of(chain, nil, nil),
        header_filter = chain.header_filter,
        body_filter = chain.body_filter,
        log = chain.log,
        keeps_ctx = chain.level > 0,
        needs_ctx = true,
        location = late_phases.location(chain.level, true, true),
        error_location = late_phases.error_location(chain.level),
    },
        chains.runner(chain.rewrite)
end

--- Forgets what belongs to another epoch than that of the image which this worker sees now.
local function renew(epoch)
    local store = image.store()
    if not live or live.store ~= store then
        -- Slots and revisions of another store mean nothing here.
        entities.clear()
    end
    live = {
        store = store,
        -- By the route's slot: {revision, plan}.
        of_route = cache.new(CAPACITY),
        -- By flags and service, by service, by service.
        shared = cache.new(CAPACITY),
        chains = cache.new(CAPACITY),
        destinations = cache.new(CAPACITY),
        -- Bindings, by id.
        of_consumer = cache.new(CAPACITY),
    }
    live.global = bindings_of(C.SLUICE_CORE_KINDS, 0)
    live.no_route, live.rewrite = compile_no_route()
    -- Whole now; had something thrown, the next request would begin anew.
    live.epoch = epoch
end

--- How the log calls a matched route: by its name, else its id.
-- @tparam cdata match of gateway.proxy.image
-- @treturn string
function _M.name(match)
    return image.text(match.route, C.SLUICE_CORE_ROUTE_NAME) or image.id(match.route)
end

--- Starts without any plan.
-- @tparam table registry the plugins, of gateway.plugin.registry
-- @phases init_worker
function _M.init_worker(registry)
    plugins = registry
    live = nil
end

--- What belongs to the image that this worker sees now: `no_route`, the plan of a request that no
-- route matches; `rewrite`, which runs the global plugins' rewrite, or nil.
-- @tparam cdata epoch of gateway.proxy.image
-- @treturn table
function _M.live(epoch)
    epoch = tonumber(epoch)
    if not live or live.epoch ~= epoch then
        renew(epoch)
    end
    return live
end

--- The plan of a matched route. A hit costs a look-up.
-- @tparam cdata match of gateway.proxy.image, of the epoch that `live` was asked for last
-- @treturn table
function _M.of(match)
    local slot, revision = match.slot, tonumber(match.revision)
    local entry = live.of_route:get(slot)
    if not entry or entry.revision ~= revision then
        entry = { revision = revision, plan = compile(match) }
        live.of_route:set(slot, entry)
    end
    return entry.plan
end

return _M
