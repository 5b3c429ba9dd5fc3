--- The addresses of the names in the store: asked for when a configuration comes, and again every
-- 30 seconds; what differs then is one change (gateway.control.apply). Names that nobody has any
-- more go with it.
--
-- A name that cannot be resolved any more keeps the addresses that it had.
-- @module gateway.control.addresses

local apply = require("gateway.control.apply")
local entity_text = require("gateway.store.entity_text")
local items = require("gateway.config.items")
local names = require("gateway.control.names")

local assert = assert
local ipairs = ipairs
local next = next
local ngx = ngx
local pairs = pairs
local tostring = tostring
local type = type

local PERIOD_SECONDS = 30
-- Names that are read and asked for at a time.
local PAGE = 1000

-- How long it is remembered which names the store has, and how many.
local FRESH_SECONDS = 30
local MAX_REMEMBERED = 10000
-- How often, and how long after another, it is looked for whose addresses have come late.
local LATE_TRIES = 10
local LATE_SECONDS = 0.1

local _M = {}

-- name -> { entity =, time = when it was looked up }
local remembered, remembered_count = {}, 0

-- Resolvers turn the order of addresses around.
local function is_same(before, found)
    local has, count = {}, 0
    for _, ip in ipairs(before or {}) do
        has[ip] = true
        count = count + 1
    end
    for _, ip in ipairs(found) do
        if not has[ip] then
            return false
        end
        count = count - 1
    end
    return count == 0
end

local function difference(row, entity, found)
    if type(found) ~= "table" or is_same(entity.addresses, found) then
        return nil
    end
    local put = items.name(entity.name, found)
    return { kind = "names", put = put, if_revision = row.revision }
end

-- Which of these names nobody has any more: whoever comes to have one puts it again.
local function find_unused(hosts)
    local unused = {}
    for _, host in ipairs(apply.read("unused", "names", hosts) or {}) do
        unused[host] = true
    end
    return unused
end

--- Asks for a page of names; what differs, and which are to go.
local function refresh_page(rows)
    local hosts, used, entities, changes = {}, {}, {}, {}
    for i, row in ipairs(rows) do
        entities[i] = entity_text.decode(row.text)
        hosts[i] = entities[i].name
    end
    local unused = find_unused(hosts)
    for _, host in ipairs(hosts) do
        used[#used + 1] = not unused[host] and host or nil
    end
    local found = names.ask(used)
    for i, row in ipairs(rows) do
        if unused[hosts[i]] then
            changes[#changes + 1] =
                { kind = "names", delete = row.id, lenient = true, if_unused = true }
        else
            changes[#changes + 1] = difference(row, entities[i], found[hosts[i]])
        end
    end
    return changes
end

--- Asks for all names, and applies what differs; names that no service and no target has any more
-- go. Yields.
-- @tparam boolean premature whether the worker leaves
-- @phases timer
function _M.refresh(premature)
    local offset
    if premature then
        return
    end
    repeat
        local rows, next_offset = apply.read("list", "names", { size = PAGE, offset = offset })
        if not rows then
            -- Not ready, or not this worker's to write: the next round may be.
            return
        end
        local changes = refresh_page(rows)
        local done, err = true, nil
        if #changes > 0 then
            done, err = apply.transaction(changes)
        end
        if not done and err.err == "changed" then
            -- A configuration has come meanwhile. It may have no such name any more, or have asked
            -- later: the next round sees.
            return
        elseif not done then
            ngx.log(ngx.ERR, "addresses of names are as they were: ", err.message or err.err)
            return
        end
        offset = next_offset
    until not offset
end

--- Asks for names. Yields.
-- @tparam {string,...} hosts
-- @treturn table name -> array of addresses (IPv6 in brackets), or why there is none
-- @treturn {string,...} warnings of names that keep the addresses that they had
-- @phases content, timer
function _M.ask(hosts)
    local found, warnings = names.ask(hosts), {}
    for _, host in ipairs(hosts) do
        local reason = found[host]
        local row = type(reason) ~= "table" and apply.read("get", "names", host)
        local known = row and entity_text.decode(row.text).addresses
        if known then
            found[host] = known
            local line = "%s: cannot be resolved: %s; it keeps the addresses that it had"
            warnings[#warnings + 1] = line:format(host, tostring(reason))
        end
    end
    return found, warnings
end

local function remember(entity)
    if remembered_count >= MAX_REMEMBERED then
        remembered, remembered_count = {}, 0
    end
    local is_new = remembered[entity.name] == nil
    remembered_count = remembered_count + (is_new and 1 or 0)
    remembered[entity.name] = { entity = entity, time = ngx.now() }
    return entity
end

--- The entity of a name that was in the store 30 seconds ago at most. A file may have taken it away
-- since: it is to be put again where it is not.
-- @tparam string host
-- @treturn table|nil of the kind `names`
-- @phases any
function _M.remembered(host)
    local it = remembered[host]
    return it and ngx.now() < it.time + FRESH_SECONDS and it.entity or nil
end

-- What came after those who asked had gone on; their change may still be under way.
local function add_late(found)
    for _ = 1, LATE_TRIES do
        local changes = {}
        for host, addresses in pairs(found) do
            local row = apply.read("get", "names", host)
            if row then
                changes[#changes + 1] = difference(row, entity_text.decode(row.text), addresses)
                found[host] = nil
            end
        end
        -- What cannot be changed now, the next round of `refresh` sees.
        local done = #changes == 0 or apply.transaction(changes)
        if not done or next(found) == nil then
            return
        end
        ngx.sleep(LATE_SECONDS)
    end
end

-- Asks for names, and waits so many seconds. Without an answer there is none yet.
local function ask_for(hosts, seconds)
    if #hosts == 0 then
        return {}
    end
    local found, is_late = nil, false
    local done = assert(require("ngx.semaphore").new(0))
    local asked = ngx.timer.at(0, function(premature)
        if premature then
            return
        end
        found = names.ask(hosts)
        done:post(1)
        if is_late then
            add_late(found)
        end
    end)
    if asked then
        done:wait(seconds)
    end
    is_late = found == nil
    return found or {}
end

--- The entities of names that something begins to use, with addresses where the resolver has them
-- within so many seconds; else they come when it has. Yields.
-- @tparam {string,...} hosts which may stand there several times
-- @tparam number seconds
-- @treturn {table,...} of the kind `names`, one for each host, to be put where the store has none
-- @phases content, timer
function _M.of(hosts, seconds)
    local entities, unknown, seen = {}, {}, {}
    for _, host in ipairs(hosts) do
        local row = not seen[host] and apply.read("get", "names", host)
        entities[#entities + 1] = row and remember(entity_text.decode(row.text)) or nil
        unknown[#unknown + 1] = not (row or seen[host]) and host or nil
        seen[host] = true
    end
    local found = ask_for(unknown, seconds)
    for _, host in ipairs(unknown) do
        entities[#entities + 1] = remember(items.name(host, found[host] or "no answer yet"))
    end
    return entities
end

--- Starts to keep addresses fresh.
-- @tparam table timers a started system of sluice.timer
-- @phases init_worker
function _M.start(timers)
    timers:named_every("names", { interval = PERIOD_SECONDS, overlap = "skip" }, _M.refresh)
end

return _M
