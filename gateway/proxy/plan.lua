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
local core = require("sluice.core")
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
local SERVICE = C.SLUICE_CORE_SERVICE
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

-- All that belongs to one epoch.
local live

-- Plans ------------------------------------------------------------------------------------------

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

local function locations(reads_whole_request, reads_whole_response)
    local found = {}
    for level = 0, late_phases.MAX_LEVEL do
        local location = late_phases.location(level, reads_whole_request, reads_whole_response)
        found[level] = location or false
    end
    return found
end

local function compile_plan(bits, destination)
    local function has(flag)
        return band(bits, flag) ~= 0
    end
    local code = band(bits, REDIRECT * 7) / REDIRECT
    return {
        is_routed = true,
        destination = destination,
        locations = locations(
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
local function compile(match, has_plugins)
    local bits = number(match.route, C.SLUICE_CORE_ROUTE_FLAGS)
    local service = match.service
    local destination = service ~= NOBODY and destination_of(service) or nil
    service = destination and service
    local key = not has_plugins and bits + (service or NOBODY) * 2 ^ 16
    local plan = key and live.shared:get(key)
    if not plan then
        plan = compile_plan(bits, destination)
        if key then
            live.shared:set(key, plan)
        else
            plan.entities = lazy_entities(match.route, service)
        end
    end
    return plan
end

--- A request that matches no route passes the late phases of global plugins.
local NO_ROUTE = { is_routed = false, entities = {}, locations = locations(true, true) }

--- Forgets what belongs to another epoch than that of the image which this worker sees now.
local function renew(epoch)
    live = {
        -- By the route's slot: {revision, plan}.
        of_route = cache.new(CAPACITY),
        -- By flags and service, by service.
        shared = cache.new(CAPACITY),
        destinations = cache.new(CAPACITY),
        no_route = NO_ROUTE,
    }
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
-- @phases init_worker
function _M.init_worker()
    live = nil
end

--- What belongs to the image that this worker sees now: `no_route`, the plan of a request that no
-- route matches.
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
-- @tparam boolean has_plugins its chain is not empty
-- @treturn table
function _M.of(match, has_plugins)
    local slot, revision = match.slot, tonumber(match.revision)
    local entry = live.of_route:get(slot)
    if not entry or entry.revision ~= revision then
        entry = { revision = revision, plan = compile(match, has_plugins) }
        live.of_route:set(slot, entry)
    end
    return entry.plan
end

return _M
