--- What is valid in a declarative file and probably not meant, and takes long to find: routes that
-- get no request, upstreams that nothing uses, patterns that a client can make give up, plugins
-- that wait in vain, certificates that are for other names.
-- @module gateway.config.doubts

local backtracking = require("gateway.schema.backtracking")
local collect = require("gateway.config.collect")
local nearest = require("sluice.nearest")
local normal_id = require("gateway.schema.rules").normal_id
local schema = require("gateway.schema")
local plain = require("gateway.schema.text").plain
local x509 = require("gateway.schema.x509")

local concat = table.concat
local format = string.format
local sort = table.sort

-- Routes that are named of those that get no request.
local MAX_ROUTES = 20
local ANY = { "" }
-- Upstreams without a service and hosts without an upstream, each compared with each: so many of
-- both cost less than a tenth of a second. Shorter names are near to too many.
local MAX_UPSTREAMS, MAX_HOSTS, LEAST_NAME = 25, 200, 4
-- Methods, plugins and upstreams without targets of which is warned, and words that are compared
-- with methods.
local MAX_METHODS, MAX_PLUGINS, MAX_TARGETS, MAX_WORDS = 20, 20, 20, 1000
local METHODS = { "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT" }
local ANY_METHOD = { ANY = "without methods, a route takes all of them" }
ANY_METHOD.ALL = ANY_METHOD.ANY
-- SNIs of which is warned; names of a certificate that are shown, and how much of each.
local MAX_SNIS, MAX_NAMES, MAX_NAME = 20, 3, 100

local _M = {}

-- Warns of the first ones, `most`; and a function that says how many others there are.
local function first_of(most, warn)
    local count = 0
    return function(path, message)
        count = count + 1
        if count <= most then
            warn(path, message)
        end
    end, function(list, message)
        if count > most then
            warn(list, format(message, count - most))
        end
    end
end

local function name_of(entity)
    return entity.name or entity.id
end

local function id_of(reference)
    return type(reference) == "table" and reference.id or nil
end

-- Routes in each other's place -------------------------------------------------------------------

local function list_or_any(list)
    return list and #list > 0 and list or ANY
end

-- A set as text, the same for the same set.
local function set_text(list)
    local values = { unpack(list or {}) }
    sort(values)
    return concat(values, "\1")
end

