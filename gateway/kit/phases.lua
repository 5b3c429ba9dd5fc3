--- Which phase runs, of which plugin, and which functions of the kit may be called there.
--
-- Each function of the kit says its phases once, where its file is loaded (`allow`), and asks at
-- each call whether one of them runs (`check`). What runs of a request is two words in its context
-- in C (module/gateway/request/ngx_http_sluice_ctx.h), which the chain writes before each step: a
-- step may yield, so no variable of a worker could know it.
-- @module gateway.kit.phases
-- @usage
-- local phases = require("gateway.kit.phases")
-- local check = phases.check
-- local GET_PATH = phases.allow("request.get_path", phases.REQUEST)
-- function _M.get_path()
--     check(GET_PATH)
--     ...

local abi = require("sluice.ffi.abi")
local bit = require("bit")
local ffi = require("ffi")
local turn = require("sluice.ffi.turn")

-- Without nginx (the command line, unit tests) there is neither a request nor a phase.
local ngx = ngx
local get_phase = ngx and ngx.get_phase
local get_request = get_phase and require("resty.core.base").get_request

local band, bor = bit.band, bit.bor
local error = error

abi.declare("core/image", "gateway/request")

local C = ffi.C

local _M = {}

--- The bit of each phase. Their order is that in which a message lists them.
_M.BITS = {
    init_worker = 0x0001,
    certificate = 0x0002,
    client_hello = 0x0008,
    rewrite = 0x0010,
    access = 0x0020,
    balancer = 0x0040,
    response = 0x0080,
    header_filter = 0x0200,
    body_filter = 0x0400,
    timer = 0x1000,
    log = 0x2000,
    configure = 0x8000,
    admin_api = 0x10000000,
}

local BITS = _M.BITS

