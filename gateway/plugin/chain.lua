--- Runs the steps of chains that are Lua's.
--
-- Which plugins a request runs, and with which configurations, is C's to know
-- (ngx_http_sluice_chain.h), and so are native plugins. Here C is asked what is next,
-- and that is done.
-- @module gateway.plugin.chain

local abi = require("sluice.ffi.abi")
local base = require("resty.core.base")
local bit = require("bit")
local ffi = require("ffi")
local flags = require("gateway.image.flags")
local groups = require("gateway.kit.groups")
local kit_phases = require("gateway.kit.phases")
local response = require("gateway.pdk.response")
local turn = require("sluice.ffi.turn")

local get_request = base.get_request
local ngx = ngx
local pcall = pcall
local tonumber = tonumber
local tostring = tostring

abi.declare("core/image", "gateway/plugin", "gateway/request")

local C = ffi.C

local OK, DECLINED = 0, -5
-- What sluice_chain_access asks for.
local STEP, CONFIGURE, BODY, ANSWER, GROUPS = -100, -101, -102, -103, -104

-- Bits of phases; NATIVE: it has one in C.
local PHASES = flags.phases
local NATIVE = 0x20

-- As plugins see them.
local KIT = kit_phases.BITS

local _M = {}

-- In the order in which they run.
local plugins

-- Of each: its number among all, also of those that C does not have.
local numbers

local configuration, report, report_thrown

-- Of the request in hand: read before anything yields.
local next_step = ffi.new("sluice_step_t")
local message, content_type = ffi.new("sluice_core_text_t"), ffi.new("sluice_core_text_t")

-- Of the late phase in hand, where nothing yields; as many as there are plugins.
local steps

-- What a native plugin has in Lua, some of its configurations need.
local function phases_of(plugin)
    if plugin.native then
        return NATIVE
    end
    local bits = 0
    for phase, phase_bit in pairs(PHASES) do
        if plugin.handler[phase] then
            bits = bit.bor(bits, phase_bit)
        end
    end
    return bits
end

