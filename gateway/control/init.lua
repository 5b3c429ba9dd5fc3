--- What the control worker runs, nginx's worker 0: the store's only writer, the admin listener, the
-- names' addresses. It serves no traffic.
--
-- Nothing here may end the worker: nginx does not start one anew that ends by itself.
-- @module gateway.control

local addresses = require("gateway.control.addresses")
local admin = require("gateway.control.admin")
local admin_guard = require("gateway.control.admin.guard")
local apply = require("gateway.control.apply")
local checks = require("gateway.control.checks")
local base = require("resty.core.base")
local configuration = require("gateway.control.configuration")
local crashes = require("gateway.control.crashes")
local entities = require("gateway.entities")
local failures = require("gateway.control.failures")
local files = require("gateway.image.files")
local ffi = require("ffi")
local layout = require("gateway.store.layout")
local metrics = require("gateway.control.metrics")
local names = require("gateway.control.names")

local next = next
local ngx = ngx
local tonumber = tonumber

local _M = {}

-- How long a worker that leaves stays the writer: for requests that are under way, and at least for
-- those of connections that it has just accepted.
local LEAVE_SECONDS = 10
local ACCEPTED_SECONDS = 0.2
local LOOK_SECONDS = 0.01
-- Later than any worker lives: such a timer is told when its worker leaves.
local NEVER_SECONDS = 1e10

-- What the admin listener is given (gateway.control.admin).
local live

-- The admin requests that are under way: addresses of nginx's requests, which stay the same over
-- internal redirects.
local busy = {}

local function address_of_request()
    return tonumber(ffi.cast("uintptr_t", base.get_request()))
end

--- The pids of the workers of this configuration of nginx that serve traffic.
local function traffic_workers(bus)
    local workers, found = bus:stats().workers, {}
    local generation
    for _, worker in ipairs(workers) do
        generation = worker.pid == ngx.worker.pid() and worker.generation or generation
    end
    for _, worker in ipairs(workers) do
        local is_ours = worker.generation == generation and worker.state == "attached"
        found[#found + 1] = is_ours and worker.pid ~= ngx.worker.pid() and worker.pid or nil
    end
    return found
end

--- Reads what the master has no use for: who may use the admin listener.
-- @tparam table settings resolved settings
-- @treturn table guard
-- @phases init
_M.guard = admin_guard.new

-- Another control worker waits for the role: gives it up as soon as no request needs it.
local function leave(premature)
    if not premature then
        return
    end
    local deadline = ngx.now() + LEAVE_SECONDS
    ngx.sleep(ACCEPTED_SECONDS)
    while next(busy) and ngx.now() < deadline do
        ngx.sleep(LOOK_SECONDS)
    end
    checks.stop()
    apply.leave()
end

--- Makes this worker the control worker.
-- @tparam table opts `settings`; `plugins` (the registry); `vault`; `guard`; `bus` of
-- sluice.events, not started yet; `timers` of sluice.timer, started; `reports`
-- (gateway.control.admin.timers)
-- @phases init_worker
function _M.init_worker(opts)
    local settings = opts.settings
    live = {
        settings = settings,
        is_writable = settings.file == "",
        plugins = opts.plugins,
        vault = opts.vault,
        guard = opts.guard,
        bus = opts.bus,
        timers = opts.reports,
        read = apply.read,
        state = apply.state,
        configuration = configuration.new(opts.plugins, settings),
        failures = failures.new(opts.bus),
        workers = function()
            return traffic_workers(opts.bus)
        end,
    }
    apply.start({
        store = settings.prefix .. "/store/store.db",
        images = settings.image_dir,
        layouts = layout.derive(entities.stored(), entities.of_plugins()),
        history = settings.file == "" and settings.history or 0,
        on_files = function()
            files.announce(opts.bus)
        end,
    })
    crashes.follow(opts.bus, apply.look)
    metrics.init_worker(settings.image_dir)
    addresses.start(opts.bus, opts.timers)
    names.serve(opts.bus)
    opts.timers:at(NEVER_SECONDS, leave)
end

--- Ends what the control worker has open, where it ends at once.
-- @phases exit_worker
_M.exit_worker = apply.exit

--- Answers a request of the admin listener. Yields.
-- @phases content
function _M.admin()
    busy[address_of_request()] = true
    return admin.handle(live)
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
