--- The router: which route does a request belong to?
--
-- `new` compiles the routes once; `match` answers with a few hash look-ups.
-- The semantics are those of Kong's `traditional_compatible` router,
-- written down with their reasons in `docs/router.md`; `test/unit/support/
-- oracle.lua` is the slow, obvious router that this one is compared with.
--
-- A route becomes one *entry* for each pair of its hosts and paths. All
-- entries are sorted by precedence once; an entry's place is its *rank*, and
-- the lower rank wins. The entries are then reached through three levels:
--
--   host -> room       exact hosts by hash, wildcards by the hash of the
--                      host's head or tail in each length that is in use,
--                      and one room for routes without hosts
--   prefix -> bucket   in a room, by the hash of the path's head in each
--                      length that is in use there (regular expressions under
--                      the text that they must begin with, routes without
--                      paths under the empty string)
--   bucket -> entry    a list by rank; method, port, headers and the regular
--                      expression are tested here
--
-- Rooms and lengths know their lowest rank, so what cannot beat the best entry
-- found so far is never looked at.
--
-- @module gateway.router
-- @usage
-- local r = assert(router.new(routes, plans))
-- local plan, prefix, pattern = r:match("GET", "example.com", 8000, "/api/x")

local entries = require("gateway.router.entries")
local regex = require("gateway.router.regex")

local sub, lower = string.sub, string.lower

-- Loses against every entry.
local NO_ENTRY = { rank = math.huge }

local _M = {}
local methods = {}
local mt = { __index = methods }

--- Keys of several lengths: which lengths are in use, best rank first.
local function new_index()
    return { map = {}, lengths = {}, ranks = {} }
end

--- Note that a key of this length leads to an entry of this rank. Called from
-- the worst rank to the best, so the last call for a length is its best.
local function note_length(index, length, rank)
    index.ranks[length] = rank
end