--- Tells C which plugins there are. Of one that C cannot start all others live; what has its
-- configurations is answered 500.
-- @tparam table registry of gateway.plugin.registry
-- @tparam function find `(name, slot, generation, revision)`: the configuration of a plugin's
-- entity, or nil and why there is none
-- @tparam function report_native `(name, slot, message)`: why C cannot do with a configuration
-- @tparam function thrown `(name, phase, message)`: a plugin has thrown
-- @phases init_worker
function _M.init_worker(registry, find, report_native, thrown)
    plugins, numbers = {}, {}
    configuration, report, report_thrown = find, report_native, thrown
    for i, plugin in ipairs(registry:list()) do
        local rc = C.sluice_chain_declare(plugin.name, #plugin.name, phases_of(plugin))
        if rc == OK then
            plugins[#plugins + 1] = plugin
            numbers[#plugins] = i - 1
        else
            local why = rc == DECLINED and "is not built into nginx's Sluice module"
                or "failed in init_worker"
            ngx.log(ngx.ERR, "plugin '", plugin.name, "' ", why)
        end
    end
    steps = ffi.new("sluice_step_t[?]", #plugins)
end

local function read(text)
    return text.data ~= nil and ffi.string(text.data, text.length) or nil
end

local function find(step, plugin)
    return configuration(plugin.name, step.slot, step.generation, tonumber(step.revision))
end

-- Looks whether a plugin can do with its configuration.
local function configure(request, step)
    local plugin, _, err = plugins[step.plugin + 1], nil, nil
    if plugin.native then
        if C.sluice_chain_failure(request, step, message) == OK then
            report(plugin.name, step.slot, read(message))
        else
            -- What its log phase runs is held from now on; it refuses nothing.
            find(step, plugin)
        end
    else
        _, err = find(step, plugin)
    end
    if C.sluice_chain_configured(request, step, err, err and #err or 0) ~= OK then
        error("no memory", 0)
    end
end

-- Runs a step. What it throws is thrown again, with the plugin's name.
local function run(step, phase)
    local plugin, number = plugins[step.plugin + 1], numbers[step.plugin + 1]
    local conf, err = find(step, plugin)
    if not conf then
        error(err, 0)
    end
    -- One phase may run in another: what a plugin prints goes through filters at once.
    local running = C.sluice_ctx_running(get_request())
    local phase_before, plugin_before, slot_before = running.phase, running.plugin, running.slot
    local serial_before, root_before = running.serial, running.root
    local serial = turn.next_serial()
    local root = phase_before == 0 and serial or root_before
    running.phase, running.plugin, running.slot = KIT[phase], number, step.slot
    running.serial, running.root = serial, root
    turn.begin(KIT[phase], number, serial, root)
    local handler = plugin.handler
    local ok, thrown = pcall(handler[phase], handler, conf)
    if phase_before == 0 then
        turn.finish()
    else
        turn.begin(phase_before, plugin_before, serial_before, root_before)
    end
    running.phase, running.plugin, running.slot = phase_before, plugin_before, slot_before
    running.serial, running.root = serial_before, root_before
    if not ok then
        report_thrown(plugin.name, phase, thrown)
        error(("plugin '%s' failed in %s: %s"):format(plugin.name, phase, tostring(thrown)), 0)
    end
end

local function answer(request)
    local status = C.sluice_chain_answer(request, message, content_type)
    if content_type.data ~= nil then
        return response.send(status, read(message), read(content_type))
    end
    return response.error(status, read(message))
end

local function report_groups(request)
    local packed = groups.pack()
    if C.sluice_chain_groups(request, packed, #packed) ~= OK then
        error("no memory", 0)
    end
end

--- What is left of the access phase once C has asked for something.
local function go_on(request, rc)
    while rc ~= OK do
        if rc == STEP then
            run(next_step, "access")
        elseif rc == CONFIGURE then
            configure(request, next_step)
        elseif rc == BODY then
            ngx.req.read_body()
        elseif rc == GROUPS then
            report_groups(request)
        elseif rc == ANSWER then
            return answer(request)
        else
            error("no memory", 0)
        end
        rc = C.sluice_chain_access(request, next_step)
    end
end

--- Runs the request's plugins in the access phase. May yield where one does, and for the body.
-- Returns if all of them have let the request pass.
-- @raise what a plugin throws, with its name, which answers 500: a broken check must not let a
-- request pass
-- @phases access
function _M.access()
    local request = get_request()
    local rc = C.sluice_chain_access(request, next_step)
    -- Most chains have one plugin in Lua. LuaJIT compiles no caller of a loop, so there is none on
    -- their way.
    if rc == STEP then
        run(next_step, "access")
        rc = C.sluice_chain_access(request, next_step)
    end
    if rc ~= OK then
        return go_on(request, rc)
    end
end

local function count_steps(phase)
    local count = C.sluice_chain_steps(get_request(), PHASES[phase], steps, #plugins)
    if count < 0 then
        error("no memory", 0)
    end
    return count
end

-- Where plugins may yield: `steps` is another request's then.
local function run_yielding(phase)
    local count = count_steps(phase)
    local mine = ffi.new("sluice_step_t[?]", count)
    ffi.copy(mine, steps, ffi.sizeof(mine))
    for i = 0, count - 1 do
        run(mine[i], phase)
    end
end

--- Runs what the request's plugins have in the rewrite phase. May yield.
-- @raise what a plugin throws, which answers 500
-- @phases access
function _M.rewrite()
    return run_yielding("rewrite")
end

--- Runs what the request's plugins have in the response phase. May yield.
-- @raise what a plugin throws, which answers 500
-- @phases content
function _M.response()
    return run_yielding("response")
end

local function run_late(step, phase)
    local ok, err = pcall(run, step, phase)
    if not ok then
        ngx.log(ngx.ERR, err)
    end
end

local function run_others_late(phase, count)
    for i = 1, count - 1 do
        run_late(steps[i], phase)
    end
end

--- Runs what the request's plugins have in a phase after the access phase. There a thrown error
-- cannot become a response any more: it is logged and the next plugin runs.
-- @tparam string phase its name
-- @phases header_filter, body_filter, log
function _M.late(phase)
    local count = count_steps(phase)
    -- As above: no loop where there is one.
    if count > 0 then
        run_late(steps[0], phase)
    end
    if count > 1 then
        run_others_late(phase, count)
    end
end

return _M
