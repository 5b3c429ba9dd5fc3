--- The gateway as nginx.conf sees it: one function a directive.
--
-- The only file that sees the whole gateway. nginx.conf is rendered by
-- cli.nginx_conf and calls `package.loaded.gateway.<function>()`: a table
-- look-up that the JIT compiles, where `require` would end its trace.
--
-- nginx's worker 0 is the control worker (gateway.control), all others serve
-- traffic (gateway.proxy).
-- @module gateway

local cjson = require("cjson.safe")
local events = require("sluice.events")
local file = require("sluice.file")
local registry = require("gateway.plugin.registry")
local timer = require("sluice.timer")
local vaults = require("gateway.config.vault")
local version = require("gateway.version")

local admin_timers = require("gateway.control.admin.timers")
local control = require("gateway.control")
local crashes = require("gateway.control.crashes")
local failures = require("gateway.control.failures")
local files = require("gateway.image.files")
local image = require("gateway.proxy.image")
local names = require("gateway.plugin.names")
local pdk = require("gateway.plugin.pdk")
local proxy = require("gateway.proxy.phases")

-- Loaded when it is first needed, but that is in a worker, whose user may not be allowed to read
-- what the master may.
require("sluice.events.ring")
require("sluice.var")

local _M = {}

-- LuaJIT's own limits suit loops. A request is a handful of long straight
-- traces, and the API of nginx is full of tail calls, each of which counts as a
-- loop's turn: let traces be as long, and as many, as they are.
jit.opt.start(
    "maxtrace=8000",
    "maxrecord=16000",
    "maxirconst=2000",
    "maxmcode=8192",
    "loopunroll=200"
)

local CONTROL_WORKER = 0

local settings, plugins, guard

--- Ends nginx's start, or its reload, with a message and without a stack.
local function refuse(message)
    error(message, 0)
end

local function read_settings(path)
    local text, err = file.read(path)
    if not text then
        refuse("settings: " .. err)
    end
    local found
    found, err = cjson.decode(text)
    if not found then
        refuse("settings: " .. path .. ": " .. err)
    end
    return found
end

--- Reads the settings and loads the plugins, in nginx's master. It reads no entity: those are the
-- workers' own.
-- @tparam string settings_path the resolved settings, as the CLI wrote them
-- @phases init
function _M.init(settings_path)
    settings = read_settings(settings_path)
    guard = control.guard(settings)
    -- No page and no plugin shows what is not there.
    settings.admin_token, settings.admin_read_token = nil, nil
    local err
    plugins, err = registry.load(settings.plugins)
    if not plugins then
        refuse(err)
    end
end

--- Starts a worker: its random numbers, timers, the plugins' init_worker, and what it is there for.
-- @phases init_worker
function _M.init_worker()
    local is_control = ngx.worker.id() == CONTROL_WORKER
    local count = ngx.worker.count() - 1
    -- For plugins: how many share the traffic.
    rawset(ngx.worker, "count", function()
        return count
    end)
    math.randomseed(ngx.now() * 1000 + ngx.worker.pid())
    local timers = timer.new()
    timers:start()
    pdk.set_timers(timers)
    local bus = assert(events.new())
    names.init_worker(bus)
    local reports = admin_timers.new({ bus = bus, timers = timers })
    local vault = vaults.new(settings.vault_env)
    if is_control then
        control.init_worker({
            settings = settings,
            plugins = plugins,
            vault = vault,
            guard = guard,
            bus = bus,
            timers = timers,
            reports = reports,
        })
    else
        proxy.init_worker(settings, plugins, vault, function(plugin, id, revision, message)
            failures.tell(bus, plugin, id, revision, message)
        end)
        crashes.report(bus)
        files.follow(bus, image.look)
    end
    for _, plugin in ipairs(plugins:list()) do
        if plugin.init_worker then
            plugin:init_worker()
        end
    end
    assert(bus:init_worker())
end

_M.exit_worker = control.exit_worker
_M.admin = control.admin
_M.admin_log = control.admin_log
_M.admin_refused = control.admin_refused
_M.access = proxy.access
_M.header_filter = proxy.header_filter
_M.body_filter = proxy.body_filter
_M.log = proxy.log
_M.version = version

return _M