--- Order the lengths by their best rank: `lengths[i]` has best rank `ranks[i]`.
local function close_index(index)
    local best, lengths, ranks = index.ranks, {}, {}
    for length in pairs(best) do
        lengths[#lengths + 1] = length
    end
    if #lengths > 1 then
        table.sort(lengths, function(a, b)
            return best[a] < best[b]
        end)
    end
    for i, length in ipairs(lengths) do
        ranks[i] = best[length]
    end
    index.lengths, index.ranks = lengths, ranks
    index.count = #lengths
end

local function room_of(map, key)
    local room = map[key]
    if not room then
        room = new_index()
        map[key] = room
    end
    return room
end

--- Put an entry before all those of its bucket (entries come worst first).
local function add(room, entry)
    local key = entry.key
    entry.next = room.map[key]
    room.map[key] = entry
    room.best = entry.rank
    note_length(room, #key, entry.rank)
end

local function add_all(router, sorted, tails, heads)
    for rank = #sorted, 1, -1 do
        local entry = sorted[rank]
        entry.rank = rank
        local kind, host = entry.host_kind, entry.host
        if kind == "none" then
            add(router.hostless, entry)
        elseif kind == "exact" then
            add(room_of(router.exact, host), entry)
        else
            local index = kind == "tail" and tails or heads
            add(room_of(index.map, host), entry)
            note_length(index, #host, rank)
        end
    end
end

local function close_all(router, tails, heads)
    for _, room in pairs(router.exact) do
        close_index(room)
    end
    close_index(router.hostless)
    for _, index in ipairs({ tails, heads }) do
        for _, room in pairs(index.map) do
            close_index(room)
        end
        close_index(index)
        if index.count > 0 then
            router.wildcards[#router.wildcards + 1] = index
        end
    end
end

--- Does a header of the request satisfy one condition of a route? The work is that
-- of the condition alone, however many lines the client has sent, unless it has
-- patterns; the caller bounds the lines.
-- @treturn boolean|number as `headers_match`
local function header_matches(condition, header)
    local values, lower_lines = condition.values, header.lower
    for i = 1, #values do
        if lower_lines[values[i]] then
            return true
        end
    end
    local patterns, lines, gave_up = condition.patterns, header.lines, false
    for i = 1, #patterns do
        for j = 1, #lines do
            local matched = patterns[i]:match(lines[j])
            if matched and matched >= 0 then
                return true
            end
            gave_up = gave_up or matched or false
        end
    end
    return gave_up
end

--- Does the request satisfy all of a route's conditions on headers?
-- @treturn boolean|number below 0: only a pattern that gave up keeps it from being known
local function headers_match(conditions, get_header)
    local all = true
    for i = 1, #conditions do
        local header = get_header(conditions[i].name)
        local matched = header and header_matches(conditions[i], header)
        if not matched then
            return false
        elseif matched ~= true then
            all = matched
        end
    end
    return all
end

--- Find an entry of a room that beats `best`. One whose pattern gave up counts as
-- one that matches: it, or what it would have kept from the request, must not be
-- passed over.
-- @treturn table the best entry now
-- @treturn number|nil length of what its regular expression matched; below 0: a
--   pattern of it gave up
local function search(room, best, length, method, port, path, get_header)
    local lengths, ranks, map = room.lengths, room.ranks, room.map
    for i = 1, room.count do
        if ranks[i] >= best.rank then
            break
        end
        local entry = map[sub(path, 1, lengths[i])]
        while entry and entry.rank < best.rank do
            local admitted = (not entry.methods or entry.methods[method])
                and (not entry.port or entry.port == port)
                and (not entry.headers or headers_match(entry.headers, get_header))
            if admitted then
                local gave_up = admitted ~= true and admitted or nil
                if not entry.regex then
                    best, length = entry, gave_up
                    break
                end
                local matched = entry.regex:match(path)
                if matched then
                    best, length = entry, gave_up or matched
                    break
                end
            end
            entry = entry.next
        end
    end
    return best, length
end

--- Search the rooms of the wildcards that the host satisfies.
-- The star stands for at least one byte, hence the `< #host`.
local function search_wildcards(index, host, best, length, method, port, path, get_header)
    local lengths, ranks, map = index.lengths, index.ranks, index.map
    for i = 1, index.count do
        if ranks[i] >= best.rank then
            break
        end
        local n = lengths[i]
        if n < #host then
            local room = map[index.tail and sub(host, #host - n + 1) or sub(host, 1, n)]
            if room and room.best < best.rank then
                best, length = search(room, best, length, method, port, path, get_header)
            end
        end
    end
    return best, length
end

--- Find the route of a request. An https-only route matches http as well: it is
-- the caller that redirects.
--
-- Does not yield and makes no table or closure. What `needs` says no to may be nil.
--
-- @tparam string method as in the request line
-- @tparam ?string host lower case, without port; IPv6 in brackets
-- @tparam ?number port that of the Host header, else the listener's
-- @tparam string path normalised (`gateway.router.path.normalize`)
-- @tparam ?function get_header lower-case name with dashes -> what `header` made of
--   its lines, or nil. Asked for each condition: the caller remembers
-- @treturn[1] any the route's value
-- @treturn[1] string|nil the part of the path that matched, nil if the route
--   has no paths; decoded, so `path.escape` it before it goes into a header
-- @treturn[2] nil no route
-- @treturn[3] boolean false: PCRE gave up on a pattern, so that nobody knows
-- @treturn[3] any value of the route that has it
-- @treturn[3] string PCRE's reason
-- @phases any
function methods:match(method, host, port, path, get_header)
    local best, length = NO_ENTRY, nil
    if host then
        local room = self.exact[host]
        if room then
            best, length = search(room, best, length, method, port, path, get_header)
        end
        local wildcards = self.wildcards
        for i = 1, #wildcards do
            best, length =
                search_wildcards(wildcards[i], host, best, length, method, port, path, get_header)
        end
    end
    best, length = search(self.hostless, best, length, method, port, path, get_header)

    if length then
        if length < 0 then
            return false, best.value, regex.reason(length)
        end
        return best.value, sub(path, 1, length)
    end
    return best.value, best.prefix
end

--- Compile routes.
--
-- Takes about 5 us a route (`docs/router.md`); does not yield.
--
-- @tparam table routes array of route entities with defaults filled, in the
--   order that breaks ties of `created_at`
-- @tparam table values `values[i]` is what `match` returns for `routes[i]`;
--   never nil or false
-- @treturn[1] table the router: `match`, and `needs`, a table of booleans
--   (`host`, `method`, `headers`, `port`) that says what `match` reads
-- @treturn[2] nil
-- @treturn[2] string a regular expression that does not compile, and why
-- @phases any
function _M.new(routes, values)
    local sorted, needs = entries.expand(routes, values)
    if not sorted then
        return nil, needs
    end
    local router = { needs = needs, exact = {}, hostless = new_index(), wildcards = {} }
    local tails, heads = new_index(), new_index()
    tails.tail = true
    add_all(router, sorted, tails, heads)
    close_all(router, tails, heads)
    return setmetatable(router, mt)
end

--- What conditions look at of a header.
-- @tparam {string,...} lines the values of all its lines
-- @treturn table for `match`'s get_header
-- @phases any
function _M.header(lines)
    local lower_lines = {}
    for i = 1, #lines do
        lower_lines[lower(lines[i])] = true
    end
    return { lines = lines, lower = lower_lines }
end

--- Would this pattern work as a path (without its `~`)?
--
-- @tparam string pattern
-- @treturn[1] true
-- @treturn[2] nil
-- @treturn[2] string why not
-- @phases any, and outside nginx
function _M.check_regex(pattern)
    local re, err = regex.compile(pattern, { anchored = true, check = true })
    if not re then
        return nil, err
    end
    return true
end

return _M
