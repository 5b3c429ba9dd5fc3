--- The way to a service: its peers, timeouts, retries.
--
-- Rotations are kept apart from all else, and over changes: one goes on from where it is as long as
-- the upstream, its targets and the addresses of their names are the same.
-- @module gateway.proxy.destination

local address = require("sluice.address")
local cache = require("gateway.proxy.cache")
local core = require("sluice.core")
local flags = require("gateway.image.flags")
local image = require("gateway.proxy.image")
local rotation = require("gateway.proxy.rotation")

local bit = require("bit")

local C = core.C
local concat = table.concat
local number, text = image.number, image.text
local rshift = bit.rshift

local DEFAULT_TIMEOUT_MS = 60000 -- what nginx.conf has

-- Turns that the rotations of a generation of the cache have together, and what one costs beside
-- them: some 1,000 plain ones, or ten of the longest usual cycles.
local MAX_TURNS = 100000
local TURNS_OF_ONE = 100

local _M = {}

-- Protocol, upstream or host and port -> {made_of, rotation}.
local rotations

local function cost_of(entry)
    return TURNS_OF_ONE + entry.rotation.length
end

--- Forgets all rotations.
function _M.clear()
    rotations = cache.new(MAX_TURNS, cost_of)
end

--- Notes an entity that a rotation is made of.
local function note(made_of, found)
    local slot, _, revision = image.place(found)
    made_of[#made_of + 1] = slot
    made_of[#made_of + 1] = revision
end

--- The addresses of a host: itself, or what the resolver has found; none where it found nothing.
local function addresses_of(host, made_of)
    local literal = address.literal(host)
    if literal then
        return { literal }
    end
    local found = image.by_key(C.SLUICE_CORE_NAME, host)
    if not found then
        made_of[#made_of + 1] = "?"
        return {}
    end
    note(made_of, found)
    return image.list(found, C.SLUICE_CORE_NAME_ADDRESSES)
end

--- What the peers of an upstream are made of.
-- @treturn table an entry for each target: `{host, port, weight, addresses}`
local function read_targets(upstream, made_of)
    local slot = image.place(upstream)
    note(made_of, upstream)
    local targets = image.children(C.SLUICE_CORE_TARGET, C.SLUICE_CORE_UPSTREAM, slot)
    for i, target in ipairs(targets) do
        note(made_of, target)
        local host, port = address.split(text(target, C.SLUICE_CORE_TARGET_TARGET))
        targets[i] = {
            host = host,
            port = tonumber(port),
            weight = number(target, C.SLUICE_CORE_TARGET_WEIGHT),
            addresses = addresses_of(host, made_of),
        }
    end
    return targets
end

local function peers_of(targets, protocol, host_header)
    local peers = {}
    for _, target in ipairs(targets) do
        local header = host_header or address.authority(target.host, target.port, protocol)
        for _, ip in ipairs(target.addresses) do
            peers[#peers + 1] =
                { ip = ip, port = target.port, weight = target.weight, host = header }
        end
    end
    return peers
end

--- The rotation of a key: the one that there is where it is made of the same.
local function keep(key, made_of, make)
    made_of = concat(made_of, " ")
    local entry = rotations:get(key)
    if not entry or entry.made_of ~= made_of then
        entry = { made_of = made_of, rotation = make() }
        entry.rotation:shuffle_start()
        rotations:set(key, entry)
    end
    return entry.rotation
end

local function rotation_of(protocol, host, port)
    local upstream = image.by_key(C.SLUICE_CORE_UPSTREAM, host)
    local made_of = {}
    if upstream then
        local targets = read_targets(upstream, made_of)
        return keep(("%s %d"):format(protocol, made_of[1]), made_of, function()
            local host_header = text(upstream, C.SLUICE_CORE_UPSTREAM_HOST_HEADER)
            local slots = number(upstream, C.SLUICE_CORE_UPSTREAM_SLOTS)
            local made = rotation.new(peers_of(targets, protocol, host_header), slots)
            made.no_peer = "failure to get a peer from the ring-balancer"
            return made
        end)
    end
    local target = { host = host, port = port, weight = 100 }
    target.addresses = addresses_of(host, made_of)
    return keep(("%s %s %d"):format(protocol, host, port), made_of, function()
        local made = rotation.new(peers_of({ target }, protocol))
        made.no_peer = "name resolution failed"
        return made
    end)
end

local function other_timeout(ms)
    return ms ~= DEFAULT_TIMEOUT_MS and ms or nil
end

--- Compiles the way to a service. It stands in ngx.ctx as it is when no plugin runs, hence the
-- reference to itself.
-- @tparam cdata service of gateway.proxy.image
-- @treturn table
function _M.compile(service)
    local is_https = bit.band(number(service, C.SLUICE_CORE_SERVICE_FLAGS), flags.service.HTTPS)
        ~= 0
    -- The upper half is the port.
    local both = number(service, C.SLUICE_CORE_SERVICE_PORT)
    local destination = {
        rotation = rotation_of(
            is_https and "https" or "http",
            text(service, C.SLUICE_CORE_SERVICE_HOST),
            rshift(both, 16)
        ),
        retries = bit.band(both, 0xffff),
        scheme_upstream = is_https and "https://sluice_https" or nil,
        path = text(service, C.SLUICE_CORE_SERVICE_PATH) or "/",
        -- Milliseconds, or nil where nginx.conf has the same.
        connect_timeout = other_timeout(number(service, C.SLUICE_CORE_SERVICE_CONNECT_MS)),
        write_timeout = other_timeout(number(service, C.SLUICE_CORE_SERVICE_WRITE_MS)),
        read_timeout = other_timeout(number(service, C.SLUICE_CORE_SERVICE_READ_MS)),
    }
    destination.destination = destination
    return destination
end

return _M
