--- The gateway as nginx.conf sees it: one function a directive.
--
-- The only file that sees the whole gateway. nginx.conf is rendered by
-- cli.nginx_conf and calls `package.loaded.gateway.<function>()`: a table
-- look-up that the JIT compiles, where `require` would end its trace.
-- @module gateway

local buffer = require("string.buffer")
local cjson = require("cjson.safe")
local garbage_collector = require("gateway.control.garbage_collector")
local config = require("gateway.config")
local dns = require("gateway.control.resolver")
local events = require("sluice.events")
local file = require("sluice.file")
local files = require("gateway.control.changes.files")
local registry = require("gateway.plugin.registry")
local resolver = require("gateway.control.names")
local signal = require("posix.signal")
local timer = require("sluice.timer")
local vaults = require("gateway.config.vault")
local version = require("gateway.version")

local admin = require("gateway.control.admin")
local admin_guard = require("gateway.control.admin.guard")
local admin_timers = require("gateway.control.admin.timers")
local balancer = require("gateway.proxy.balancer")
local pdk = require("gateway.plugin.pdk")
local plan = require("gateway.proxy.plan")
local proxy = require("gateway.proxy.phases")
local response = require("gateway.request.response")
local rollout = require("gateway.control.changes")

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

-- How long a file waits for others to be checked.
local CHECK_SECONDS = 10
-- Lines in the log about one configuration.
local MAX_WARNINGS = 100

local settings, plugins, vault, started_at

-- Who may use the admin listener.
local guard

-- What was posted, on the disk (gateway.control.changes.files).
local posted_files

-- What this worker serves: {compiled (gateway.proxy.plan), version, hash}. A new table
-- for each configuration.
local live

-- This worker's end of the events, of the changes of configuration, and of the reports about
-- timers; its timers.
local bus, changes, reports, timers

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

-- One configuration ------------------------------------------------------------

local function compile(snapshot, number, addresses)
    return {
        compiled = plan.compile(snapshot, plugins, addresses),
        hash = snapshot.hash,
        version = number,
        warnings = snapshot.warnings or {},
    }
end

