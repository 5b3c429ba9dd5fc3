--- Hosts in the store that have no addresses: asked for again after 0.2 seconds, then after twice
-- as long each time, up to the period in which all hosts are. A request that needs one has it asked
-- for at once; the request itself is answered 503.
-- @module gateway.upstream.unresolved

local entity_text = require("gateway.store.entity_text")
local monotonic = require("sluice.clock").monotonic
local plain = require("gateway.schema.text").plain
local queries = require("gateway.upstream.queries")
local role = require("gateway.writer.role")

local FIRST_SECONDS = 0.2
local PERIOD_SECONDS = 30

-- Requests have a host asked for at most so often, and wait so long for a thread.
local WANTED_SECONDS, THREAD_SECONDS = 1, 2

-- So many hosts are logged in a period.
local MAX_WARNED = 100
-- Services of a host that are named, and read; bytes of a name.
local MAX_NAMED, MAX_READ, MAX_NAME = 3, 100, 100

-- What is due is looked at together, this often.
local TICK_SECONDS = 0.05

local _M = {
    -- The events of traffic workers; the event is the host
    -- (module/gateway/upstream/ngx_http_sluice_balancer_want.c).
    SOURCE = "sluice-gateway-wanted",
}

-- host -> { wait = seconds until it is asked for again, due =, asked_at =, is_asked = by itself,
-- is_wanted = by a request, seen = the round that has found it in the store }; and what `warn` has
local unresolved = {}

-- How many were logged, since when.
local warned, warned_since = 0, -PERIOD_SECONDS

-- Of sluice.timer; when the timer of `tick` runs, and its handle.
local timers, tick_at, handle

-- Gets a host and its addresses.
local on_found

local tick

-- Nothing runs as long as all is known.
local function run_at(due)
    if tick_at and tick_at <= due then
        return
    elseif tick_at then
        timers:cancel(handle)
    end
    local delay = math.max(due - monotonic(), TICK_SECONDS)
    handle = timers:at(delay, tick)
    tick_at = handle and monotonic() + delay
end

-- The enabled services with a host, for people; "" where there is none. Yields.
local function services_of(host)
    local where = { size = MAX_READ, where = { host = host } }
    local rows, more = role.read("list", "services", where)
    local names = {}
    for _, row in ipairs(rows or {}) do
        local service = entity_text.decode(row.text)
        if service.enabled ~= false then
            names[#names + 1] = plain(service.name or service.id, MAX_NAME)
        end
    end
    if #names == 0 then
        return ""
    end
    local others = more and " and others"
        or #names > MAX_NAMED and (" and %d more"):format(#names - MAX_NAMED)
        or ""
    local list = table.concat(names, ", ", 1, math.min(#names, MAX_NAMED))
    return ("; services: %s%s"):format(list, others)
end

--- Logs why a host cannot be resolved, and which services have it, for the operator who looks for
-- the reason of a 503: soon, and once. Nothing is logged where the worker leaves, which ends
-- queries and says nothing of the host, nor where there were too many of late.
-- @tparam string host
-- @tparam string reason of gateway.upstream.queries
-- @tparam string effect what that means for requests
-- @tparam table it of the host: gets `is_logged`; with `is_over` nothing is logged any more
-- @phases any
function _M.warn(host, reason, effect, it)
    local now = monotonic()
    if now >= warned_since + PERIOD_SECONDS then
        warned_since, warned = now, 0
    end
    if it.is_noted or warned >= MAX_WARNED or ngx.worker.exiting() then
        return
    end
    warned = warned + 1
    -- A store is not read in the callback of a query.
    it.is_noted = true
    local is_set = timers:at(0, function(premature)
        local services = not premature and services_of(host)
        if services == "" and it.wait and not it.is_unnamed then
            -- It may be asked for before the store has its service: next time.
            it.is_unnamed, it.is_noted, warned = true, nil, warned - 1
        elseif services and not it.is_over then
            it.is_logged = true
            local line = "names: %s: cannot be resolved: %s; %s%s"
            ngx.log(ngx.WARN, line:format(host, reason, effect, services))
        end
    end)
    it.is_noted = is_set and it.is_noted
end

local function ask(host, it)
    it.is_asked = true
    queries.ask_one("unresolved", host, function(answer)
        it.is_asked = false
        it.asked_at = monotonic()
        it.due = it.asked_at + it.wait
        it.wait = math.min(2 * it.wait, PERIOD_SECONDS)
        if unresolved[host] == it then
            run_at(it.due)
        end
        if type(answer) == "table" then
            on_found(host, answer)
        elseif unresolved[host] == it then
            _M.warn(host, answer, "requests for it are answered 503", it)
        end
    end)
end

tick = function(premature)
    tick_at = nil
    if premature then
        return
    end
    local now, due = monotonic(), math.huge
    for host, it in pairs(unresolved) do
        if not it.is_asked and it.due <= now then
            ask(host, it)
        elseif not it.is_asked then
            due = math.min(due, it.due)
        end
    end
    if due < math.huge then
        run_at(due)
    end
end

--- Notes that a host has no addresses, or may have none soon: it is asked for. Does not yield.
-- @tparam string host
-- @tparam[opt] number round of gateway.upstream.hosts, that has found it in the store
-- @phases any of the control worker, but init
function _M.note(host, round)
    local it = unresolved[host]
    if not it then
        it = { wait = 2 * FIRST_SECONDS, due = monotonic() + FIRST_SECONDS, asked_at = 0 }
        unresolved[host] = it
        run_at(it.due)
    end
    it.seen = round or it.seen
end

--- Forgets a host: it has addresses.
-- @tparam string host
-- @phases any
function _M.forget(host)
    local it = unresolved[host] or {}
    it.is_over = true
    if it.is_logged then
        ngx.log(ngx.NOTICE, "names: ", host, ": has addresses now")
    end
    unresolved[host] = nil
end

--- Forgets those that were not in the store in this round, nor noted since the one before: nobody
-- needs them any more.
-- @tparam number round
-- @phases any
function _M.sweep(round)
    for host, it in pairs(unresolved) do
        it.seen = it.seen or round
        if it.seen < round then
            unresolved[host] = nil
        end
    end
end

-- Has a host asked for that a request needs.
local function want(host)
    _M.note(host)
    local it = unresolved[host]
    if it.is_wanted or monotonic() < it.asked_at + WANTED_SECONDS then
        return
    end
    it.is_wanted = true
    queries.ask_one("wanted", host, function(answer)
        it.is_wanted = false
        it.asked_at = monotonic()
        if type(answer) == "table" then
            on_found(host, answer)
        end
    end, THREAD_SECONDS)
end

--- Begins.
-- @tparam table bus of sluice.events
-- @tparam table system a started system of sluice.timer
-- @tparam function found `found(host, addresses)`, must not yield
-- @phases init_worker
function _M.start(bus, system, found)
    timers, on_found = system, found
    bus:subscribe(_M.SOURCE, "*", function(_, host)
        want(host)
    end)
end

return _M
