--- The hosts of services and targets, with their addresses: asked for when a configuration comes,
-- and again every 30 seconds; what differs then is a change (gateway.writer.queue). Hosts that
-- nobody has any more go then. Those without addresses are asked for sooner
-- (gateway.upstream.unresolved).
--
-- A host that cannot be resolved any more keeps the addresses that it had.
-- @module gateway.upstream.hosts

local entity_text = require("gateway.store.entity_text")
local items = require("gateway.config.items")
local monotonic = require("sluice.clock").monotonic
local queries = require("gateway.upstream.queries")
local queue = require("gateway.writer.queue")
local role = require("gateway.writer.role")
local unresolved = require("gateway.upstream.unresolved")

local PERIOD_SECONDS = 30
-- Hosts that are read at a time, and how long their answers are waited for: slow ones come
-- when they do.
local PAGE, PAGE_SECONDS = 1000, 5
-- Meanwhile it is looked this often whether the worker exits, which waits for whoever waits.
local LOOK_SECONDS = 0.2
-- How long a configuration waits for its hosts, and a change for a new one.
local CONFIGURATION_SECONDS, HOST_SECONDS = 5, 2

-- How long it is remembered which hosts the store has, and how many.
local FRESH_SECONDS = 30
local MAX_REMEMBERED = 10000
-- Answers that come within this time are one change: ten a second at most.
local TOGETHER_SECONDS = 0.1

-- How often answers are put, each time without those of hosts that have changed meanwhile.
local MAX_TRIES = 10

local RETRY_SECONDS = 1

local NO_ANSWER = "no answer yet"

local _M = {}

-- host -> { entity =, time = when it was looked up }
local remembered, remembered_count = {}, 0

-- host -> { addresses, revision at which they were asked for; nil: the store had none }, to be put
local answers = {}

-- Hosts with addresses that could not be resolved the last time: host -> { round = }, and
-- what gateway.upstream.unresolved's `warn` has.
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

