--- Names to addresses for plugins: the control worker asks the system's resolver, in a thread, and
-- tells all workers, which remember.
--
-- A traffic worker has no threads (ngx_sluice_threads.c), and the resolver blocks. The control
-- worker needs nobody for its own plugins, also when it leaves.
-- @module gateway.pdk.dns

local address = require("sluice.address")
local seconds = require("sluice.clock").monotonic

local assert = assert
local max = math.max
local min = math.min
local ngx = ngx
local type = type

-- How long addresses are good.
local FRESH_SECONDS = 30

-- How long to wait for the resolver. It may be busy with other names; the control worker may have
-- died, so that its successor has to be asked.
local WAIT_SECONDS, ASK_AGAIN_SECONDS = 30, 3

-- Names to remember; beyond, all are forgotten.
local MAX_NAMES = 1000

local CONTROL_WORKER = { worker = 0 }

local _M = {
    -- The events: `ask` with {host}, `answer` with {host, addresses or why there are none, time}.
    SOURCE = "sluice-gateway-names",
}

local bus, resolver

-- host -> {addresses, time}
local known, count = {}, 0

-- host -> {semaphore, waiters, err, next_at}, as long as somebody waits
local asked = {}

local function remember(host, addresses, time)
    if not known[host] then
        if count >= MAX_NAMES then
            known, count = {}, 0
        end
        count = count + 1
    end
    known[host] = { addresses = addresses, time = time }
end

--- Takes an answer.
-- @tparam table answer see `SOURCE`
-- @phases any
function _M.hear(answer)
    local round = asked[answer.host]
    if type(answer.addresses) == "table" then
        remember(answer.host, answer.addresses, answer.time)
    elseif round then
        round.err = answer.addresses
    end
    if round then
        asked[answer.host] = nil
        round.semaphore:post(round.waiters)
    end
end

--- Hears of names from then on.
-- @tparam table events of sluice.events, of this worker
-- @phases init_worker
function _M.init_worker(events)
    bus = events
    bus:subscribe(_M.SOURCE, "answer", _M.hear)
end

--- Asks this worker from then on, and no other.
-- @tparam function ask `(question)`: sees to an answer to be heard
-- @phases init_worker
function _M.answer_here(ask)
    resolver = ask
end

local function send(question)
    if resolver then
        resolver(question)
        return true
    end
    return bus:publish(CONTROL_WORKER, _M.SOURCE, "ask", question)
end

-- Asks until there is an answer, for so many seconds, and again where the control worker may have
-- died meanwhile. All who wait for a host share a round. Yields.
local function ask(host, limit)
    local round = asked[host]
        or { semaphore = assert(require("ngx.semaphore").new(0)), waiters = 0, next_at = 0 }
    asked[host] = round
    round.waiters = round.waiters + 1
    local deadline = seconds() + limit
    local done
    repeat
        local now = seconds()
        local is_sent = true
        if now >= round.next_at then
            round.next_at = now + ASK_AGAIN_SECONDS
            is_sent, round.err = send({ host = host })
        end
        local wait = min(deadline, round.next_at) - now
        done = is_sent and round.semaphore:wait(max(wait, 0.001))
    until done or not is_sent or seconds() >= deadline
    round.waiters = round.waiters - 1
    if round.waiters == 0 and asked[host] == round then
        asked[host] = nil
    end
    return done, round
end

--- The addresses of a host, at most 30 seconds old unless the resolver fails. Yields.
-- @tparam string host name or address
-- @tparam[opt=30] number limit seconds to wait
-- @treturn {string,...}|nil addresses, IPv6 in brackets
-- @treturn string|nil the resolver's reason, or that it has not answered
-- @phases access, timers
function _M.resolve(host, limit)
    local literal = address.literal(host)
    if literal then
        return { literal }
    end
    local found = known[host]
    if found and ngx.now() < found.time + FRESH_SECONDS then
        return found.addresses
    end
    local done, round = ask(host, min(limit or WAIT_SECONDS, WAIT_SECONDS))
    found = known[host] or found
    if found then
        return found.addresses
    end
    return nil, round.err or (done and "no address" or "the resolver did not answer")
end

return _M