local function headers_text(headers)
    local parts = {}
    for name, values in pairs(headers or {}) do
        parts[#parts + 1] = name:lower() .. "\2" .. set_text(values):lower()
    end
    return set_text(parts)
end

-- What a route asks for beside a host and a path, and what goes before them in precedence.
local function rest_of(route)
    local hosts = set_text(route.hosts)
    return concat({
        set_text(route.methods),
        headers_text(route.headers),
        set_text(route.snis),
        hosts == "" and "" or hosts:find("*", 1, true) and "*" or "host",
        list_or_any(route.paths) == ANY and "" or "path",
    }, "\3")
end

-- In the order in which the router prefers them, of those that are equal otherwise.
local function by_age(items)
    local routes, places = {}, {}
    for _, item in ipairs(items) do
        routes[#routes + 1] = item
        places[item] = #routes
    end
    sort(routes, function(a, b)
        local at, other = a.entity.created_at, b.entity.created_at
        return at < other or (at == other and places[a] < places[b])
    end)
    return routes
end

-- Calls `fn(place, host, path)` for each entry of the router that a route makes.
local function each_entry(route, fn)
    for _, path in ipairs(list_or_any(route.paths)) do
        for _, host in ipairs(list_or_any(route.hosts)) do
            fn(host:lower() .. "\4" .. path, host, path)
        end
    end
end

-- The routes that share a place with another one: few, as a rule, of which more is looked at.
local function crowded(items)
    local owners, is_crowded, list = {}, {}, {}
    for _, item in ipairs(items) do
        each_entry(item.entity, function(place)
            local owner = owners[place]
            owners[place] = owner or item
            if owner and owner ~= item then
                is_crowded[owner], is_crowded[item] = true, true
            end
        end)
    end
    for _, item in ipairs(next(is_crowded) and items or {}) do
        list[#list + 1] = is_crowded[item] and item or nil
    end
    return list
end

local function entry_text(host, path)
    local parts = {}
    parts[1] = host ~= "" and format("host '%s'", host) or nil
    parts[#parts + 1] = path ~= "" and format("path '%s'", path) or nil
    return #parts > 0 and concat(parts, " and ") or "any host and path"
end

-- What to say of a route of whose entries some are taken.
local function taken_text(item, found)
    local winner = found.winner
    local which = winner.entity.created_at < item.entity.created_at and "is older" or "comes first"
    local by = format("'%s' (%s)", name_of(winner.entity), collect.path(winner))
    if found.taken == found.count and not found.is_of_several then
        local line = "gets no request: route %s has the same conditions and %s"
        return line:format(by, which)
    elseif found.taken == found.count then
        local line = "gets no request: other routes, such as %s, have the same conditions"
        return line:format(by)
    end
    local line = "gets no request for %s: route %s has the same conditions and %s"
    return line:format(found.entry, by, which)
end

--- Warns of routes that get no request for what another route asks for as well, and is preferred:
-- twenty by name. A microsecond an entry of the router, some where others have the same host and
-- path.
-- @tparam {table,...} items of routes, of gateway.config.collect
-- @tparam function warn called with path and message
-- @phases any
function _M.of_routes(items, warn)
    local owners, lost, others, shown = {}, {}, 0, 0
    items = crowded(items)
    for _, item in ipairs(by_age(items)) do
        local found, route = { count = 0, taken = 0 }, item.entity
        local rest = rest_of(route)
        each_entry(route, function(place, host, path)
            local priority = path:sub(1, 1) == "~" and route.regex_priority or ""
            local key = concat({ place, priority, rest }, "\4")
            local owner = owners[key]
            owners[key] = owner or item
            found.count = found.count + 1
            if owner and owner ~= item then
                found.taken = found.taken + 1
                found.is_of_several = found.winner ~= nil and found.winner ~= owner
                    or found.is_of_several
                found.winner = found.winner or owner
                found.entry = found.entry or entry_text(host, path)
            end
        end)
        lost[item] = found.winner and found
    end
    for _, item in ipairs(items) do
        local found = lost[item]
        if found and shown < MAX_ROUTES then
            shown = shown + 1
            warn(collect.path(item), taken_text(item, found))
        elseif found then
            others = others + 1
        end
    end
    if others > 0 then
        warn("routes", format("%d others get no request, or not all: see those above", others))
    end
end

-- What was meant by a word that is no method but near one: Kong takes any in capital letters.
local function add_methods(state, warn)
    local words, count, meant = {}, 0, {}
    for _, method in ipairs(METHODS) do
        words[method] = true
    end
    local say, say_others = first_of(MAX_METHODS, warn)
    for _, item in ipairs(state.items.routes) do
        for i, method in ipairs(item.entity.methods or {}) do
            if not words[method] and count < MAX_WORDS then
                words[method], count = true, count + 1
                local near = nearest.find(method, METHODS)
                meant[method] = ANY_METHOD[method] or (near and format("did you mean %s?", near))
            end
            if meant[method] then
                local path = format("%s.methods[%d]", collect.path(item), i - 1)
                say(path, format("'%s' is no method of HTTP; %s", method, meant[method]))
            end
        end
    end
    say_others("routes", "%d others have a method that is none of HTTP")
end

-- Upstreams --------------------------------------------------------------------------------------

-- The services by their host, and the hosts that are no upstream. What has a dot is a name of DNS.
local function hosts_of(snapshot)
    local services, hosts, is_upstream = {}, {}, {}
    for _, upstream in ipairs(snapshot.upstreams) do
        is_upstream[upstream.name] = true
    end
    for _, service in ipairs(snapshot.services) do
        local host = service.host
        if not services[host] then
            services[host] = service
            local is_near = not is_upstream[host] and not host:find("[.:]")
            hosts[#hosts + 1] = is_near and #hosts < MAX_HOSTS and host or nil
        end
    end
    return services, hosts
end

-- What is served by an upstream without targets gets a 503.
local function add_targets(state, snapshot, warn)
    local services, has_targets = {}, {}
    for _, service in ipairs(snapshot.services) do
        services[service.host] = true
    end
    for _, target in ipairs(snapshot.targets) do
        has_targets[id_of(target.upstream)] = true
    end
    local say, say_others = first_of(MAX_TARGETS, warn)
    for _, item in ipairs(state.items.upstreams) do
        if services[item.entity.name] and not has_targets[item.entity.id] then
            say(collect.path(item), "has no targets: requests are answered 503")
        end
    end
    say_others("upstreams", "%d others have no targets")
end

-- Names that differ in a number, such as web1 and web2, are both meant.
local function without_number(name)
    return (name:gsub("%d+", ""))
end

local function add_upstreams(state, snapshot, warn)
    local services, hosts = hosts_of(snapshot)
    local compared = 0
    for _, item in ipairs(#hosts > 0 and state.items.upstreams or {}) do
        local name = item.entity.name
        local is_unused = not services[name] and #name >= LEAST_NAME
        compared = is_unused and compared + 1 or compared
        local host = is_unused and compared <= MAX_UPSTREAMS and nearest.find(name, hosts)
        -- Of two lengths that differ by more, both are names of their own, as research and search.
        local is_near = host and math.abs(#host - #name) <= 1
        if is_near and without_number(host) ~= without_number(name) then
            local line = "is used by no service; did you mean it in service '%s' (host '%s')?"
            local service = plain(name_of(services[host]), MAX_NAME)
            warn(collect.path(item), format(line, service, host))
        end
    end
end

-- Patterns ---------------------------------------------------------------------------------------

-- The regular expressions of plugins: of fields whose elements have `is_regex`, or
-- `anchored_regex(text)`, which says as what one is run, and what follows where it gives up.
local function patterns_of(plugins, registry)
    local patterns = {}
    for _, plugin in ipairs(plugins) do
        -- A disabled one may not be there.
        local loaded = registry:get(plugin.name)
        for _, entry in ipairs(loaded and schema.field(loaded.schema, "config").fields or {}) do
            local name, field = next(entry)
            local elements = field.type == "array" and field.elements or {}
            local anchored = elements.anchored_regex
            local values = (elements.is_regex or anchored) and plugin.config[name]
            for _, text in ipairs(type(values) == "table" and values or {}) do
                local run, outcome
                if anchored then
                    run, outcome = anchored(text)
                end
                if run or not anchored then
                    patterns[#patterns + 1] = {
                        owner = format("plugin '%s'", plugin.name),
                        of = plugin,
                        text = text,
                        run = run,
                        outcome = outcome,
                    }
                end
            end
        end
    end
    return patterns
end

local function add_patterns(state, snapshot, registry, warn)
    local list, owned =
        backtracking.warnings(snapshot.routes, patterns_of(snapshot.plugins, registry))
    local paths = {}
    for _, kind in ipairs(next(owned) and { "routes", "plugins" } or {}) do
        for _, item in ipairs(state.items[kind]) do
            paths[item.entity] = collect.path(item)
        end
    end
    for i, message in ipairs(list) do
        local pattern = owned[i]
        -- The path has the name.
        warn(
            pattern and paths[pattern.of] or "",
            pattern and message:sub(#pattern.owner + #": " + 1) or message
        )
    end
end

-- Plugins ----------------------------------------------------------------------------------------

-- Whether a plugin may say who the consumer is; of a user's own nobody knows.
local function may_authenticate(plugin)
    return plugin ~= nil and (not plugin.native or plugin.handler.identifies_consumer == true)
end

-- Where plugins of a higher priority say who the consumer is: of all requests, or `ids` of routes
-- and services; `services`: route -> its service; `with_routes`: services of a route among the ids.
local function places_of(snapshot, registry, priority)
    local places = { ids = {}, services = {}, with_routes = {} }
    for _, plugin in ipairs(snapshot.plugins) do
        local loaded = registry:get(plugin.name)
        if plugin.enabled and may_authenticate(loaded) and loaded.priority > priority then
            local id = id_of(plugin.route) or id_of(plugin.service)
            places.is_everywhere = places.is_everywhere or not id
            places.ids[id or 0] = true
        end
    end
    for _, route in ipairs(snapshot.routes) do
        local service = id_of(route.service)
        places.services[route.id] = service
        places.with_routes[places.ids[route.id] and service or 0] = true
    end
    return places
end

-- Whether somebody may be known to a plugin: on its way, or that of one of its requests.
local function is_reached(plugin, places)
    local route, service = id_of(plugin.route), id_of(plugin.service)
    if places.is_everywhere or (not route and not service) then
        return next(places.ids) ~= nil
    elseif route then
        service = places.services[route] or service
        return places.ids[route] or (service ~= nil and places.ids[service])
    end
    return places.ids[service] or places.with_routes[service]
end

local function authenticators(registry)
    local names = {}
    for _, plugin in ipairs(registry:list()) do
        names[#names + 1] = plugin.handler.identifies_consumer and plugin.name or nil
    end
    sort(names)
    return #names > 0 and format(" (%s)", concat(names, ", ")) or ""
end

local function add_plugins(state, snapshot, registry, lacks, warn)
    local seen, places = {}, {}
    for _, item in ipairs(state.items.plugins) do
        local entity = item.entity
        local plugin = registry:get(entity.name)
        local why = plugin and not seen[entity.name] and lacks(plugin, entity)
        if why then
            seen[entity.name] = true
            warn(collect.path(item), why)
        end
        local needs = plugin and entity.enabled and plugin.handler.needs_consumer
        if needs and not id_of(entity.consumer) and not id_of(entity.consumer_group) then
            local priority = plugin.priority
            places[priority] = places[priority] or places_of(snapshot, registry, priority)
            if not is_reached(entity, places[priority]) then
                local line = "no authentication plugin%s runs before it: %s"
                warn(collect.path(item), format(line, authenticators(registry), needs))
            end
        end
    end
end

-- Consumers for requests without credentials that the file does not have.
local function add_anonymous(state, snapshot, registry, warn)
    local known
    local say, say_others = first_of(MAX_PLUGINS, warn)
    for _, item in ipairs(state.items.plugins) do
        local entity = item.entity
        local plugin = entity.enabled and registry:get(entity.name)
        local identifies = plugin and plugin.handler and plugin.handler.identifies_consumer
        local name = identifies and entity.config.anonymous
        for _, consumer in ipairs(name and not known and snapshot.consumers or {}) do
            known = known or {}
            known[consumer.id], known[consumer.username or consumer.id] = true, true
        end
        if type(name) == "string" and not (known and (known[name] or known[normal_id(name)])) then
            local message = "no consumer has this id or username: requests without valid "
                .. "credentials are answered 500; add the consumer, or remove the field"
            say(collect.path(item) .. ".config.anonymous", message)
        end
    end
    say_others("plugins", "%d others have an `anonymous` that is no consumer")
end

-- Certificates -----------------------------------------------------------------------------------

local function shown(names)
    local list = {}
    for i = 1, math.min(#names, MAX_NAMES) do
        list[i] = plain(names[i], MAX_NAME)
    end
    local more = #names > MAX_NAMES and format(" and %d more", #names - MAX_NAMES) or ""
    return #names > 0 and concat(list, ", ") .. more or "no name"
end

local function add_names(state, snapshot, warn)
    local names_of, certificates = {}, {}
    for _, certificate in ipairs(#snapshot.snis > 0 and snapshot.certificates or {}) do
        certificates[certificate.id] = certificate
    end
    -- The names that a certificate is for, and an index of them.
    local function find(chain)
        if not names_of[chain] then
            local names = x509.names(chain)
            names_of[chain] = { names = names, index = x509.index(names) }
        end
        return names_of[chain]
    end
    local say, say_others = first_of(MAX_SNIS, warn)
    for _, item in ipairs(state.items.snis) do
        local name, certificate = item.entity.name, certificates[id_of(item.entity.certificate)]
        for _, field in ipairs(name ~= "*" and certificate and { "cert", "cert_alt" } or {}) do
            local found = certificate[field] and find(certificate[field])
            if found and not x509.is_for(found.index, name) then
                local line = "clients that verify the certificate refuse it: its %s is for %s"
                say(collect.path(item), format(line, field, shown(found.names)))
            end
        end
    end
    say_others("snis", "%d others have a certificate for other names")
end

--- Adds warnings to those of a file without errors. Blocks for half a second at most, of patterns,
-- for a tenth, of upstreams, and some microseconds a route or name of a certificate.
-- @tparam table state of gateway.config.collect, linked
-- @tparam table snapshot of gateway.config.link
-- @tparam table registry of its plugins
-- @tparam function lacks `(plugin, entity)` -> what the gateway lacks for it, for people, or nil
-- @phases init, and outside nginx
function _M.add(state, snapshot, registry, lacks)
    local function warn(path, message)
        state.warnings[#state.warnings + 1] = { path = path, message = message }
    end
    _M.of_routes(state.items.routes, warn)
    add_methods(state, warn)
    add_upstreams(state, snapshot, warn)
    add_targets(state, snapshot, warn)
    add_patterns(state, snapshot, registry, warn)
    add_plugins(state, snapshot, registry, lacks, warn)
    add_anonymous(state, snapshot, registry, warn)
    add_names(state, snapshot, warn)
end

return _M
