--- Plugins whose Lua does not end: who watches over workers, and what was learnt of the control
-- worker's own.
--
-- The control worker looks at what the traffic workers are in (sluice.ffi.turn). One that has taken
-- as much CPU time in one step as `sluice_control_watchdog` says, and whose event loop has not come
-- round meanwhile, is asked to end that step: the interpreter throws at the line that runs. Code
-- that LuaJIT has compiled cannot be asked: then the worker is killed, and the master starts
-- another. A plugin that waits for a socket of its own takes no CPU time, and is left alone. What a
-- step leaves behind, such as a timer, is looked at as if it were one. The control worker of a
-- reload looks at the old workers, too: one that Lua keeps busy would stay for ever.
--
-- The control worker has the watchdog of module/gateway/process/ngx_sluice_watchdog.c, which kills
-- it. Its successor finds the step that it was in; a plugin that has stuck it twice is not started
-- there again, until a reload. One whose init_worker has stuck workers of any kind twice is started
-- in none again: else new workers would be killed without an end.
--
-- Plugins in Lua that come with Sluice cost nothing before they are used: where there is no other,
-- the first step of a worker has the control worker begin to look.
-- @module gateway.control.stuck

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")
local phases = require("gateway.kit.phases")
local turn = require("sluice.ffi.turn")

-- What is asked to end has so long.
local GRACE_MS = 2000
local LOOK_SECONDS = 1
-- The counts of a plugin that are of this (sluice.ffi.turn; the others: gateway.kit.phases): steps
-- that stuck the control worker; those in init_worker, of all workers.
local STUCK, INIT_STUCK = 0, 15
local MAX_STUCK = 2
local NOT_STARTED = "plugin '%s' is not started in %s any more: it was stuck %d times"

abi.declare("gateway/process")

local SOURCE, EVENT = "sluice-gateway", "steps in Lua"
-- Old and new ones, at a reload.
local CONTROL = { worker = 0 }

local _M = {}

-- Worker -> {pid, turn, root, cpu_ms}: when it was first seen in its step; `asked_ms`:
-- when it was asked to end that.
local seen = {}

-- `limit_ms`: of CPU time, in one step.
local thrown, limit_ms

local function report(plugin, phase, message)
    ngx.log(ngx.ERR, message)
    thrown(plugin, phase, message)
end

local function describe(worker, found)
    local plugin, phase = turn.name_of(worker, found.owner), phases.name(found.kind)
    plugin = plugin ~= "" and plugin or "unknown"
    local where = found.is_in_step and "in" or "in or after"
    return plugin, phase, ("plugin '%s' %s %s"):format(plugin, where, phase)
end

local function call(worker, found)
    local name = worker <= ngx.worker.count() and "worker " .. worker or "old worker"
    return ("%s (pid %d)"):format(name, found.pid)
end

local function kill(worker, found)
    local _, _, what = describe(worker, found)
    ngx.log(ngx.ERR, ("%s is killed: it does not end %s"):format(call(worker, found), what))
    turn.stop(worker, found, true)
    seen[worker] = nil
end

local function stop(worker, found, known)
    if known.asked_ms and found.cpu_ms - known.asked_ms >= GRACE_MS then
        kill(worker, found)
        return
    end
    if not known.asked_ms then
        local plugin, phase, what = describe(worker, found)
        known.asked_ms = found.cpu_ms
        local text = "%s has run %s for %d ms of CPU time without an end; the call is interrupted"
        local took_ms = found.cpu_ms - known.cpu_ms
        report(plugin, phase, text:format(call(worker, found), what, took_ms))
    end
    -- Once more, too: it may have been in a step within this one, which has ended since.
    turn.stop(worker, found, false)
end

-- Whether it is stuck in an init_worker of its own that has stuck two others: it takes as much of
-- the CPU as they did, and old workers wait for its successor.
local function is_known(worker, found)
    return worker <= ngx.worker.count()
        and phases.name(found.kind) == "init_worker"
        and found.is_in_step
        and turn.count(found.owner, INIT_STUCK) >= MAX_STUCK
end

local function is_same(found, known)
    return known.pid == found.pid and known.turn == found.turn and known.root == found.root
