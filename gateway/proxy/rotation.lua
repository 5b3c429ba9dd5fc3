--- The rotation of an upstream's peers: weighted round-robin.
--
-- No arithmetic per request: when the configuration loads, each peer's turns
-- are spread evenly over one cycle, and a pick is the next entry of that array.
-- Every worker turns its own, from a random start.
-- @module gateway.proxy.rotation

local _M = {}
local Rotation = {}
Rotation.__index = Rotation

-- Kong's default for an upstream's `slots`.
local DEFAULT_SLOTS = 10000

local function gcd(a, b)
    while b ~= 0 do
        a, b = b, a % b
    end
    return a
end

--- How many turns of the cycle each peer has: its weight in lowest terms,
-- scaled down where the cycle would be longer than `slots`.
local function turns_of(peers, slots)
    local divisor, total = 0, 0
    for _, peer in ipairs(peers) do
        divisor = gcd(peer.weight, divisor)
        total = total + peer.weight
    end
    total = total / divisor
    local turns = {}
    for i, peer in ipairs(peers) do
        local weight = peer.weight / divisor
        if total > slots then
            weight = math.max(1, math.floor(weight * slots / total + 0.5))
        end
        turns[i] = weight
    end
    return turns
end

--- The cycle: turn k of a peer with w turns stands at (k - 1/2) / w of it.
local function cycle(peers, slots)
    local places = {}
    for i, turns in ipairs(turns_of(peers, slots)) do
        for k = 1, turns do
            places[#places + 1] = { at = (k - 0.5) / turns, peer = peers[i], order = i }
        end
    end
    table.sort(places, function(a, b)
        if a.at ~= b.at then
            return a.at < b.at
        end
        return a.order < b.order
    end)
    local out = {}
    for i, place in ipairs(places) do
        out[i] = place.peer
    end
    return out
end

--- Compiles the rotation of some peers.
-- @tparam {table,...} peers `{ip, port, weight, host}`; ip with brackets
--   around IPv6, weight 0 to 65535, 0 takes no traffic, host is the Host
--   header for this peer or nil
-- @tparam[opt=10000] number slots longest cycle
-- @treturn table rotation; its `empty` when no peer can be picked
function _M.new(peers, slots)
    local usable, host, host_varies = {}, nil, false
    for _, peer in ipairs(peers) do
        if peer.weight > 0 then
            peer.name = peer.ip .. ":" .. peer.port
            usable[#usable + 1] = peer
            host_varies = host_varies or (host ~= nil and host ~= peer.host)
            host = host or peer.host
        end
    end
    local turns = #usable > 0 and cycle(usable, slots or DEFAULT_SLOTS) or {}
    return setmetatable({
        peers = usable,
        turns = turns,
        length = #turns,
        at = 0,
        empty = #usable == 0,
        -- The Host header of all peers, where they agree on one.
        host = not host_varies and host or nil,
        host_varies = host_varies,
    }, Rotation)
end

--- Starts the rotation at a random place, so that workers do not all send
-- their first requests to the same peer.
function Rotation:shuffle_start()
    if self.length > 0 then
        self.at = math.random(0, self.length - 1)
    end
end

--- The next peer in the rotation. O(1).
-- @treturn table peer
function Rotation:pick()
    local at = self.at + 1
    if at > self.length then
        at = 1
    end
    self.at = at
    return self.turns[at]
end

local function untried(peer, tried)
    return not tried:find(" " .. peer.name .. ",", 1, true)
end

--- A peer for a retry: one that was not tried, or, when all were, the next one.
-- O(peers).
-- @tparam string upstream_addr nginx's $upstream_addr as it is between two tries: `A, B : `, the
--   peers tried so far, and after the colon the one that has no name yet
-- @treturn table peer
function Rotation:pick_untried(upstream_addr)
    local tried = " " .. upstream_addr:gsub(" : ", ", ") .. ","
    local next_peer = self:pick()
    if untried(next_peer, tried) then
        return next_peer
    end
    for _, peer in ipairs(self.peers) do
        if untried(peer, tried) then
            return peer
        end
    end
    return next_peer
end

return _M