local names, in_order = {}, {}
for name, one in pairs(BITS) do
    names[one] = name
    in_order[#in_order + 1] = one
end
table.sort(in_order)

-- nginx's names of phases that have another one here. What runs in the content phase is the Admin
-- API's.
local OF_NGINX = {
    content = BITS.admin_api,
    ssl_cert = BITS.certificate,
    ssl_client_hello = BITS.client_hello,
}

--- A set of phases.
-- @tparam string ... names
-- @treturn number
-- @phases any
function _M.set(...)
    local mask = 0
    for i = 1, select("#", ...) do
        local name = select(i, ...)
        mask = bor(mask, BITS[name] or error("unknown phase: " .. tostring(name), 2))
    end
    return mask
end

--- All in which there is a request, as Kong's `request`.
_M.REQUEST = _M.set(
    "rewrite",
    "access",
    "balancer",
    "response",
    "header_filter",
    "body_filter",
    "log",
    "admin_api"
)

local allowed = {}

--- Says in which phases a function of the kit may be called: for `check`, for documentation and for
-- the test that calls each of them in each phase.
-- @tparam string name without `kong.`
-- @tparam number mask of `set`, or of several with bit.bor
-- @treturn number the mask
-- @phases any
function _M.allow(name, mask)
    allowed[name] = mask
    return mask
end

--- What `allow` was told.
-- @treturn table name -> mask
-- @phases any
function _M.allowed()
    return allowed
end

--- The names of a set, in the order of a message.
-- @tparam number mask
-- @treturn {string,...}
-- @phases any
function _M.names(mask)
    local list = {}
    for _, one in ipairs(in_order) do
        if band(mask, one) ~= 0 then
            list[#list + 1] = names[one]
        end
    end
    return list
end

-- What runs outside of requests, where nothing yields.
local outside, outside_plugin = 0, nil

-- Number -> name of a plugin, from 0, and back: in the order in which they run.
local plugins, numbers = {}, {}

-- Which of the counts of a plugin that all workers share is of a phase (sluice.ffi.turn).
local COUNTS = {
    "init_worker",
    "configure",
    "certificate",
    "rewrite",
    "access",
    "response",
    "header_filter",
    "body_filter",
    "log",
    "timer",
    "admin_api",
}
local COUNT_OF = {}
for i, name in ipairs(COUNTS) do
    COUNT_OF[name] = i
end

--- The bit of what runs; 0: a phase without one, such as init, or no nginx.
-- @treturn number
-- @treturn string nginx's name of it
local function current()
    if outside ~= 0 then
        return outside
    elseif not get_phase then
        return 0, "init"
    end
    local request = get_request()
    if request then
        local running = C.sluice_ctx_running(request)
        if running ~= nil and running.phase ~= 0 then
            return running.phase
        end
    end
    local name = get_phase()
    return OF_NGINX[name] or BITS[name] or 0, name
end

local function refuse(mask)
    local now, name = current()
    local text = "function cannot be called in %s phase (only in: %s)"
    local list = table.concat(_M.names(mask), ", ")
    error(text:format(names[now] or name, list), 3)
end

--- Whether one of the phases runs; the caller of the kit's function is told where not. Costs two
-- calls of FFI.
-- @tparam number mask
-- @treturn true|nil nil: it is no step of a request that runs
-- @raise at the caller of the function that asks
-- @phases any
function _M.check(mask)
    local request = outside == 0 and get_phase and get_request()
    if request then
        local running = C.sluice_ctx_running(request)
        if running ~= nil and band(running.phase, mask) ~= 0 then
            return true
        end
    end
    if band((current()), mask) == 0 then
        return refuse(mask)
    end
end

--- The same for functions that ask who a request comes from: that costs no more calls.
-- @tparam number mask
-- @treturn number|nil `serial` of gateway.pdk.identity; nil: it is no step of a request that runs
-- @raise at the caller of the function that asks
-- @phases any
function _M.check_identity(mask)
    local request = outside == 0 and get_phase and get_request()
    if request then
        local running = C.sluice_ctx_running(request)
        if running ~= nil and band(running.phase, mask) ~= 0 then
            return running.identity
        end
    end
    if band((current()), mask) == 0 then
        return refuse(mask)
    end
end

--- The name of the phase that runs.
-- @treturn string
-- @phases any
function _M.current()
    local now, name = current()
    return names[now] or name
end

--- The bit of the phase that runs; 0: one without a bit.
-- @treturn number
-- @phases any
function _M.bit()
    return (current())
end

--- The plugin that runs.
-- @treturn string|nil nil: none, such as in a timer
-- @phases any
function _M.plugin()
    if outside ~= 0 then
        return outside_plugin
    end
    local request = get_phase and get_request()
    local running = request and C.sluice_ctx_running(request) or nil
    if running ~= nil and running.phase ~= 0 then
        return plugins[running.plugin]
    end
    return nil
end

--- The slot of the configuration with which a plugin runs, in a request.
-- @treturn number|nil
-- @phases any
function _M.slot()
    local request = outside == 0 and get_phase and get_request()
    local running = request and C.sluice_ctx_running(request) or nil
    return running ~= nil and running.phase ~= 0 and running.slot or nil
end

--- Called by the gateway when a worker starts.
-- @tparam {string,...} list all plugins in the order in which they run
-- @local
function _M.name_plugins(list)
    plugins, numbers = {}, {}
    for i, name in ipairs(list) do
        plugins[i - 1], numbers[name] = name, i - 1
        turn.name(i - 1, name)
    end
end

--- The number of a plugin, by which workers name it to each other.
-- @tparam string name
-- @treturn number from 0
-- @local
function _M.number(name)
    return numbers[name]
end

--- The name of a phase, of its bit.
-- @tparam number one
-- @treturn string
-- @local
function _M.name(one)
    return names[one] or "no phase"
end

--- Counts that a plugin has thrown; not what it was made to throw, which is counted by who has
-- asked for it (gateway.control.stuck).
-- @tparam string plugin
-- @tparam string phase
-- @local
function _M.count_failure(plugin, phase)
    local number, count = numbers[plugin], COUNT_OF[phase]
    if number and count and not turn.take_stopped() then
        turn.count(number, count, 1)
    end
end

--- How often plugins have thrown in all workers since these were started or reloaded.
-- @treturn {table,...} `{ plugin = , phase = , count = }`, in the order of plugins and phases
-- @phases any in a worker
function _M.failures()
    local list = {}
    for number = 0, #plugins do
        for i, phase in ipairs(COUNTS) do
            local count = plugins[number] and turn.count(number, i) or 0
            if count > 0 then
                list[#list + 1] = { plugin = plugins[number], phase = phase, count = count }
            end
        end
    end
    return list
end

-- Keeps what is called from waiting: a call of C is between, which nothing can yield across.
local function without_yields(fn, ...)
    local args, count = { ... }, select("#", ...)
    local found
    string.gsub(".", ".", function()
        found = fn(unpack(args, 1, count))
    end)
    return found
end

--- Calls a plugin's function outside of requests. It cannot yield. Another plugin's step may be
-- around it, which goes on behind it.
-- @tparam string phase "init_worker", "configure" or "certificate"
-- @tparam string plugin its name
-- @tparam function fn
-- @tparam any ... its arguments
-- @treturn boolean as pcall
-- @treturn any
-- @local
function _M.run_outside(phase, plugin, fn, ...)
    local before, before_plugin, around = outside, outside_plugin, turn.save()
    local serial = turn.next_serial()
    outside, outside_plugin = BITS[phase], plugin
    turn.begin(BITS[phase], numbers[plugin] or 0, serial, serial)
    local ok, found = pcall(without_yields, fn, ...)
    turn.restore(around)
    outside, outside_plugin = before, before_plugin
    return ok, found
end

return _M
