--- `GET /status`: connections, memory, which configuration is live, what the control worker does.
-- @module gateway.control.admin.status

local checks = require("gateway.control.checks")
local response = require("gateway.control.admin.response")
local json = require("gateway.control.admin.json")
local origins = require("gateway.config.origin")

local format = string.format
local ngx = ngx

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

--- Reads nginx's own counters, which its status page has as text.
local function connections()
    local page = ngx.location.capture("/_stub_status").body
    local active = page:match("Active connections: (%d+)")
    local accepted, handled, requests = page:match("(%d+) (%d+) (%d+)")
    local reading, writing, waiting = page:match("Reading: (%d+) Writing: (%d+) Waiting: (%d+)")
    return {
        connections_accepted = tonumber(accepted),
        connections_active = tonumber(active),
        connections_handled = tonumber(handled),
        connections_reading = tonumber(reading),
        connections_waiting = tonumber(waiting),
        connections_writing = tonumber(writing),
        total_requests = tonumber(requests),
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

--- Answers the request. Yields for the subrequest of nginx's status page.
-- @tparam table live what `gateway.control.admin` is given
-- @tparam table args arguments of the query
-- @phases content
function _M.get(live, args)
    local unit, scale = read_arguments(args)
    if not unit then
        return response.json(400, { message = scale })
    end
    -- Waits while another control worker takes its place.
    local now = live.read("revision") or {}
    local state, pids = live.state(), live.workers()
    state.checking = json.array(checks.list())
    table.insert(pids, 1, ngx.worker.pid())
    return response.json(200, {
        server = connections(),
        memory = {
            lua_shared_dicts = shared_dicts(unit, scale),
            workers_lua_vms = workers(pids, unit, scale),
        },
        events = events(live.bus:stats().log),
        configuration_hash = origins.hash(now.origin),
        configuration_version = now.revision,
        control = state,
        plugins_failed = json.array(live.failures:list(live.read)),
        database = { reachable = REACHABLE[state.state] or false },
    })
end

return _M
