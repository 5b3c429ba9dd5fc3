--- The gateway as nginx.conf sees it: one function a directive.
--
-- The only file that sees the whole gateway. nginx.conf is rendered by
-- cli.nginx_conf and calls `package.loaded.gateway.<function>()`: a table
-- look-up that the JIT compiles, where `require` would end its trace.
-- @module gateway

local cjson = require("cjson.safe")
local config = require("gateway.config")
local registry = require("gateway.plugin.registry")
local store = require("gateway.store")
local version = require("gateway.version")

local admin = require("gateway.admin")
local balancer = require("gateway.balancer")
local pdk = require("gateway.pdk")
local plan = require("gateway.plan")
local proxy = require("gateway.proxy")
local response = require("gateway.response")

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

-- What the admin listener shows: {store, settings, snapshot_hash, started_at, plugins}.
local live
-- plugin name -> {all = {conf, ...}}: for the `configure` phase.
local plugin_index

local function read_file(path)
    local file, err = io.open(path, "rb")
    if not file then
        return nil, err
    end
    local text = file:read("*a")
    file:close()
    return text
end

--- Ends nginx's start, or its reload, with a message and without a stack.
local function refuse(message)
    error(message, 0)
end

local function read_settings(path)
    local text, err = read_file(path)
    if not text then
        refuse("settings: " .. err)
    end
    local settings
    settings, err = cjson.decode(text)
    if not settings then
        refuse("settings: " .. path .. ": " .. err)
    end
    return settings
end

--- Loads the configuration and compiles it, in nginx's master, so that all
-- workers share its memory. A bad file ends the start; at a reload nginx goes
-- on with the configuration that it has.
-- @tparam string settings_path the resolved settings, as the CLI wrote them
-- @phases init
function _M.init(settings_path)
    local settings = read_settings(settings_path)
    local plugins, err = registry.load(settings.plugins)
    if not plugins then
        refuse(err)
    end
    local snapshot, errors = config.load(settings.file, plugins)
    if not snapshot then
        refuse(settings.file .. ":\n" .. config.format_errors(errors))
    end
    response.configure(settings)
    local compiled = plan.compile(snapshot, plugins)
    for _, list in ipairs({ snapshot.warnings or {}, compiled.warnings }) do
        for _, warning in ipairs(list) do
            ngx.log(ngx.WARN, settings.file, ": ", warning)
        end
    end
    proxy.activate(compiled, settings)
    plugin_index = compiled.plugin_index
    live = {
        store = store.new(snapshot),
        settings = settings,
        snapshot_hash = snapshot.hash,
        started_at = ngx.time(),
        plugins = plugins,
    }
    pdk.set_store(live.store)
end

--- Starts a worker: its random numbers, the plugins' init_worker and configure.
-- @phases init_worker
function _M.init_worker()
    math.randomseed(ngx.now() * 1000 + ngx.worker.pid())
    proxy.init_worker()
    for _, plugin in ipairs(live.plugins:list()) do
        if plugin.init_worker then
            plugin:init_worker()
        end
        local slot = plugin_index[plugin.name]
        if plugin.configure then
            plugin:configure(slot and slot.all or {})
        end
    end
end

--- @phases content
function _M.admin()
    return admin.handle(live)
end

--- @phases content
function _M.admin_refused()
    return admin.refused()
end

_M.access = proxy.access
_M.access_variant = proxy.access_variant
_M.balancer = balancer.balance
_M.header_filter = proxy.header_filter
_M.body_filter = proxy.body_filter
_M.log = proxy.log
_M.error_page = proxy.error_page
_M.version = version

return _M
