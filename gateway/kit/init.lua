--- The global `kong`: Kong's plugin development kit (docs/kit.md).
--
-- A file for each of its tables. It is whole before the first file of a plugin is loaded, since
-- plugins take functions of it where they are required; what needs a request, or nginx, says so
-- when it is called. It is the only global of Sluice, and plugins may add to it; outside of
-- nginx there is an `ngx` beside it (gateway.kit.outside).
-- @module gateway.kit

local cache = require("gateway.kit.cache")
local configuration = require("gateway.kit.configuration")
local generations = require("gateway.kit.cache.generations")
local modules = require("gateway.kit.modules")
local outside = require("gateway.kit.outside")
local vault = require("gateway.kit.vault")
local version = require("gateway.version")
local worker_events = require("gateway.kit.worker_events")

-- What `kong` has, by the path below it: one line for each table.
local TABLES = {
    { "cache", cache.new("kong_db_cache") },
    { "client", require("gateway.kit.client") },
    { "client.tls", require("gateway.kit.client.tls") },
    { "cluster", require("gateway.kit.cluster") },
    { "cluster_events", require("gateway.kit.cluster_events") },
    { "configuration", configuration.view },
    { "core_cache", cache.new("kong_core_db_cache") },
    { "ctx", require("gateway.kit.ctx") },
    { "db", require("gateway.kit.db").view },
    { "dns", require("gateway.kit.dns") },
    { "ip", require("gateway.kit.ip") },
    { "log", require("gateway.kit.log") },
    { "nginx", require("gateway.kit.nginx") },
    { "node", require("gateway.kit.node") },
    { "plugin", require("gateway.kit.plugin").view },
    { "request", require("gateway.kit.request") },
    { "response", require("gateway.kit.response") },
    { "router", require("gateway.kit.router") },
    { "service", require("gateway.kit.service") },
    { "service.request", require("gateway.kit.service.request") },
    { "service.response", require("gateway.kit.service.response") },
    { "table", require("gateway.kit.table") },
    { "telemetry", require("gateway.kit.telemetry") },
    { "timer", require("gateway.kit.timer") },
    { "tracing", require("gateway.kit.tracing") },
    { "vault", vault },
    { "worker_events", worker_events },
}

local _M = {}

-- 3.9.3 is 3009003, as there.
local function number_of(text)
    local major, minor, patch = text:match("^(%d+)%.(%d+)%.(%d+)$")
    return tonumber(major) * 1000000 + tonumber(minor) * 1000 + tonumber(patch)
end

local function assemble()
    local kong = { version = version.kong, version_num = number_of(version.kong) }
    for _, row in ipairs(TABLES) do
        local at = kong
        local path, name = row[1]:match("^(.-)%.?([^.]+)$")
        for part in path:gmatch("[^.]+") do
            at = at[part]
        end
        at[name] = row[2]
    end
    return kong
end

--- Sets the global, once in a Lua state; each call takes the settings anew. Does not yield.
-- @tparam[opt] table settings resolved settings; nil: as before, at first those of no instance
-- @tparam[opt] {string,...} plugins names of those that are loaded
-- @treturn table kong
-- @phases init, or without nginx
function _M.install(settings, plugins)
    if settings then
        configuration.use(settings, plugins or {})
    end
    local kong = rawget(_G, "kong")
    if not kong then
        kong = assemble()
        modules.install()
        outside.install()
        rawset(_G, "kong", kong)
    end
    return kong
end

--- Starts what a worker has of its own.
-- @tparam table opts `vault` of gateway.config.vault
-- @phases init_worker
function _M.init_worker(opts)
    generations.init_worker()
    worker_events.init_worker()
    vault.use(opts.vault)
end

return _M
