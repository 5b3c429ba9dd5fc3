--- Runs the steps of chains that are Lua's.
--
-- Which plugins a request runs, and with which configurations, is C's to know
-- (ngx_http_sluice_chain.h), and so are native plugins. Here C is asked what is next,
-- and that is done.
-- @module gateway.plugin.chain

local abi = require("sluice.abi")
local base = require("resty.core.base")
local bit = require("bit")
local ffi = require("ffi")
local response = require("gateway.request.response")
-- Declares what answers are made of, texts.
require("sluice.core")

local get_request = base.get_request
local ngx = ngx
local pcall = pcall
local tonumber = tonumber

abi.declare([[
typedef struct {
    uint64_t revision;
    uint32_t plugin;
    uint32_t slot;
    uint32_t generation;
    uint32_t zero;
} sluice_step_t;
int sluice_plugins_declare(const char *name, size_t length, uint32_t phases);
int sluice_chain_access(void *r, sluice_step_t *next);
int sluice_chain_configured(void *r, const sluice_step_t *step, const char *failure,
    size_t length);
int sluice_chain_answer(void *r, sluice_core_text_t *message);
int sluice_chain_steps(void *r, uint32_t phase, sluice_step_t *steps, uint32_t max);
]])

local C = ffi.C

local OK = 0
-- What sluice_chain_access asks for.
local STEP, CONFIGURE, BODY, ANSWER = -100, -101, -102, -103

-- Bits of phases; NATIVE: it has one in C.
local PHASES = {
    rewrite = 0x01,
    access = 0x02,
    header_filter = 0x04,
    body_filter = 0x08,
    log = 0x10,
}
local NATIVE = 0x20

local _M = {}

-- In the order in which they run.
local plugins

local configuration

-- Of the request in hand: read before anything yields.
local next_step = ffi.new("sluice_step_t")
local message = ffi.new("sluice_core_text_t")

-- Of the late phase in hand, where nothing yields; as many as there are plugins.
local steps

local function phases_of(plugin)
    local bits = plugin.native and NATIVE or 0
    for phase, phase_bit in pairs(PHASES) do
        if plugin[phase] then
            bits = bit.bor(bits, phase_bit)
        end
    end
    return bits
end

--- Tells C which plugins there are.
-- @tparam table registry of gateway.plugin.registry
-- @tparam function find `(name, slot, generation, revision)`: the configuration of a plugin's
-- entity, or nil and why there is none
-- @raise a native plugin is not in the module
-- @phases init_worker
function _M.init_worker(registry, find)
    plugins, configuration = registry:list(), find
    steps = ffi.new("sluice_step_t[?]", #plugins)
    for _, plugin in ipairs(plugins) do
        local rc = C.sluice_plugins_declare(plugin.name, #plugin.name, phases_of(plugin))
        if rc ~= OK then
            error(("plugin '%s' is not in the Sluice module of nginx"):format(plugin.name), 0)
        end
    end
end

local function find(step, plugin)
    return configuration(plugin.name, step.slot, step.generation, tonumber(step.revision))
end

-- Looks whether a plugin can do with its configuration.
local function configure(request, step)
    local _, err = find(step, plugins[step.plugin + 1])
    if C.sluice_chain_configured(request, step, err, err and #err or 0) ~= OK then
        error("no memory", 0)
    end
end

local function run(step, phase)
    local plugin = plugins[step.plugin + 1]
    local conf, err = find(step, plugin)
    if not conf then
        error(err, 0)
    end
    plugin[phase](plugin, conf)
end

local function answer(request)
    local status = C.sluice_chain_answer(request, message)
    local text = message.data ~= nil and ffi.string(message.data, message.length) or nil
    return response.error(status, text)
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
-- @raise what a plugin throws, which answers 500: a broken check must not let a request pass
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

--- Runs what the request's plugins have in the rewrite phase. May yield.
-- @raise what a plugin throws, which answers 500
-- @phases access
function _M.rewrite()
    local count = count_steps("rewrite")
    local mine = ffi.new("sluice_step_t[?]", count)
    ffi.copy(mine, steps, ffi.sizeof(mine))
    for i = 0, count - 1 do
        run(mine[i], "rewrite")
    end
end

local function run_late(step, phase)
    local ok, err = pcall(run, step, phase)
    if not ok then
        local name = plugins[step.plugin + 1].name
        ngx.log(ngx.ERR, "plugin '", name, "' failed in ", phase, ": ", err)
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