-- Those of hosts that still are what they were when they were asked for.
local function still_wanted(changes)
    local wanted = {}
    for _, change in ipairs(changes) do
        local row = role.read("named", "names", change.put.name)
        if row and row.revision == change.if_revision then
            wanted[#wanted + 1] = change
        end
    end
    return wanted
end

-- What has been answered, as changes. The host of one that the store did not have when it was asked
-- for may have come, or got addresses, since.
local function take_changes()
    local changes, taken = {}, answers
    answers = {}
    for host, answer in pairs(taken) do
        local revision = answer.revision
        if not revision then
            local row = role.read("named", "names", host)
            local is_known = row and entity_text.decode(row.text).addresses
            if is_known then
                unresolved.forget(host)
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
    local done, err
    for _ = 1, MAX_TRIES do
        if #changes == 0 then
            return
        end
        done, err = queue.transaction(changes)
        if done or err.err ~= "changed" then
            break
        end
        -- A configuration has come meanwhile. It may have some of the hosts no more, or have asked
        -- later: the next round sees to those. The others are put.
        changes = still_wanted(changes)
    end
    if not done and err.err ~= "changed" then
        ngx.log(ngx.ERR, "names keep their previous addresses: ", err.message or err.err)
    end
    for _, change in ipairs(done and changes or {}) do
        unresolved.forget(change.put.name)
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

-- Which of these hosts nobody has any more: whoever comes to have one puts it again.
local function find_unused(hosts)
    local unused = {}
    for _, host in ipairs(role.read("unused", "names", hosts) or {}) do
        unused[host] = true
    end
    return unused
end

-- Notes that a host with addresses could not be resolved. That is logged once, and when it can be
-- again.
local function note_failure(host, reason)
    local it = failed[host]
    if not it then
        it = {}
        failed[host] = it
        unresolved.warn(host, reason, "its previous addresses are kept", it)
    end
    it.round = round
end

local function note_success(host)
    local it = failed[host] or {}
    it.is_over = true
    if it.is_logged then
        ngx.log(ngx.NOTICE, "names: ", host, ": can be resolved again")
    end
    failed[host] = nil
end

-- Has a host asked for that has addresses. One that could not be resolved the last time waits for
-- none that could, and they not for it.
local function ask_again(row, entity, callback)
    local host = entity.name
    local lane = failed[host] and "unresolved" or "resolved"
    if failed[host] then
        failed[host].round = round
    end
    queries.ask_one(lane, host, function(answer)
        if type(answer) ~= "table" then
            note_failure(host, answer)
        else
            note_success(host)
            if not is_same(entity.addresses, answer) then
                keep(host, answer, row.revision)
            end
        end
        callback(lane)
    end)
    return lane == "resolved"
end

-- Asks for a page of hosts, and waits a while for those that have addresses. Returns those that are
-- to go.
local function refresh_page(rows)
    local hosts, entities, changes = {}, {}, {}
    for i, row in ipairs(rows) do
        entities[i] = entity_text.decode(row.text)
        hosts[i] = entities[i].name
    end
    local unused = find_unused(hosts)
    local done, missing = require("ngx.semaphore").new(0), 0
    local function count(lane)
        missing = missing - (lane == "resolved" and 1 or 0)
        if missing == 0 then
            done:post(1)
        end
    end
    for i, row in ipairs(rows) do
        if unused[hosts[i]] then
            changes[#changes + 1] =
                { kind = "names", delete = row.id, lenient = true, if_unused = true }
        elseif not entities[i].addresses then
            unresolved.note(hosts[i], round)
        elseif ask_again(row, entities[i], count) then
            missing = missing + 1
        end
    end
    local deadline = monotonic() + PAGE_SECONDS
    while missing > 0 and monotonic() < deadline and not ngx.worker.exiting() do
        done:wait(LOOK_SECONDS)
    end
    return changes
end

-- Forgets what is noted of hosts that are gone.
local function sweep()
    unresolved.sweep(round)
    for host, it in pairs(failed) do
        if it.round < round then
            failed[host] = nil
        end
    end
end

--- Asks for all hosts; what differs becomes changes as answers come. Hosts that no service and no
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
        local rows, next_offset = role.read("list", "names", { size = PAGE, offset = offset })
        if not rows then
            -- Not ready, or not this worker's to write: the next round may be.
            return false
        end
        local changes = refresh_page(rows)
        local done, err = true, nil
        if #changes > 0 then
            done, err = queue.transaction(changes)
        end
        if not done and err.err == "changed" then
            return true -- a configuration has come meanwhile: the next round sees
        elseif not done then
            ngx.log(ngx.ERR, "unused names are kept: ", err.message or err.err)
            return true
        end
        offset = next_offset
    until not offset
    sweep()
    return true
end

-- What the store has may be old. It may take a while until it can be read.
local function begin(premature)
    if not _M.refresh(premature) and queue.state().state ~= "left" then
        timers:at(RETRY_SECONDS, begin)
    end
end

local function ask_page(hosts, seconds, found)
    local by_host = seconds > 0 and queries.ask("wanted", hosts, seconds) or {}
    for _, host in ipairs(hosts) do
        local reason = by_host[host] or NO_ANSWER
        local row = type(reason) ~= "table" and role.read("named", "names", host)
        local known = row and entity_text.decode(row.text).addresses
        found[host] = known or reason
        if known and reason ~= NO_ANSWER then
            note_failure(host, reason)
        elseif not known and type(reason) ~= "table" then
            unresolved.note(host)
        end
    end
end

--- Asks for the hosts of a configuration, and waits a while for answers; those that come later are
-- put when they do. Yields.
-- @tparam {string,...} hosts
-- @tparam[opt] function is_left whether nobody waits for them any more: then it ends
-- @treturn table host -> array of addresses (IPv6 in brackets), or why there is none; hosts that
-- cannot be resolved any more keep those that they had
-- @phases content, timer
function _M.ask(hosts, is_left)
    local found, deadline = {}, monotonic() + CONFIGURATION_SECONDS
    for first = 1, #hosts, PAGE do
        if is_left and is_left() then
            break
        end
        local page = { unpack(hosts, first, math.min(first + PAGE - 1, #hosts)) }
        ask_page(page, deadline - monotonic(), found)
    end
    return found
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

-- The entity of a host that was in the store 30 seconds ago at most. A file may have taken it away
-- since: it is to be put again where it is not.
local function recall(host)
    local it = remembered[host]
    if not it or ngx.now() >= it.time + FRESH_SECONDS then
        return nil
    elseif not it.entity.addresses then
        unresolved.note(host)
    end
    return it.entity
end

-- The entities of hosts, one for each, with addresses where the resolver has them within so many
-- seconds; else they come when it has.
local function find(hosts, seconds)
    local entities, unknown, seen = {}, {}, {}
    for _, host in ipairs(hosts) do
        local row = not seen[host] and role.read("named", "names", host)
        entities[#entities + 1] = row and remember(entity_text.decode(row.text)) or nil
        unknown[#unknown + 1] = not (row or seen[host]) and host or nil
        seen[host] = true
    end
    local found = queries.ask("wanted", unknown, seconds)
    for _, host in ipairs(unknown) do
        local answer = found[host] or NO_ANSWER
        if type(answer) ~= "table" then
            unresolved.note(host)
        end
        entities[#entities + 1] = remember(items.name(host, answer))
    end
    return entities
end

-- What changes make of upstreams: their ids, and the names that they have afterwards.
local function upstreams_of(changes, pause)
    local found = { ids = {}, names = {}, read = {} }
    for _, change in ipairs(changes) do
        if change.kind == "upstreams" then
            found.ids[change.id] = true
            if change.put then
                found.names[change.put.name] = true
            end
        end
        pause()
    end
    return found
end

-- The name of an upstream that it has no more: services with this host are to have addresses.
local function lost_name(change)
    local row = change.kind == "upstreams" and role.read("get", "upstreams", change.id)
    local name = row and row.id == change.id and entity_text.decode(row.text).name
    return name and not (change.put and change.put.name == name) and name or nil
end

-- Whether a service's host is an upstream. What was read for that is kept.
local function is_upstream(upstreams, name)
    if upstreams.names[name] == nil then
        local row = role.read("named", "upstreams", name)
        local is_it = row ~= nil and not upstreams.ids[row.id]
        upstreams.read[#upstreams.read + 1] = is_it and row or nil
        upstreams.names[name] = is_it
    end
    return upstreams.names[name]
end

--- The entities of hosts that changes begin to need, with addresses where the resolver has them
-- within two seconds. Yields.
-- @tparam {table,...} changes `{ kind =, id =, put = entity, nil where it is deleted }`
-- @tparam function pause called for each of them, may yield
-- @treturn {table,...} of the kind `names`, to be put where the store has none
-- @treturn {table,...} rows of upstreams that stand for their names: each has to be there still
-- when the changes are made
-- @phases content, timer
function _M.needed(changes, pause)
    local upstreams, found = upstreams_of(changes, pause), {}
    local asked, lost, seen = {}, {}, {}
    for _, change in ipairs(changes) do
        local host = change.put and items.name_of(change.kind, change.put)
        local name = host or lost_name(change)
        if name and not seen[name] then
            local known = recall(name)
            local is_needed = known or change.kind ~= "services" or not is_upstream(upstreams, name)
            local list = known and found or host and asked or lost
            list[#list + 1] = is_needed and (known or name) or nil
            seen[name] = is_needed
        end
        pause()
    end
    -- Services seldom have a lost host: nobody waits.
    for _, entities in ipairs({ find(asked, HOST_SECONDS), find(lost, 0) }) do
        for _, entity in ipairs(entities) do
            found[#found + 1] = entity
        end
    end
    return found, upstreams.read
end

--- Starts to keep addresses fresh; all are asked for at once.
-- @tparam table bus of sluice.events
-- @tparam table system a started system of sluice.timer
-- @phases init_worker
function _M.start(bus, system)
    timers = system
    unresolved.start(bus, timers, keep)
    timers:at(0, begin)
    timers:named_every("names", { interval = PERIOD_SECONDS, overlap = "skip" }, _M.refresh)
end

return _M
