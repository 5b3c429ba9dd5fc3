--- The addresses of the names in the store: asked for when a configuration comes, and again every
-- 30 seconds; what differs then is a change (gateway.control.apply). Names that nobody has any more
-- go then. Those without addresses are asked for sooner (gateway.control.unknown_names).
--
-- A name that cannot be resolved any more keeps the addresses that it had.
-- @module gateway.control.addresses

local apply = require("gateway.control.apply")
local entity_text = require("gateway.store.entity_text")
local items = require("gateway.config.items")
local monotonic = require("sluice.clock").monotonic
local names = require("gateway.control.names")
local unknown_names = require("gateway.control.unknown_names")

local ipairs = ipairs
local min = math.min
local next = next
local ngx = ngx
local pairs = pairs
local tostring = tostring
local type = type
local unpack = unpack

local PERIOD_SECONDS = 30
-- Names that are read at a time, and how long their answers are waited for: slow ones come
-- when they do.
local PAGE, PAGE_SECONDS = 1000, 5
-- How long a configuration waits for its names.
local CONFIGURATION_SECONDS = 5

-- How long it is remembered which names the store has, and how many.
local FRESH_SECONDS = 30
local MAX_REMEMBERED = 10000
-- Answers that come within this time are one change: ten a second at most.
local TOGETHER_SECONDS = 0.1

local RETRY_SECONDS = 1

local NO_ANSWER = "no answer yet"

local _M = {}

-- name -> { entity =, time = when it was looked up }
local remembered, remembered_count = {}, 0

-- name -> { addresses, revision at which they were asked for; nil: the store had none }, to be put
local answers = {}

-- Names with addresses that could not be resolved the last time: name -> round.
local failed = {}

local round = 0

local timers

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

