--- What each worker is in: turns of event loops, and steps of Lua
-- (module/lib/loop/ngx_sluice_turn.h).
-- @module sluice.ffi.turn

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")

abi.declare("lib/loop", "lib/timer")

local C = ffi.C
local tonumber = tonumber

local OK = 0
-- What a step's number is at most.
local MAX_SERIAL = 0x7fffffff
-- Of a handler in C, which only the module can install.
local OPEN = "luaopen_sluice_turn"

local _M = {}

local own

local last_serial = 0

-- What to call at this worker's first step.
local on_first

local function is_in_step(found)
    return found.serial ~= 0 and found.step == found.turn
end

--- Takes this worker's place. Must run in init_worker, on Lua's own state.
-- @treturn table|nil what one before in this place has left, which has died: `kind` and `owner` of
-- the last step that it has begun, and whether it was in that (`is_in_step`)
-- @phases init_worker
function _M.take()
    local before = ffi.new("sluice_turn_t")
    local is_taken = C.sluice_turn_take(before) == OK
    own = C.sluice_turn()
    if not is_taken then
        return nil
    end
    local open = package.loadlib(ffi.string(C.sluice_timer_path()), OPEN)
    if open then
        open()
    end
    if before.pid == 0 or before.kind == 0 then
        return nil
    end
    return {
        kind = tonumber(before.kind),
        owner = tonumber(before.owner),
        is_in_step = is_in_step(before),
    }
end

--- A number for a step that begins.
-- @treturn number not 0
-- @phases any
function _M.next_serial()
    last_serial = last_serial < MAX_SERIAL and last_serial + 1 or 1
    return last_serial
end

--- Notes that a step begins, or goes on behind one that it had within. Costs five stores.
-- @tparam number kind not 0
-- @tparam number owner
-- @tparam number serial of `next_serial`
-- @tparam number root the number of the outermost step around it; its own where there is none
-- @phases any in a worker
function _M.begin(kind, owner, serial, root)
    if own then
        own.kind, own.owner, own.step = kind, owner, own.turn
        own.serial, own.root = serial, root
        if on_first then
            local call = on_first
            on_first = nil
            call()
        end
    end
end

--- Calls a function when this worker begins its first step.
-- @tparam function fn without arguments; may not yield
-- @phases init_worker
function _M.follow_first(fn)
    on_first = fn
end

--- Notes that a step has ended, within no other. What it has left behind, such as a timer, is taken
-- for its owner's until the next step.
-- @phases any in a worker
function _M.finish()
    if own then
        own.serial, own.root = 0, 0
    end
end

--- What this worker is in, for `restore`.
-- @treturn table|nil
-- @phases any in a worker
function _M.save()
    return own
        and {
            kind = own.kind,
            owner = own.owner,
            serial = own.serial,
            root = own.root,
            step = own.step,
        }
end

--- Notes that a step has ended in what `save` has found.
-- @tparam table|nil saved
-- @phases any in a worker
function _M.restore(saved)
    if own then
        own.kind, own.owner, own.step = saved.kind, saved.owner, saved.step
        own.serial, own.root = saved.serial, saved.root
    end
end

--- Whether another worker has made a step throw in this turn. The next one to ask is told no.
-- @treturn boolean
-- @phases any in a worker
function _M.take_stopped()
    local was_stopped = own ~= nil and own.stopped == own.turn
    if was_stopped then
        own.stopped = 0
    end
    return was_stopped
end

--- Adds to a count that all workers share, and returns it.
-- @tparam number owner below 256; what is above is not counted
-- @tparam number number below 16
-- @tparam[opt=0] number add
-- @treturn number
-- @phases any in a worker
function _M.count(owner, number, add)
    return tonumber(C.sluice_turn_count(owner, number, add or 0))
end

--- Names an owner of steps, for workers of a later configuration, too.
-- @tparam number owner below 256; what is above stays without a name
-- @tparam string name what is longer than 63 bytes is cut
-- @phases any in a worker
function _M.name(owner, name)
    C.sluice_turn_name(owner, name)
end

--- The name of an owner of a worker's steps.
-- @tparam number worker as `look`
-- @tparam number owner
-- @treturn string empty: it has none
-- @phases any in a worker
function _M.name_of(worker, owner)
    return ffi.string(C.sluice_turn_name_of(worker, owner))
end

--- Whether there is such a worker, or was one.
-- @tparam number worker as `look`
-- @treturn boolean
-- @phases any in a worker
function _M.is_place(worker)
    return C.sluice_turn_of(worker) ~= nil
end

--- What another worker is in. Reads a file of /proc where it has begun a step at all.
-- @tparam number worker from 0; behind those of this configuration stand the workers of those
-- before, that were there when it was loaded
-- @treturn table|nil `pid`, `turn`, `serial`, `root`, `kind`, `owner`, `is_in_step`, `cpu_ms`; nil:
-- there is none, or none that has begun a step
-- @phases any in a worker
function _M.look(worker)
    local found = C.sluice_turn_of(worker)
    if found == nil or found.kind == 0 then
        return nil
    end
    local cpu_ms = tonumber(C.sluice_turn_cpu_ms(found))
    if cpu_ms < 0 then
        return nil
    end
    return {
        pid = found.pid,
        turn = found.turn,
        serial = found.serial,
        root = found.root,
        kind = found.kind,
        owner = found.owner,
        is_in_step = is_in_step(found),
        cpu_ms = cpu_ms,
    }
end

--- Asks another worker to end its step by an error at the line that runs, or kills it. Does nothing
-- if it is in another step than it was; what is within the same one is no other to force.
-- @tparam number worker as `look`
-- @tparam table seen of `look`
-- @tparam boolean by_force
-- @phases any in a worker
function _M.stop(worker, seen, by_force)
    local found = C.sluice_turn_of(worker)
    if found ~= nil and by_force then
        C.sluice_turn_kill(found, seen.turn, seen.root)
    elseif found ~= nil then
        C.sluice_turn_end(found, seen.turn, seen.serial)
    end
end

return _M
