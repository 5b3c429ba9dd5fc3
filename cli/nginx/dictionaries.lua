--- The shared dictionaries of Kong's nginx.conf, for plugins written for Kong.
--
-- `kong.cache` and `kong.core_cache` share what they have over all workers by five of them
-- (gateway.kit.cache): the caches' own, with what stands for nil in those of "_miss", and
-- kong_locks. The rest is for plugins that take a dictionary by its name. Sluice's own plugins do
-- with a worker's memory, so they are rendered only where the setting `plugins` names one that is
-- somebody else's. A dictionary takes addresses of its size at once, and memory for the pages that
-- are used: at first some 0.6%, for the list of its pages.
-- @module cli.nginx.dictionaries

local registry = require("gateway.plugin.registry")

-- As in Kong, but for those of kong.core_cache: what Kong's core keeps there is in images here.
local SIZES = {
    { "kong", "5m" },
    { "kong_locks", "8m" },
    { "kong_healthchecks", "5m" },
    { "kong_cluster_events", "5m" },
    { "kong_rate_limiting_counters", "12m" },
    { "kong_core_db_cache", "5m" },
    { "kong_core_db_cache_miss", "5m" },
    { "kong_db_cache", "128m" },
    { "kong_db_cache_miss", "12m" },
    { "kong_secrets", "5m" },
    { "kong_dns_cache", "5m" },
    { "prometheus_metrics", "5m" },
}

local _M = {}

--- The directives of `http`.
-- @tparam table settings resolved settings
-- @treturn string "" where no plugin of somebody else is named
function _M.render(settings)
    if not registry.has_others(settings.plugins, settings.lua_package_path) then
        return ""
    end
    local out = {}
    for i, row in ipairs(SIZES) do
        out[i] = ("lua_shared_dict %s %s;"):format(row[1], row[2])
    end
    return table.concat(out, "\n")
end

return _M