end

local function look_at(worker)
    local found, known = turn.look(worker), seen[worker]
    if not found then
        seen[worker] = nil
    elseif not known or not is_same(found, known) then
        local pid, cpu_ms = found.pid, found.cpu_ms
        seen[worker] = { pid = pid, turn = found.turn, root = found.root, cpu_ms = cpu_ms }
    elseif found.cpu_ms > known.cpu_ms and is_known(worker, found) then
        kill(worker, found)
    elseif found.cpu_ms - known.cpu_ms >= limit_ms then
        stop(worker, found, known)
    end
end

local function look(premature)
    if premature then
        return
    end
    local worker = 1
    while turn.is_place(worker) do
        look_at(worker)
        worker = worker + 1
    end
end

local is_watching = false

local function watch()
    if not is_watching then
        is_watching = true
        assert(ngx.timer.every(LOOK_SECONDS, look))
    end
end

-- Whether some worker has begun a step, before this one could hear of it.
local function has_begun()
    local worker = 1
    while turn.is_place(worker) do
        if turn.look(worker) then
            return true
        end
        worker = worker + 1
    end
    return false
end

-- Whether Lua may run that nobody has configured, or that runs already.
local function is_needed(registry)
    for _, plugin in ipairs(registry:list()) do
        if not plugin.native and not plugin.has_phases then
            return true
        end
    end
    return has_begun()
end

--- Has the control worker told of this worker's first step.
-- @tparam table bus of sluice.events
-- @phases init_worker
function _M.report(bus)
    turn.follow_first(function()
        -- A step may be in init_worker, before the bus has begun.
        if ngx.get_phase() ~= "init_worker" then
            bus:publish(CONTROL, SOURCE, EVENT)
        end
    end)
end

local function count_init(before)
    if phases.name(before.kind) == "init_worker" then
        turn.count(before.owner, INIT_STUCK, 1)
    end
end

-- Whether a plugin is to be left out, which is said of `where`.
local function leaves_out(where, phase, counts)
    return function(plugin)
        local number, most = phases.number(plugin), 0
        for _, count in ipairs(counts) do
            most = math.max(most, turn.count(number, count))
        end
        if most >= MAX_STUCK then
            report(plugin, phase, NOT_STARTED:format(plugin, where, most))
        end
        return most >= MAX_STUCK
    end
end

--- Begins to watch over the traffic workers, in the control worker.
-- @tparam table registry of gateway.plugin.registry; where no plugin in Lua can run, nobody is
-- watched, and nobody woken for it
-- @tparam table bus of sluice.events
-- @tparam table|nil before what its predecessor has left, of sluice.ffi.turn
-- @tparam function on_failure `(plugin, phase, message)`
-- @treturn function `(plugin)`: whether it is not to be started here
-- @phases init_worker
function _M.init_worker(registry, bus, before, on_failure)
    thrown = on_failure
    if before and before.is_in_step then
        local plugin, phase, what = describe(ngx.worker.id(), before)
        turn.count(before.owner, STUCK, 1)
        count_init(before)
        report(plugin, phase, "the control worker has died in " .. what)
    end
    limit_ms = ffi.C.sluice_watchdog_ms()
    if limit_ms > 0 then
        bus:subscribe(SOURCE, EVENT, watch)
        if is_needed(registry) then
            watch()
        end
    end
    return leaves_out("the control worker", "control", { STUCK, INIT_STUCK })
end

--- The same of a traffic worker, which watches over nobody.
-- @tparam table|nil before what its predecessor has left, of sluice.ffi.turn
-- @tparam function on_failure `(plugin, phase, message)`
-- @treturn function `(plugin)`: whether it is not to be started here
-- @phases init_worker
function _M.init_traffic(before, on_failure)
    thrown = on_failure
    if before and before.is_in_step then
        count_init(before)
    end
    return leaves_out("worker " .. ngx.worker.id(), "init_worker", { INIT_STUCK })
end

--- Has the control worker watched from here on, what plugins do in init_worker, too.
-- @phases init_worker
function _M.watch_own()
    ffi.C.sluice_watchdog_begin()
end

return _M