-- What has been answered, as changes. The name of one that the store did not have when it was asked
-- for may have come, or got addresses, since.
local function take_changes()
    local changes, taken = {}, answers
    answers = {}
    for host, answer in pairs(taken) do
        local revision = answer.revision
        if not revision then
            local row = apply.read("get", "names", host)
            local is_known = row and entity_text.decode(row.text).addresses
            if is_known then
                unknown_names.forget(host)
            end
            revision = row and not is_known and row.revision
        end
        if revision then
            local put = items.name(host, answer.addresses)
            changes[#changes + 1] = { kind = "names", put = put, if_revision = revision }
        end
    end
    return changes
end

local function put_answers(premature)
    if premature then
        answers = {}
        return
    end
    local changes = take_changes()
    if #changes == 0 then
        return
    end
    local done, err = apply.transaction(changes)
    if not done and err.err ~= "changed" then
        -- Else a configuration has come meanwhile. It may have no such name any more, or have asked
        -- later: the next round sees.
        ngx.log(ngx.ERR, "addresses of names are as they were: ", err.message or err.err)
    end
    for _, change in ipairs(done and changes or {}) do
        unknown_names.forget(change.put.name)
    end
end

-- An answer that differs from what the store has.
local function keep(host, addresses, revision)
    local is_first = next(answers) == nil
    answers[host] = { addresses = addresses, revision = revision }
    if is_first and not timers:at(TOGETHER_SECONDS, put_answers) then
        answers[host] = nil -- the next round sees
    end
end

-- Which of these names nobody has any more: whoever comes to have one puts it again.
local function find_unused(hosts)
    local unused = {}
    for _, host in ipairs(apply.read("unused", "names", hosts) or {}) do
        unused[host] = true
    end
    return unused
end

-- Has a name asked for that has addresses. One that could not be resolved the last time waits for
-- none that could, and they not for it.
local function ask_again(row, entity, callback)
    local host = entity.name
    local lane = failed[host] and "unknown" or "known"
    failed[host] = failed[host] and round
    names.ask_one(lane, host, function(answer)
        if type(answer) ~= "table" then
            failed[host] = round
        else
            failed[host] = nil
            if not is_same(entity.addresses, answer) then
                keep(host, answer, row.revision)
            end
        end
        callback(lane)
    end)
    return lane == "known"
end

-- Asks for a page of names, and waits a while for those that are known. Returns those that are to
-- go.
local function refresh_page(rows)
    local hosts, entities, changes = {}, {}, {}
    for i, row in ipairs(rows) do
        entities[i] = entity_text.decode(row.text)
        hosts[i] = entities[i].name
    end
    local unused = find_unused(hosts)
    local done, missing = require("ngx.semaphore").new(0), 0
    local function count(lane)
        missing = missing - (lane == "known" and 1 or 0)
        if missing == 0 then
            done:post(1)
        end
    end
    for i, row in ipairs(rows) do
        if unused[hosts[i]] then
            changes[#changes + 1] =
                { kind = "names", delete = row.id, lenient = true, if_unused = true }
        elseif not entities[i].addresses then
            unknown_names.note(hosts[i], round)
        elseif ask_again(row, entities[i], count) then
            missing = missing + 1
        end
    end
    if missing > 0 then
        done:wait(PAGE_SECONDS)
    end
    return changes
end

-- Forgets what is noted of names that are gone.
local function sweep()
    unknown_names.sweep(round)
    for host, seen in pairs(failed) do
        if seen < round then
            failed[host] = nil
        end
    end
end

--- Asks for all names; what differs becomes changes as answers come. Names that no service and no
-- target has any more go. Yields.
-- @tparam boolean premature whether the worker leaves
-- @treturn boolean|nil whether the store could be read
-- @phases timer
function _M.refresh(premature)
    local offset
    if premature then
        return true
    end
    round = round + 1
    repeat
        local rows, next_offset = apply.read("list", "names", { size = PAGE, offset = offset })
        if not rows then
            -- Not ready, or not this worker's to write: the next round may be.
            return false
        end
        local changes = refresh_page(rows)
        local done, err = true, nil
        if #changes > 0 then
            done, err = apply.transaction(changes)
        end
        if not done and err.err == "changed" then
            return true -- a configuration has come meanwhile: the next round sees
        elseif not done then
            ngx.log(ngx.ERR, "names that nobody has stay: ", err.message or err.err)
            return true
        end
        offset = next_offset
    until not offset
    sweep()
    return true
end

-- What the store has may be old. It may take a while until it can be read.
local function begin(premature)
    if not _M.refresh(premature) and apply.state().state ~= "left" then
        timers:at(RETRY_SECONDS, begin)
    end
end

local function ask_page(hosts, seconds, found, warnings)
    local by_host = seconds > 0 and names.ask("wanted", hosts, seconds) or {}
    for _, host in ipairs(hosts) do
        local reason = by_host[host] or NO_ANSWER
        local row = type(reason) ~= "table" and apply.read("get", "names", host)
        local known = row and entity_text.decode(row.text).addresses
        found[host] = known or reason
        if known then
            local line = "%s: cannot be resolved: %s; it keeps the addresses that it had"
            warnings[#warnings + 1] = line:format(host, tostring(reason))
        elseif type(reason) ~= "table" then
            unknown_names.note(host)
        end
    end
end

--- Asks for the names of a configuration, and waits a while for answers; those that come later are
-- put when they do. Yields.
-- @tparam {string,...} hosts
-- @tparam[opt] function is_left whether nobody waits for them any more: then it ends
-- @treturn table name -> array of addresses (IPv6 in brackets), or why there is none
-- @treturn {string,...} warnings of names that keep the addresses that they had
-- @phases content, timer
function _M.ask(hosts, is_left)
    local found, warnings, deadline = {}, {}, monotonic() + CONFIGURATION_SECONDS
    for first = 1, #hosts, PAGE do
        if is_left and is_left() then
            break
        end
        local page = { unpack(hosts, first, min(first + PAGE - 1, #hosts)) }
        ask_page(page, deadline - monotonic(), found, warnings)
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
    if not it or ngx.now() >= it.time + FRESH_SECONDS then
        return nil
    elseif not it.entity.addresses then
        unknown_names.note(host)
    end
    return it.entity
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
    local found = names.ask("wanted", unknown, seconds)
    for _, host in ipairs(unknown) do
        local answer = found[host] or NO_ANSWER
        if type(answer) ~= "table" then
            unknown_names.note(host)
        end
        entities[#entities + 1] = remember(items.name(host, answer))
    end
    return entities
end

--- Starts to keep addresses fresh; all are asked for at once.
-- @tparam table bus of sluice.events
-- @tparam table system a started system of sluice.timer
-- @phases init_worker
function _M.start(bus, system)
    timers = system
    unknown_names.start(bus, timers, keep)
    timers:at(0, begin)
    timers:named_every("names", { interval = PERIOD_SECONDS, overlap = "skip" }, _M.refresh)
end

return _M
