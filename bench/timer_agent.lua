--- What the benchmarks of timers run in nginx: recurrent timers of a side that count their fires,
-- and loops that create, cancel and collect.
--
-- A side is "none", "ngx" (ngx.timer) or "sluice" (sluice.timer).
-- @module timer_agent

local cjson = require("cjson.safe")
local clock = require("clock")
local new_table = require("table.new")
local timer = require("sluice.timer")

-- Full collections that are timed, of which the fastest counts.
local COLLECTIONS = 5
-- Seconds of the random mix, from and to.
local MIX = { 1, 60 }
-- Seconds: due in no benchmark; and until what is due within one has surely fired.
local FAR = 1000
local PATIENCE = 1.5

local now = clock.now

local _M = {}

-- Of this worker: who makes timers, what was asked for, the fires so far.
local side, order, sluice
local fired = { 0 }
-- When the recurrent timers were made, and of the mix the interval of each.
local made_at
local intervals = {}
-- Of those that `create` made.
local handles

local function nothing() end

-- Functions of their own prototypes, so that what the JIT makes of one is no help to another.
local function make_callbacks()
    local body = "fired[1] = fired[1] + 1"
    if order.yielding then
        body = body .. " sleep(0.001)"
    end
    local source = ("local fired, sleep = ... return function() %s end"):format(body)
    local callbacks = {}
    for i = 1, order.callbacks do
        callbacks[i] = assert(loadstring(source, "=callback_" .. i))(fired, ngx.sleep)
    end
    return callbacks
end

local function every(interval, callback)
    if side == "ngx" then
        assert(ngx.timer.every(interval, callback))
    else
        assert(sluice:every(interval, callback))
    end
end

--- Makes the recurrent timers of `spec`, all at once: `timers`, their `interval` in seconds or 0
-- for the random mix, how many different `callbacks` they have and whether those are `yielding`,
-- and of sluice.timer `contexts` at most.
-- @phases init_worker
function _M.start(who, spec)
    side, order = who, spec
    if side == "sluice" then
        sluice = timer.new({ max_contexts = order.contexts })
        assert(sluice:start())
    end
    made_at = now()
    if side == "none" then
        return
    end
    local callbacks = make_callbacks()
    -- The same mix on both sides.
    math.randomseed(order.timers)
    for i = 1, order.timers do
        local interval = order.interval
        if interval == 0 then
            interval = MIX[1] + math.random() * (MIX[2] - MIX[1])
            intervals[i] = interval
        end
        every(interval, callbacks[i % #callbacks + 1])
    end
end

-- Fires that were due until a moment, since the timers were made.
local function expected(moment)
    local passed = moment - made_at
    if order.interval > 0 then
        return order.timers * math.floor(passed / order.interval)
    end
    local sum = 0
    for i = 1, #intervals do
        sum = sum + math.floor(passed / intervals[i])
    end
    return sum
end

local asked = {}

--- Fires so far, and how many were due. Timers of one interval are counted half an interval after
-- they were due, when no fire is under way.
function asked.fires()
    local interval = order.interval
    if interval > 0 then
        local phase = (now() - made_at) / interval % 1
        ngx.sleep((0.5 - phase) % 1 * interval)
    end
    return { fired = fired[1], expected = expected(now()) }
end

--- Makes room for handles, which are the benchmark's own memory.
function asked.room(count)
    handles = new_table(count, 0)
    for i = 1, count do
        handles[i] = 0
    end
    collectgarbage()
    return {}
end

--- Makes `count` timers far away; nanoseconds for each.
function asked.create(count)
    collectgarbage()
    local began = now()
    if side == "ngx" then
        for _ = 1, count do
            assert(ngx.timer.at(FAR, nothing))
        end
    else
        for i = 1, count do
            handles[i] = sluice:at(FAR, nothing)
        end
    end
    return { ns = (now() - began) / count * 1e9 }
end

--- Cancels what `create` made; nanoseconds for each.
function asked.cancel(count)
    local began = now()
    for i = 1, count do
        sluice:cancel(handles[i])
    end
    local took = now() - began
    assert(sluice:stats().sys.waiting == 0, "timers are left after all were cancelled")
    return { ns = took / count * 1e9 }
end

--- Milliseconds of a full collection.
function asked.collect()
    local best = math.huge
    for _ = 1, COLLECTIONS do
        local began = now()
        collectgarbage()
        best = math.min(best, now() - began)
    end
    return { ms = best * 1e3 }
end

--- Fires `count` one-shot timers at random times of the next second; the seconds by which each was
-- late.
function asked.lateness(count)
    local late, fires = new_table(count, 0), 0
    for i = 1, count do
        local delay = math.random()
        local due = now() + delay
        local function callback()
            late[i] = now() - due
            fires = fires + 1
        end
        if side == "ngx" then
            assert(ngx.timer.at(delay, callback))
        else
            assert(sluice:at(delay, callback))
        end
    end
    ngx.sleep(PATIENCE)
    assert(fires == count, "not every timer has fired")
    return { late = late }
end

--- One timer an hour away.
function asked.hour()
    assert(sluice:at(3600, nothing))
    return {}
end

--- Answers what the URI asks for.
-- @phases content
function _M.serve()
    local answer = asked[ngx.var.uri:match("[^/]+$")](tonumber(ngx.var.arg_count))
    local text = cjson.encode(answer) .. "\n"
    ngx.header.content_length = #text
    ngx.print(text)
end

return _M
