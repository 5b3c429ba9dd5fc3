--- `GET /status`: connections, memory, which configuration is live, what the control worker does.
-- @module gateway.admin.status

local checks = require("gateway.change.checks")
local response = require("gateway.admin.response")
local json = require("gateway.schema.json")
local metrics = require("sluice.ffi.metrics")
local origins = require("gateway.config.origin")
local phases = require("gateway.kit.phases")
local spool = require("sluice.ffi.spool")

local format = string.format

local UNITS = {
    k = { 2 ^ 10, "KiB" },
    m = { 2 ^ 20, "MiB" },
    g = { 2 ^ 30, "GiB" },
}
-- States in which changes are taken.
local REACHABLE = { live = true, checking = true, damaged = true }
local DEFAULT_UNIT = "m"
local DEFAULT_SCALE = "2"
local MAX_SCALE = 20

local _M = {}

--- Bytes as the client wants to read them: a number for unit "b", otherwise text with the unit.
local function amount(bytes, unit, scale)
    if unit == "b" then
        return bytes
    end
    local divisor, name = unpack(UNITS[unit])
    return format("%." .. scale .. "f " .. name, bytes / divisor)
end

--- nginx's own counters.
local function connections()
    local found = metrics.connections() or {}
    return {
        connections_accepted = found.accepted,
        connections_active = found.active,
        connections_handled = found.handled,
        connections_reading = found.reading,
        connections_waiting = found.waiting,
        connections_writing = found.writing,
        total_requests = found.total,
    }
end

local function shared_dicts(unit, scale)
    local out = {}
    for name, dict in pairs(ngx.shared) do
        local capacity = dict:capacity()
        out[name] = {
            allocated_slabs = amount(capacity - dict:free_space(), unit, scale),
            capacity = amount(capacity, unit, scale),
        }
    end
    return out
end

local function resident_size(pid)
    local file = io.open(("/proc/%d/status"):format(pid))
    if not file then
        return nil
    end
    local kilobytes = file:read("*a"):match("VmRSS:%s*(%d+) kB")
    file:close()
    return kilobytes and tonumber(kilobytes) * 1024
end

--- Memory of each worker. A worker's Lua heap is known only to itself, so it is shown for the one
-- that answers; what the kernel holds for a worker is shown for all of them.
local function workers(pids, unit, scale)
    local out = json.array({})
    local own_pid = ngx.worker.pid()
    for i, pid in ipairs(pids) do
        local resident = resident_size(pid)
        out[i] = {
            pid = pid,
            resident = resident and amount(resident, unit, scale),
            http_allocated_gc = pid == own_pid
                    and amount(collectgarbage("count") * 1024, unit, scale)
                or nil,
        }
    end
    return out
end

--- The slots of the events' log, and the workers of this configuration that have none.
local function events(log)
    return {
        slots = log.slots,
        taken = log.attached + log.detached,
        workers_without = log.unattached,
    }
end

--- What has become of the entries of log plugins.
local function log_entries()
    local now = spool.figures() or {}
    return {
        written = now.written,
        dropped = { full = now.full, large = now.large, busy = now.busy, target = now.lost },
        waiting_bytes = now.used,
    }
end

--- Checks the arguments `unit` (b, k, m, g) and `scale` (digits after the point).
local function read_arguments(args)
    -- An argument that stands twice is a table, one without a value is true.
    local unit = args.unit == nil and DEFAULT_UNIT or args.unit
    unit = type(unit) == "string" and unit:lower()
    if unit ~= "b" and not UNITS[unit] then
        return nil, "unit must be 'b', 'k', 'm' or 'g', given once"
    end
    local scale = args.scale == nil and DEFAULT_SCALE or args.scale
    local digits = type(scale) == "string" and scale:find("^%d+$") and tonumber(scale)
    if not digits or digits > MAX_SCALE then
        return nil, "scale must be a whole number between 0 and " .. MAX_SCALE
    end
    return unit, digits
end

-- The pids of all workers, the control worker's first.
local function all_workers(live)
    local pids = live.workers()
    table.insert(pids, 1, ngx.worker.pid())
    return pids
end

local function memory(live, unit, scale)
    return {
        lua_shared_dicts = shared_dicts(unit, scale),
        workers_lua_vms = workers(all_workers(live), unit, scale),
    }
end

-- The hash of what was posted, or of the file; zeros where there is none. Nil where the store could
-- not be asked: a controller that finds zeros posts its configuration again.
local function configuration_hash(live, now)
    return now and (origins.hash(now.origin) or (not live.is_writable and origins.NO_HASH or nil))
end

--- Answers the request. Yields.
-- @tparam table live what `gateway.admin` is given
-- @tparam table args arguments of the query
-- @phases content
function _M.get(live, args)
    local unit, scale = read_arguments(args)
    if not unit then
        return response.json(400, { message = scale })
    end
    -- Waits while another control worker takes its place.
    local now = live.read("revision")
    local state = live.state()
    state.checking = json.array(checks.list())
    return response.json(200, {
        server = connections(),
        memory = memory(live, unit, scale),
        events = events(live.bus:stats().log),
        log_entries = log_entries(),
        configuration_hash = configuration_hash(live, now),
        -- Of what is live, where the store cannot be asked.
        configuration_version = now and now.revision or state.revision,
        control = state,
        plugins_failed = json.array(live.plugin_errors:list(live.read)),
        plugin_failures = json.array(phases.failures()),
        database = { reachable = REACHABLE[state.state] or false },
    })
end

--- Answers the request with what everybody may know: the fields that Kong's status listener has.
-- Yields.
-- @tparam table live what `gateway.admin` is given
-- @tparam table args arguments of the query
-- @phases content
function _M.get_public(live, args)
    local unit, scale = read_arguments(args)
    if not unit then
        return response.json(400, { message = scale })
    end
    local found = { server = connections(), memory = memory(live, unit, scale) }
    if live.is_writable then
        found.database = { reachable = REACHABLE[live.state().state] or false }
    else
        found.configuration_hash = configuration_hash(live, live.read("revision"))
    end
    return response.json(200, found)
end

return _M
