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

local admin_timers = require("gateway.admin.timers")
local configure = require("gateway.proxy.configure")
local control = require("gateway.control")
local crashes = require("gateway.control.crashes")
local delivery = require("gateway.plugin.delivery")
local dns = require("gateway.pdk.dns")
local entities = require("gateway.proxy.entities")
local files = require("gateway.image.files")
local handshake = require("gateway.plugin.handshake")
local heaps = require("gateway.kit.node.heaps")
local image = require("gateway.proxy.image")
local kit = require("gateway.kit")
local kit_dao = require("gateway.kit.db.dao")
local kit_phases = require("gateway.kit.phases")
local kit_plugin = require("gateway.kit.plugin")
local ngx_ctx = require("gateway.kit.ngx.ctx")
local kit_remote = require("gateway.kit.db.remote")
local own_entities = require("gateway.proxy.own_entities")
local pdk = require("gateway.pdk")
local plugin_errors = require("gateway.control.plugin_errors")
local proxy = require("gateway.proxy.phases")
local resolve = require("sluice.resolve")
local stuck = require("gateway.control.stuck")
local turn = require("sluice.ffi.turn")

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

-- What queues in the control worker wait for at a time (sluice.queue): so many timers, and of a
-- worker's connections no more than one in so many. Its own timers never wait for those.
local MAX_CONTEXTS, CONNECTIONS = 512, 8

local settings, plugins, auth

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
    auth = control.auth(settings)
    -- No page and no plugin shows what is not there.
    settings.admin_token, settings.admin_read_token, settings.admin_token_list = nil, nil, nil
    local err
    plugins, err = registry.load(settings.plugins, settings)
    if not plugins then
        refuse(err)
    end
    for _, note in ipairs(plugins:notes()) do
        ngx.log(ngx.NOTICE, note)
    end
    ngx_ctx.install()
    for _, failure in ipairs(plugins:load_apis()) do
        ngx.log(ngx.ERR, failure)
    end
end

-- As in Kong, one that fails keeps nobody else from starting.
local function start_plugins(failed, is_stuck)
    for _, plugin in ipairs(plugins:list()) do
        local start = plugin.handler.init_worker
        if start and not is_stuck(plugin.name) then
            local ok, err =
                kit_phases.run_outside("init_worker", plugin.name, start, plugin.handler)
            if not ok then
                failed(plugin.name, "init_worker", err)
            end
        end
    end
end

local function name_plugins()
    local names = {}
    for i, plugin in ipairs(plugins:list()) do
        names[i] = plugin.name
    end
    kit_phases.name_plugins(names)
end

-- What hears of plugins that have thrown: `thrown` where it is logged already, `failed` where not,
-- `mended` where one has not any more.
local function reporters(bus)
    local function notify(premature, ...)
        if not premature then
            plugin_errors.report_thrown(bus, ...)
        end
    end
    local function thrown(name, phase, message)
        kit_phases.count_failure(name, phase)
        -- Nothing is published before the bus has begun.
        if ngx.get_phase() == "init_worker" then
            ngx.timer.at(0, notify, name, phase, tostring(message))
        else
            notify(false, name, phase, message)
        end
    end
    local function failed(name, phase, message)
        local text = "plugin '%s' failed in %s: %s"
        ngx.log(ngx.ERR, text:format(name, phase, tostring(message)))
        thrown(name, phase, message)
    end
    local function mended(name, phase)
        plugin_errors.report_mended(bus, name, phase)
    end
    return thrown, failed, mended
end

--- The timers of queues in the control worker.
local function queue_timers()
    local most = math.floor(settings.worker_connections / CONNECTIONS)
    local timers = timer.new({ max_contexts = math.max(2, math.min(MAX_CONTEXTS, most)) })
    timers:start()
    return timers
end

--- Starts a worker: its random numbers, timers, the plugins' init_worker, and what it is there for.
-- @phases init_worker
function _M.init_worker()
    local is_control = ngx.worker.id() == CONTROL_WORKER
    local before = turn.take()
    if is_control then
        stuck.watch_own()
    end
    name_plugins()
    local count = ngx.worker.count() - 1
    -- For plugins: how many share the traffic.
    rawset(ngx.worker, "count", function()
        return count
    end)
    math.randomseed(ngx.now() * 1000 + ngx.worker.pid())
    local timers = timer.new()
    timers:start()
    pdk.set_timers(timers, is_control and queue_timers() or timers)
    heaps.init_worker(timers)
    local bus = assert(events.new())
    dns.init_worker(bus)
    resolve.use(dns.resolve)
    local reports = admin_timers.new({ bus = bus, timers = timers })
    local vault = vaults.new(settings.vault_env)
    local thrown, failed, mended = reporters(bus)
    kit.init_worker({ vault = vault })
    image.open(settings.image_dir)
    local changed = not is_control and configure.init_worker(plugins, failed, mended) or nil
    entities.init_worker(plugins, vault, function(plugin, id, revision, message)
        plugin_errors.report(bus, plugin, id, revision, message)
    end, changed)
    pdk.set_store(entities.store)
    kit_plugin.use(entities.id_of)
    own_entities.init_worker(vault)
    kit_dao.use(own_entities)
    kit_remote.init_worker(bus)
    if is_control then
        control.init_worker({
            settings = settings,
            plugins = plugins,
            vault = vault,
            auth = auth,
            bus = bus,
            timers = timers,
            reports = reports,
        })
        delivery.init_worker(plugins, entities.configuration, image.look)
    else
        proxy.init_worker(plugins, thrown)
        handshake.init_worker(plugins, configure.global, entities.look, failed)
        stuck.report(bus)
        crashes.report(bus)
        files.follow(bus, image.look)
    end
    start_plugins(
        failed,
        is_control and stuck.init_worker(plugins, bus, before, thrown)
            or stuck.init_traffic(before, thrown)
    )
    assert(bus:init_worker())
end

_M.exit_worker = control.exit_worker
_M.admin = control.admin
_M.admin_log = control.admin_log
_M.admin_refused = control.admin_refused
_M.status = control.status
_M.access = proxy.access
_M.certificate = handshake.run
_M.response = proxy.response
_M.header_filter = proxy.header_filter
_M.body_filter = proxy.body_filter
_M.log = proxy.log
_M.version = version

return _M
