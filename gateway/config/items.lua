--- A snapshot as what the store is to hold: entities in the order of the file, and the names that
-- they use with their addresses.
--
-- Where the file refers to a value (`{vault://env/NAME}`), the store has the reference: what is
-- secret stays in the environment of those who need it.
-- @module gateway.config.items

local address = require("sluice.address")
local entities = require("gateway.entities")
local identity = require("gateway.config.identity")
local references = require("gateway.config.references")

local format = string.format

local _M = {}

-- The pause of who gives none.
local function go_on() end

local function by(list, field)
    local out = {}
    for _, entity in ipairs(list) do
        out[entity[field]] = entity
    end
    return out
end

--- The name that has to have addresses for an entity to be served.
-- @tparam string kind
-- @tparam table entity
-- @treturn string|nil nil where it has none, or an address
function _M.name_of(kind, entity)
    local host
    if kind == "services" and entity.enabled ~= false then
        host = entity.host
    elseif kind == "targets" then
        host = address.split(entity.target)
    end
    return host and not address.literal(host) and host or nil
end

--- The names that a snapshot's services and targets have, each once; addresses need no resolving.
-- A service whose host is an upstream's name uses the upstream's targets in its place. Targets that
-- no service uses have theirs, too: one may come.
-- @tparam table snapshot of gateway.config
-- @tparam[opt] function pause called for each service and target, may yield
-- @treturn {string,...} for gateway.upstream.resolver
function _M.names(snapshot, pause)
    pause = pause or go_on
    local names, seen = {}, {}
    local function add(host)
        if host and not seen[host] then
            seen[host] = true
            names[#names + 1] = host
        end
    end
    local upstreams = by(snapshot.upstreams, "name")
    for _, service in ipairs(snapshot.services) do
        add(not upstreams[service.host] and _M.name_of("services", service))
        pause()
    end
    for _, target in ipairs(snapshot.targets) do
        add(_M.name_of("targets", target))
        pause()
    end
    return names
end

--- A name as an entity of the store's own kind `names`.
-- @tparam string name
-- @tparam {string,...}|string|nil found its addresses (IPv6 in brackets), or why there are none
-- @treturn table
function _M.name(name, found)
    return {
        id = identity.uuid("names", name),
        name = name,
        addresses = type(found) == "table" and found or nil,
        failure = type(found) ~= "table" and (found or "not asked") or nil,
    }
end

--- Calls a function with each item of a snapshot but its names, for the store's `replace`. Changes
-- the snapshot's entities.
-- @tparam table snapshot of gateway.config
-- @tparam function add called with `{ kind =, put = entity }`
-- @tparam[opt] function pause called for each entity, may yield
function _M.each(snapshot, add, pause)
    pause = pause or go_on
    for _, kind in ipairs(entities.kinds) do
        for _, entity in ipairs(snapshot[kind]) do
            add({ kind = kind, put = references.put(entity) })
            pause()
        end
    end
end

--- The items of names, which stand behind all others.
-- @tparam {string,...} names of `names`
-- @tparam table found what gateway.upstream.resolver answered for them
-- @tparam[opt] function pause called for each of them, may yield
-- @treturn {table,...} `{ kind =, put = entity }`
-- @treturn {string,...} warnings of names that have no address: the rest is served
function _M.of_names(names, found, pause)
    pause = pause or go_on
    local items, warnings = {}, {}
    for i, name in ipairs(names) do
        local entity = _M.name(name, found[name])
        items[i] = { kind = "names", put = entity }
        if entity.failure then
            warnings[#warnings + 1] = format("%s: cannot be resolved: %s", name, entity.failure)
        end
        pause()
    end
    return items, warnings
end

--- All items of a snapshot. Changes its entities.
-- @tparam table snapshot of gateway.config
-- @tparam table found what gateway.upstream.resolver answered for `names`
-- @treturn {table,...} `{ kind =, put = entity }`
-- @treturn {string,...} warnings of names that have no address: the rest is served
function _M.of(snapshot, found)
    local items = {}
    local of_names, warnings = _M.of_names(_M.names(snapshot), found)
    _M.each(snapshot, function(item)
        items[#items + 1] = item
    end)
    for _, item in ipairs(of_names) do
        items[#items + 1] = item
    end
    return items, warnings
end

return _M
