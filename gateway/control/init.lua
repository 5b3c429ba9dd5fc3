--- What the control worker runs, nginx's worker 0: the store's only writer, the admin listener, the
-- names' addresses. It serves no traffic.
--
-- Nothing here may end the worker: nginx starts no other in place of one that ends by itself.
-- @module gateway.control

local admin = require("gateway.admin")
local asked = require("gateway.control.asked")
local auth = require("gateway.admin.auth")
local base = require("resty.core.base")
local checks = require("gateway.change.checks")
local configuration = require("gateway.change.configuration")
local crashes = require("gateway.control.crashes")
local entities = require("gateway.entities")
local expiry = require("gateway.change.expiry")
local ffi = require("ffi")
local files = require("gateway.image.files")
local hosts = require("gateway.upstream.hosts")
local layout = require("gateway.store.layout")
local metrics = require("gateway.metrics")
local origins = require("gateway.config.origin")
local plugin_errors = require("gateway.control.plugin_errors")
local queries = require("gateway.upstream.queries")
local queue = require("gateway.writer.queue")
local ready = require("gateway.admin.ready")
local role = require("gateway.writer.role")
local status_listener = require("gateway.admin.status_listener")

local _M = {}

-- How long a worker that leaves stays the writer: for requests that are under way, and at least for
-- those of connections that it has just accepted. The check of a large file ends at once.
local LEAVE_SECONDS = 10
local ACCEPTED_SECONDS = 0.2
local LOOK_SECONDS = 0.01
-- The id that nginx gives this worker.
local CONTROL_WORKER = 0
-- Later than any worker lives: such a timer is told when its worker leaves.
local NEVER_SECONDS = 1e10

-- What the admin listener is given (gateway.admin).
local live

-- The admin requests that are under way: addresses of nginx's requests, which stay the same over
-- internal redirects.
local busy = {}

local function address_of_request()
    return tonumber(ffi.cast("uintptr_t", base.get_request()))
end

--- The pids of the workers that serve traffic: those of this configuration of nginx, and those of
-- others, which a reload ends or has begun.
local function traffic_workers(bus)
    local workers, ours, others = bus:stats().workers, {}, {}
    local generation
    for _, worker in ipairs(workers) do
        generation = worker.pid == ngx.worker.pid() and worker.generation or generation
    end
    for _, worker in ipairs(workers) do
        if worker.state == "attached" and worker.worker ~= CONTROL_WORKER then
            local found = worker.generation == generation and ours or others
            found[#found + 1] = worker.pid
        end
    end
    return ours, others
end

--- Reads what the master has no use for: who may use the admin listener.
-- @tparam table settings resolved settings
-- @treturn table of gateway.admin.auth
-- @phases init
_M.auth = auth.new

-- Another control worker waits for the role: gives it up as soon as no request needs it.
local function leave(premature)
    if not premature then
        return
    end
    local deadline = ngx.now() + LEAVE_SECONDS
    checks.stop("large")
    ngx.sleep(ACCEPTED_SECONDS)
    while next(busy) and ngx.now() < deadline do
        ngx.sleep(LOOK_SECONDS)
    end
    checks.stop("small")
    role.leave()
end

--- Makes this worker the control worker.
-- @tparam table opts `settings`; `plugins` (the registry); `vault`; `auth`; `bus` of
-- sluice.events, not started yet; `timers` of sluice.timer, started; `reports`
-- (gateway.admin.timers)
-- @phases init_worker
function _M.init_worker(opts)
    local settings = opts.settings
    local store = settings.prefix .. "/store/store.db"
    local is_of_store = origins.is_of_store(settings)
    live = {
        settings = settings,
        is_writable = is_of_store,
        plugins = opts.plugins,
        vault = opts.vault,
        auth = opts.auth,
        bus = opts.bus,
        timers = opts.reports,
        read = role.read,
        state = queue.state,
        configuration = configuration.new(opts.plugins, settings, store),
        plugin_errors = plugin_errors.new(opts.bus),
        workers = function()
            return traffic_workers(opts.bus)
        end,
    }
    queue.start({
        store = store,
        images = settings.image_dir,
        layouts = layout.derive(entities.stored(), entities.of_plugins()),
        history = settings.history,
        -- Beside a file one that is there goes on: who leaves the store for a file may come back.
        begins_history = is_of_store,
        on_files = function()
            return files.announce(opts.bus)
        end,
    })
    crashes.follow(opts.bus, queue.look)
    metrics.init_worker()
    ready.init_worker(live)
    hosts.start(opts.bus, opts.timers)
    expiry.start(opts.timers)
    queries.serve(opts.bus)
    asked.start(live)
    opts.timers:at(NEVER_SECONDS, leave)
end

--- Ends what the control worker has open, where it ends at once.
-- @phases exit_worker
_M.exit_worker = role.exit

--- Answers a request of the admin listener. Yields.
-- @phases content
function _M.admin()
    busy[address_of_request()] = true
    return admin.handle(live)
end

--- Answers a request of the status listener. Yields.
-- @phases content
function _M.status()
    return status_listener.handle(live)
end

--- Notes the end of a request of the admin listener.
-- @phases log
function _M.admin_log()
    busy[address_of_request()] = nil
end

--- Answers what nginx refuses by itself.
-- @phases content
_M.admin_refused = admin.refused

return _M
