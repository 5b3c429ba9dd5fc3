--- What each worker does in the benchmarks of events: it hears everything through a wildcard, and
-- publishes when asked.
--
-- A round: the publisher announces it and waits until every worker has heard that; publishes;
-- announces the end, which comes after all else, and waits until every worker has heard it and
-- left its account in a shared dictionary: how many events, a checksum over contents and order,
-- when the last one came.
-- @module agent

local cjson = require("cjson.safe")
local clock = require("clock")
local events = require("sluice.events")

local now, now_ns = clock.now, clock.now_ns

local _M = {}

-- Different strings of a size; alike ones would meet in one chain of LuaJIT's string table, the
-- same one would be found there and cost nothing.
local TEXTS = 64
-- Events between two looks at the clock.
local BATCH = 16
-- The shortest that nginx sleeps.
local TICK_SECONDS = 0.001
-- Events between two notes of a worker on how far it is, where somebody wants to know.
local NOTE_EVERY = 50

local ev, notes
local heard = { count = 0, sum = 0 }
local texts = {}

-- Folds an event into a checksum: its number, and a character that moves through the text.
local function add(sum, id, text)
    return (sum * 31 + id + text:byte(id % #text + 1)) % 4294967296
end

local function account_key(round, wid)
    return ("account/%s/%d"):format(round, wid)
end

local handlers = {}

function handlers.begin(data)
    heard = { count = 0, sum = 0, noted = data.noted, samples = data.timed and {} }
    notes:set("noted/" .. ngx.worker.id(), 0)
    notes:set(("begun/%s/%d"):format(data.round, ngx.worker.id()), true)
end

handlers["end"] = function(data)
    heard.at = now()
    local account = { count = heard.count, sum = heard.sum, at = heard.at, samples = heard.samples }
    notes:set(account_key(data.round, ngx.worker.id()), cjson.encode(account))
end

local function hear(data, event)
    if event ~= "event" then
        return handlers[event](data)
    end
    heard.sum = add(heard.sum, data.id, data.text)
    local count = heard.count + 1
    heard.count = count
    if heard.samples then
        -- in tenths of microseconds
        heard.samples[count] = math.ceil((now_ns() - data.sent_ns) / 100) / 10
    elseif heard.noted and count % NOTE_EVERY == 0 then
        notes:set("noted/" .. ngx.worker.id(), count)
    end
end

local function make_texts(size)
    local made = {}
    for i = 1, TEXTS do
        local characters = {}
        for at = 1, size do
            characters[at] = string.char(math.random(32, 126))
        end
        made[i] = table.concat(characters)
    end
    return made
end

-- Runs `step` until it returns something true, or throws after some seconds.
local function wait_for(seconds, what, step)
    local deadline = now() + seconds
    while true do
        local done = step()
        if done then
            return done
        elseif now() > deadline then
            error(what .. " after " .. seconds .. " s", 0)
        end
        ngx.sleep(TICK_SECONDS)
    end
end

-- What of `kind` every worker has left in the dictionary, by worker id; nil while one is missing.
local function from_all(kind, round)
    local found = {}
    for wid = 0, ngx.worker.count() - 1 do
        local value = notes:get(("%s/%s/%d"):format(kind, round, wid))
        if not value then
            return nil
        end
        found[tostring(wid)] = value
    end
    return found
end

local function announce(event, data, seconds)
    wait_for(seconds, "'" .. event .. "' is refused", function()
        return ev:publish("all", "bench", event, data)
    end)
end

-- Events that the slowest worker has noted, a little late.
local function slowest()
    local least = math.huge
    for wid = 0, ngx.worker.count() - 1 do
        least = math.min(least, notes:get("noted/" .. wid) or 0)
    end
    return least
end

-- A publisher's state, and its step: publishes the next event.
local function publisher(spec)
    local size = spec.size
    texts[size] = texts[size] or make_texts(size)
    local pool, data = texts[size], {}
    local state = { offered = 0, accepted = 0, queued = 0, sum = 0 }
    function state.publish()
        local id = state.accepted + 1
        local text = pool[id % TEXTS + 1]
        data.id, data.text = id, text
        if spec.timed then
            data.sent_ns = now_ns()
        end
        local ok, err = ev:publish("all", "bench", "event", data)
        if ok then
            state.accepted = id
            state.sum = add(state.sum, id, text)
            state.queued = state.queued + (ok == "queued" and 1 or 0)
        elseif err ~= "full" then
            error(err, 0)
        end
        return ok
    end
    return state
end

-- Publishes for `seconds` as fast as goes without loss: what is refused, or queued, makes it wait;
-- and so do readers that lag by more than `window`, if there is one. Between slices, which are
-- the same for all transports, the worker gets to its other work.
local function flood(state, spec)
    local deadline = now() + spec.seconds
    local room = spec.window or math.huge
    repeat
        local pause = math.min(now() + spec.slice_ms / 1000, deadline)
        local ok = state.accepted - (spec.window and slowest() or 0) < room
        while ok == true and now() < pause do
            for _ = 1, BATCH do
                ok = state.publish()
                if ok ~= true then
                    break
                end
            end
            ok = ok == true and (not spec.window or state.accepted - slowest() < room)
        end
        ngx.sleep(TICK_SECONDS)
    until now() >= deadline
    state.offered = state.accepted
end

-- Publishes `count` events each `interval` seconds, whoever is late; what is refused is lost.
local function tick(state, spec)
    local first = now()
    for number = 0, math.max(1, math.floor(spec.seconds / spec.interval + 0.5)) - 1 do
        local due = first + number * spec.interval
        if number > 0 then
            ngx.sleep(math.max(due - now(), TICK_SECONDS))
        end
        state.offered = state.offered + spec.count
        for _ = 1, spec.count do
            state.publish()
        end
    end
end

local MODES = { flood = flood, tick = tick }

-- One round; see bench/events.py for the fields of `spec`.
local function run(spec)
    local state = publisher(spec)
    local opening = { round = spec.round, noted = spec.window and true, timed = spec.timed }
    announce("begin", opening, spec.patience)
    wait_for(spec.patience, "not every worker has heard the beginning", function()
        return from_all("begun", spec.round)
    end)
    local began = now()
    MODES[spec.mode](state, spec)
    local published = now()
    announce("end", { round = spec.round }, spec.patience)
    local accounts = wait_for(spec.patience, "not every worker has heard the end", function()
        return from_all("account", spec.round)
    end)
    local last = 0
    for wid, account in pairs(accounts) do
        accounts[wid] = cjson.decode(account)
        last = math.max(last, accounts[wid].at)
    end
    return {
        offered = state.offered,
        accepted = state.accepted,
        queued = state.queued,
        sum = state.sum,
        publish_seconds = published - began,
        drain_seconds = last - published,
        seconds = last - began,
        workers = accounts,
    }
end

--- Serves `/run` (a round; the body says which), and `/who`.
-- @phases content
function _M.serve()
    local answer
    if ngx.var.uri == "/who" then
        answer = { worker = ngx.worker.id(), ready = from_all("ready", "") ~= nil }
    else
        ngx.req.read_body()
        local spec = assert(cjson.decode(ngx.req.get_body_data()))
        local ok, result = pcall(run, spec)
        answer = ok and result or { failed = tostring(result) }
    end
    local text = cjson.encode(answer) .. "\n"
    ngx.header.content_length = #text
    ngx.print(text)
end

local function tell_ready(premature)
    if premature then
        return
    elseif not ev or ev:is_ready() then
        notes:set("ready//" .. ngx.worker.id(), true)
    else
        ngx.timer.at(0.01, tell_ready)
    end
end

--- Serves a connection of the socket transport.
-- @phases content
function _M.broker()
    return ev:run()
end

--- @tparam table|nil options of sluice.events; nil: a worker without events
-- @phases init
function _M.init(options)
    notes = ngx.shared.notes
    ev = options and assert(events.new(options))
end

--- @phases init_worker
function _M.init_worker()
    if ev then
        ev:subscribe("*", "*", hear)
        assert(ev:init_worker())
    end
    tell_ready()
end

return _M
