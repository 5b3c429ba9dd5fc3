--- What the control worker runs, nginx's worker 0: the store's only writer, the admin listener, the
-- names' addresses. It serves no traffic.
--
-- Nothing here may end the worker: nginx does not start one anew that ends by itself.
-- @module gateway.control

local addresses = require("gateway.control.addresses")
local admin = require("gateway.control.admin")
local admin_guard = require("gateway.control.admin.guard")
local apply = require("gateway.control.apply")
local configuration = require("gateway.control.configuration")
local entities = require("gateway.entities")
local failures = require("gateway.control.failures")
local layout = require("gateway.store.layout")

local ngx = ngx

local _M = {}

-- What the admin listener is given (gateway.control.admin).
local live

--- The pids of the workers that serve traffic: all but this one.
local function traffic_workers()
    local own, found = ngx.worker.pid(), {}
    for _, pid in ipairs(ngx.worker.pids()) do
        found[#found + 1] = pid ~= own and pid or nil
    end
    return found
end

--- Reads what the master has no use for: who may use the admin listener.
-- @tparam table settings resolved settings
-- @treturn table guard
-- @phases init
_M.guard = admin_guard.new

--- Makes this worker the control worker.
-- @tparam table opts `settings`; `plugins` (the registry); `vault`; `guard`; `bus` of sluice.events,
-- not started yet; `timers` of sluice.timer, started; `reports` (gateway.control.admin.timers)
-- @phases init_worker
function _M.init_worker(opts)
    local settings = opts.settings
    live = {
        settings = settings,
        plugins = opts.plugins,
        guard = opts.guard,
        bus = opts.bus,
        timers = opts.reports,
        read = apply.read,
        state = apply.state,
        configuration = configuration.new(opts.plugins, settings, opts.vault),
        failures = failures.new(opts.bus),
        workers = traffic_workers,
    }
    apply.start({
        store = settings.prefix .. "/store/store.db",
        images = settings.image_dir,
        layouts = layout.derive(entities.stored()),
    })
    addresses.start(opts.timers)
end

--- Answers a request of the admin listener. Yields.
-- @phases content
function _M.admin()
    return admin.handle(live)
end

--- Answers what nginx refuses by itself.
-- @phases content
_M.admin_refused = admin.refused

return _M