local function warn(from, ...)
    for _, list in ipairs({ ... }) do
        for i = 1, math.min(#list, MAX_WARNINGS) do
            ngx.log(ngx.WARN, from, ": ", list[i])
        end
        if #list > MAX_WARNINGS then
            ngx.log(ngx.WARN, from, ": and ", #list - MAX_WARNINGS, " more such warnings")
        end
    end
end

--- Compiles what was read from a file; throws what is wrong. Blocks while names resolve.
local function compile_read(path, number, snapshot, errors)
    if not snapshot then
        refuse(path .. ":\n" .. config.format_errors(errors))
    end
    local candidate = compile(snapshot, number, dns.resolve_all(plan.names(snapshot)))
    warn(path, candidate.warnings, candidate.compiled.warnings)
    if ngx.get_phase() == "init" then
        warn(path, config.slow_warnings(snapshot))
    end
    return candidate
end

--- Reads the declarative file and compiles it; throws what is wrong.
local function load_file(number)
    return compile_read(
        settings.file,
        number,
        config.load(settings.file, plugins, { vault = vault })
    )
end

--- Reads a posted configuration and compiles it; throws what is wrong. Workers wrote it, and the
-- master reads it as root: it is data, from a file that is the workers' own.
local function load_posted(posted)
    local text, err = posted_files:read(posted.path)
    if not text then
        refuse("posted configuration: " .. err .. "; `sluice restart` drops what was posted")
    end
    local kind = posted.kind ~= "text" and posted.kind or nil
    return compile_read(
        posted.path,
        posted.version,
        config.parse(text, kind, plugins, { at = posted.at, vault = vault })
    )
end

local function activate(candidate)
    live = candidate
    pdk.set_store(live.compiled.store)
    proxy.activate(live.compiled, settings)
end

--- The plugins' configure phase: throws what one of them throws.
local function configure(candidate)
    pdk.set_store(candidate.compiled.store)
    for _, plugin in ipairs(plugins:list()) do
        if plugin.configure then
            local slot = candidate.compiled.plugin_index[plugin.name]
            plugin:configure(slot and slot.all or {})
        end
    end
    pdk.set_store(live.compiled.store)
end

--- Tells the plugins to stay with what is live.
local function configure_back()
    local ok, err = pcall(configure, live)
    if not ok then
        ngx.log(ngx.ERR, "a plugin failed to go back to the live configuration: ", err)
    end
end

--- Gets the plugins ready for a candidate; as they were, and throws, where one fails.
local function get_ready(candidate)
    local ok, err = pcall(configure, candidate)
    if not ok then
        configure_back()
        refuse(tostring(err))
    end
    return candidate
end

--- Loads the configuration and compiles it, in nginx's master, so that all
-- workers share its memory: the one that was posted, otherwise the file. A bad one
-- ends the start; at a reload nginx goes on with the configuration that it has.
-- @tparam string settings_path the resolved settings, as the CLI wrote them
-- @phases init
function _M.init(settings_path)
    settings = read_settings(settings_path)
    guard = admin_guard.new(settings)
    -- No page and no plugin shows what is not there.
    settings.admin_token = nil
    local err
    plugins, err = registry.load(settings.plugins)
    if not plugins then
        refuse(err)
    end
    vault = vaults.new(settings.vault_env)
    response.configure(settings)
    started_at = ngx.time()
    -- Whoever had the file loaded since then meant it to count.
    local superseded = settings.superseded or 0
    posted_files = files.new(settings.prefix .. "/posted", superseded)
    local posted = posted_files:current()
    activate(posted and load_posted(posted) or load_file(superseded))
end

-- A worker ---------------------------------------------------------------------

--- Compiles what came by an event. The worker that was asked still has what it parsed.
local function compile_message(message, posted)
    local snapshot = posted and posted.parsed or buffer.decode(message.snapshot)
    return compile(snapshot, message.version, message.addresses)
end

--- What a change of configuration is to this worker (gateway.control.changes).
local configuration = {
    prepare = function(message, posted)
        if not message.snapshot then
            return get_ready(load_posted(message.file))
        end
        local candidate = garbage_collector.hold(compile_message, message, posted)
        if posted then
            warn("posted configuration", candidate.warnings, candidate.compiled.warnings)
        end
        return get_ready(candidate)
    end,

    load = function(current)
        return get_ready(load_posted(current))
    end,

    activate = function(candidate)
        activate(candidate)
        ngx.log(ngx.NOTICE, "configuration ", live.version, " is live, hash ", live.hash)
    end,

    withdraw = configure_back,
}

--- The workers that hear events, by process id.
local function members()
    local pids = {}
    for _, worker in ipairs(bus:stats().workers) do
        if worker.state == "attached" and worker.worker then
            pids[worker.pid] = worker.worker
        end
    end
    return pids
end

local function new_event()
    local semaphore = assert(require("ngx.semaphore").new(0))
    return {
        wait = function(_, seconds)
            return semaphore:wait(seconds)
        end,
        post = function()
            return semaphore:post(1)
        end,
    }
end

--- This worker, as gateway.control.changes sees it.
local function new_host()
    return {
        worker = ngx.worker.id(),
        pid = ngx.worker.pid(),
        is_leaving = ngx.worker.exiting,
        is_alive = function(pid)
            return signal.kill(pid, 0) == 0
        end,
        members = members,
        event = new_event,
        sleep = ngx.sleep,
        now = function()
            ngx.update_time()
            return ngx.now()
        end,
    }
end

--- Takes this worker's place among the others, then what they decided meanwhile.
local function join()
    local host = new_host()
    reports = admin_timers.new({ bus = bus, timers = timers, host = host })
    changes = rollout.new({
        bus = bus,
        files = posted_files,
        host = host,
        config = configuration,
        version = live.version,
    })
    assert(bus:init_worker())
    changes:catch_up()
    changes:announce()
end

--- Starts a worker: its random numbers, the plugins' init_worker and configure, its
-- end of the events.
-- @phases init_worker
function _M.init_worker()
    math.randomseed(ngx.now() * 1000 + ngx.worker.pid())
    proxy.init_worker()
    timers = timer.new()
    timers:start()
    pdk.set_timers(timers)
    for _, plugin in ipairs(plugins:list()) do
        if plugin.init_worker then
            plugin:init_worker()
        end
    end
    configure(live)
    bus = assert(events.new())
    join()
end

-- The admin listener -----------------------------------------------------------

--- Checks a file, in turns with requests, one file at a time. Yields.
-- @treturn table|nil snapshot
-- @treturn string|nil "busy" or "invalid"
-- @treturn string|table|nil why
local function check(text, kind, at)
    if not garbage_collector.enter(CHECK_SECONDS) then
        local message = "other files were being checked for %d seconds"
        return nil, "busy", message:format(CHECK_SECONDS)
    end
    local ok, snapshot, errors = pcall(garbage_collector.hold, config.parse, text, kind, plugins, {
        at = at,
        vault = vault,
        pause = garbage_collector.pauses(),
    })
    garbage_collector.leave()
    if not ok then
        error(snapshot, 0)
    end
    return snapshot, "invalid", errors
end

--- Replaces the configuration on all workers. Yields.
-- @tparam string text a declarative file
-- @tparam string|nil kind "json" or "yaml"; nil: told by the text
-- @tparam table opts of gateway.control.changes's `post`
-- @treturn table|nil `{version, hash, workers}`
-- @treturn string|nil "invalid", or a word of gateway.control.changes's `post`
-- @treturn table|string|nil errors of gateway.config with "invalid", else why
local function replace(text, kind, opts)
    local at = ngx.time()
    local snapshot, refused, errors = check(text, kind, at)
    if not snapshot then
        return nil, refused, errors
    end
    local result, word, why = changes:post({
        text = text,
        kind = kind,
        at = at,
        parsed = snapshot,
        -- A text, so that each worker decodes it when nothing is collected, or not at all.
        snapshot = buffer.encode(snapshot),
        addresses = resolver.ask(plan.names(snapshot)),
    }, opts)
    if result then
        result.hash = snapshot.hash
    end
    return result, word, why
end

--- @phases content
function _M.admin()
    return admin.handle({
        store = live.compiled.store,
        settings = settings,
        snapshot_hash = live.hash,
        version = live.version,
        started_at = started_at,
        plugins = plugins,
        bus = bus,
        timers = reports,
        guard = guard,
        hash = config.hash,
        replace = replace,
    })
end

_M.admin_refused = admin.refused
_M.access = proxy.access
_M.access_variant = proxy.access_variant
_M.balancer = balancer.balance
_M.header_filter = proxy.header_filter
_M.body_filter = proxy.body_filter
_M.log = proxy.log
_M.error_page = proxy.error_page
_M.version = version

return _M
