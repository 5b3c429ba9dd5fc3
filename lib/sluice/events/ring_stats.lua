--- Figures of the shared log and of all its processes, read from shared memory.
-- @module sluice.events.ring_stats

local ffi = require("ffi")
local module = require("sluice.events.module")
local worker_id = require("sluice.events.worker_id")

local _M = {}

local C = ffi.C
local NO_WORKER = worker_id.AGENT

local STATES = { [1] = "attached", [2] = "detached" }

local function slot_stats(slot, stats)
    local out = {
        slot = slot,
        worker = stats.worker ~= NO_WORKER and stats.worker or nil,
        pid = stats.pid,
        generation = stats.generation,
        state = STATES[stats.state],
        asleep = stats.asleep ~= 0,
        lag = tonumber(stats.lag),
        lag_bytes = tonumber(stats.lag_bytes),
    }
    for i, name in ipairs(module.counters) do
        out[name] = tonumber(stats.count[i - 1])
    end
    return out
end

local function total_of(workers)
    local total = { lag = 0 }
    for _, name in ipairs(module.counters) do
        total[name] = 0
    end
    for _, worker in ipairs(workers) do
        for _, name in ipairs(module.counters) do
            total[name] = total[name] + worker[name]
        end
        total.lag = math.max(total.lag, worker.lag)
    end
    return total
end

-- Workers of this process's generation that have no slot: each has one as soon as it has started,
-- unless all were taken.
local function count_unattached(handle, workers)
    local found = {}
    for _, worker in ipairs(workers) do
        if worker.worker and worker.generation == handle.generation then
            found[worker.worker] = true
        end
    end
    local unattached = 0
    for id = 0, tonumber(handle.workers) - 1 do
        unattached = unattached + (found[id] and 0 or 1)
    end
    return unattached
end

--- @tparam cdata|nil handle sluice_events_t *
-- @treturn table `{log, workers, total}`; without a handle `log` is missing
function _M.collect(handle)
    if not handle then
        return { workers = {}, total = total_of({}) }
    end
    local log = ffi.new("sluice_ring_stats_t")
    local slot = ffi.new("sluice_ring_slot_stats_t")
    C.sluice_events_stats(handle, log)
    local workers = {}
    for i = 0, log.top - 1 do
        if C.sluice_events_slot_stats(handle, i, slot) == module.OK and slot.state ~= 0 then
            workers[#workers + 1] = slot_stats(i, slot)
        end
    end
    return {
        log = {
            size = tonumber(log.size),
            used = tonumber(log.used),
            published = tonumber(log.seq),
            attached = log.attached,
            detached = log.detached,
            slots = log.slots,
            unattached = count_unattached(handle, workers),
            frame_limit = log.frame_limit,
            stall_ms = log.stall_ms,
            generation = log.generation,
        },
        workers = workers,
        total = total_of(workers),
    }
end

return _M
