--- How many routes of a file need no change, and what would serve most of the others.
--
-- A route's chain is the route itself, its service, the upstream that has the service's host as its
-- name, that upstream's targets, and the plugins of all requests, of the service and of the route.
-- What a plugin says to a consumer is no part of it.
-- @module gateway.config.coverage

local cjson = require("cjson")

local concat = table.concat
local format = string.format
local sort = table.sort

local NULL = cjson.null
-- Of what is missing, so many are named.
local MAX_STEPS = 3

--- What a route lacks whose entities are wrong.
local _M = { ERRORS = "the other errors fixed" }

--- Notes that an entity needs something that is not there.
-- @tparam table item of gateway.config.collect
-- @tparam string thing
function _M.note(item, thing)
    item.lacks = item.lacks or {}
    item.lacks[thing] = true
end

-- What is not supported, such as `services.protocol 'grpc'`. A record of an entity counts as one,
-- whichever of its fields it is: all of health checks come together.
local function unsupported(item, err, value)
    local at, names = value, { item.kind == "plugins" and value.name or item.kind }
    for i, key in ipairs(err.keys) do
        if item.kind ~= "plugins" and i > 1 and type(key) == "string" then
            break
        end
        names[#names + 1] = type(key) == "string" and key or nil
        at = type(at) == "table" and at[type(key) == "number" and key + 1 or key] or nil
    end
    local thing = concat(names, ".")
    return type(at) == "string" and format("%s '%s'", thing, at) or thing
end

--- The same of each error of an entity: a value that is not supported, or what is to be fixed.
-- @tparam table item
-- @tparam table errors of gateway.schema's `validate`
-- @tparam table value that it was given
function _M.note_all(item, errors, value)
    for _, err in ipairs(errors) do
        _M.note(item, err.is_unsupported and unsupported(item, err, value) or _M.ERRORS)
    end
end

local function add_all(to, from)
    for thing in pairs(from or {}) do
        to[thing] = true
    end
end

-- What an entity of a kind is referred to by -> item.
local function index_of(items, field)
    local index = {}
    for _, item in ipairs(items) do
        for _, key in ipairs({ "id", field }) do
            local name = item.raw[key]
            index[type(name) == "string" and name or item] = item
        end
    end
    return index
end

-- The item that another refers to: its parent, or by a name or id. Nil: it refers to none.
local function referred(item, field, kind, index)
    if item.parent and item.parent.kind == kind then
        return item.parent
    end
    local reference = item.raw[field]
    if type(reference) == "table" then
        reference = reference.id or reference.name
    end
    return index[reference]
end

local function is_given(value)
    return value ~= nil and value ~= NULL
end

-- What plugins lack: of all requests, by item of those that have a scope.
local function of_plugins(items, routes, services)
    local global, of = {}, {}
    for _, item in ipairs(items.plugins) do
        local raw, parent = item.raw, item.parent and item.parent.kind
        local is_of_consumer = parent == "consumers"
            or parent == "consumer_groups"
            or is_given(raw.consumer)
            or is_given(raw.consumer_group)
        local scope = referred(item, "route", "routes", routes)
            or referred(item, "service", "services", services)
        if scope then
            of[scope] = of[scope] or {}
        end
        if not is_of_consumer then
            add_all(scope and of[scope] or global, item.lacks)
        end
    end
    return global, of
end

local function of_upstreams(items)
    local upstreams, lacks = index_of(items.upstreams, "name"), {}
    for name, item in pairs(upstreams) do
        lacks[name] = lacks[name] or {}
        add_all(lacks[name], item.lacks)
    end
    for _, target in ipairs(items.targets) do
        local upstream = referred(target, "upstream", "upstreams", upstreams)
        add_all(upstream and lacks[upstream.raw.name] or {}, target.lacks)
    end
    return lacks
end

local function host_of(service)
    local raw = service.raw
    return is_given(raw.host) and raw.host
        or type(raw.url) == "string" and raw.url:match("^%w+://([^:/]+)")
        or 0
end

-- Sets of what is missing, each with the count of routes that lack just that.
local function sets_of(items)
    local routes = index_of(items.routes, "name")
    local services = index_of(items.services, "name")
    local global, of = of_plugins(items, routes, services)
    local upstreams = of_upstreams(items)
    local sets, by_key = {}, {}
    for _, route in ipairs(items.routes) do
        local lacks, names = {}, {}
        local service = referred(route, "service", "services", services)
        for _, some in ipairs({ global, route.lacks or {}, of[route] or {} }) do
            add_all(lacks, some)
        end
        if service then
            add_all(lacks, service.lacks)
            add_all(lacks, of[service])
            add_all(lacks, upstreams[host_of(service)])
        end
        for thing in pairs(lacks) do
            names[#names + 1] = thing
        end
        sort(names)
        local key = concat(names, "\n")
        if not by_key[key] then
            by_key[key] = { names = names, left = #names, count = 0 }
            sets[#sets + 1] = by_key[key]
        end
        by_key[key].count = by_key[key].count + 1
    end
    return sets
end

-- The thing that serves most routes when it comes; where none does alone, that which most lack.
local function best_of(sets, has)
    local gains, uses = {}, {}
    for _, set in ipairs(sets) do
        for _, name in ipairs(set.left > 0 and set.names or {}) do
            if not has[name] then
                uses[name] = (uses[name] or 0) + set.count
                gains[name] = (gains[name] or 0) + (set.left == 1 and set.count or 0)
            end
        end
    end
    local best
    for name, gain in pairs(gains) do
        local by = best
            and (gain - gains[best] ~= 0 and gain - gains[best] or uses[name] - uses[best])
        if not best or by > 0 or (by == 0 and name < best) then
            best = name
        end
    end
    return best
end

--- Counts.
-- @tparam table items of gateway.config.collect, with `lacks`: what an entity needs that is not
-- there, as a set
-- @treturn table `routes`, `served`: counts; `steps`: an array of `{ thing =, served = with this
-- and those before }`, three at most
function _M.count(items)
    local sets, has = sets_of(items), {}
    local found = { routes = #items.routes, served = 0, steps = {} }
    for _, set in ipairs(sets) do
        found.served = found.served + (set.left == 0 and set.count or 0)
    end
    local served = found.served
    for step = 1, MAX_STEPS do
        local thing = best_of(sets, has)
        if not thing then
            break
        end
        has[thing] = true
        for _, set in ipairs(sets) do
            for _, name in ipairs(set.names) do
                set.left = set.left - (name == thing and 1 or 0)
                served = served + (name == thing and set.left == 0 and set.count or 0)
            end
        end
        found.steps[step] = { thing = thing, served = served }
    end
    return found
end

local function share(found, served)
    return format("%d%%", math.floor(100 * served / found.routes))
end

local function enumerated(things)
    local last = things[#things]
    return #things == 1 and last or concat(things, ", ", 1, #things - 1) .. " and " .. last
end

-- What would serve more routes, and how many then: things that do only together are one part.
local function steps_text(found)
    local parts, things, served = {}, {}, found.served
    for _, step in ipairs(found.steps) do
        things[#things + 1] = step.thing
        if step.served > served then
            parts[#parts + 1] = format("%s %s", enumerated(things), share(found, step.served))
            things, served = {}, step.served
        end
    end
    return #parts > 0 and format("; with %s", concat(parts, ", then ")) or ""
end

-- How many routes, but not all, need no change.
local function served_text(found)
    if found.served == 0 then
        return found.routes == 1 and "the only route needs a change"
            or format("all %d routes need a change", found.routes)
    end
    return format(
        "of %d routes, %d need%s no change (%s)",
        found.routes,
        found.served,
        found.served == 1 and "s" or "",
        share(found, found.served)
    )
end

--- Counts the routes of a file without errors: all are served but those of a disabled service.
-- @tparam table snapshot of gateway.config
-- @treturn table for `format`
function _M.of_snapshot(snapshot)
    local is_disabled, disabled = {}, 0
    for _, service in ipairs(snapshot.services) do
        is_disabled[service.id] = service.enabled == false
    end
    for _, route in ipairs(snapshot.routes) do
        local service = route.service
        disabled = disabled + (type(service) == "table" and is_disabled[service.id] and 1 or 0)
    end
    local count = #snapshot.routes
    return { routes = count, served = count - disabled, disabled = disabled, steps = {} }
end

--- What was counted, for people.
-- @tparam table found of `count` or `of_snapshot`
-- @treturn string such as `of 8 routes, 2 need no change (25%); with the plugin 'zipkin' 50%; the
-- file is refused until every error above is fixed`
function _M.format(found)
    if found.disabled and found.disabled > 0 then
        return format(
            "%d of %d route%s %s served; those of services with `enabled: false` are not",
            found.served,
            found.routes,
            found.routes == 1 and "" or "s",
            found.served == 1 and "is" or "are"
        )
    elseif found.served == found.routes then
        return found.routes == 0 and "no routes"
            or found.routes == 1 and "the only route is served"
            or format("all %d routes are served", found.routes)
    end
    local line = "%s%s; the file is refused until every error above is fixed"
    return format(line, served_text(found), steps_text(found))
end

return _M
