--- `kong.configuration`: the settings as plugins read them, by Kong's names.
--
-- Names that Kong and Sluice share have Sluice's value; those of Kong that plugins compare with a
-- word have the word that is true here (docs/kit.md, "What kong.configuration says").
-- @module gateway.kit.configuration

local _M = {}

-- Kong's name -> ours, where these differ.
local OURS = {
    nginx_daemon = "daemon",
    nginx_worker_processes = "workers",
    proxy_access_log = "access_log",
    proxy_error_log = "error_log",
}

-- What is nobody's business, or tells of a machine more than a plugin needs.
local SECRET = {
    admin_token = true,
    admin_read_token = true,
    admin_token_list = true,
    admin_named_tokens = true,
}

-- What holds for every instance, as Kong's plugins compare it.
local FIXED = {
    anonymous_reports = false,
    cluster_listen = "off",
    db_update_frequency = 5,
    db_update_propagation = 0,
    db_cache_ttl = 0,
    db_cache_neg_ttl = 0,
    legacy_worker_events = false,
    role = "traditional",
    stream_listeners = {},
}

local settings, made = {}, {}

-- Header -> the words of the setting `headers` that have it added.
local HEADERS = {
    Server = { "server", "server_tokens" },
    Via = { "via", "server_tokens" },
    ["X-Kong-Admin-Latency"] = { "admin_latency", "latency_tokens" },
    ["X-Kong-Proxy-Latency"] = { "proxy_latency", "latency_tokens" },
    ["X-Kong-Request-Id"] = { "request_id" },
    ["X-Kong-Response-Latency"] = { "response_latency", "latency_tokens" },
    ["X-Kong-Upstream-Latency"] = { "upstream_latency", "latency_tokens" },
    ["X-Kong-Upstream-Status"] = { "upstream_status" },
    latency_tokens = { "latency_tokens" },
    server_tokens = { "server_tokens" },
}

local function set_of(list)
    local set = {}
    for _, name in ipairs(type(list) == "table" and list or {}) do
        set[name] = true
    end
    return set
end

-- As Kong: false is one that is not added.
local function headers_of(words)
    local given, found = set_of(words), {}
    for name, having in pairs(HEADERS) do
        found[name] = false
        for _, word in ipairs(having) do
            found[name] = found[name] or given[word] or false
        end
    end
    return found
end

--- What is shown of the settings: all but secrets.
local function remove_sensitive()
    local shown = {}
    for name, value in pairs(settings) do
        shown[name] = not SECRET[name] and value or nil
    end
    return shown
end

-- Whether single entities cannot be written.
local function is_file_mode(resolved)
    return resolved.database == "off" or (resolved.file or "") ~= ""
end

--- Takes the settings.
-- @tparam table resolved settings
-- @tparam {string,...} plugins the names of those that are loaded
-- @local
function _M.use(resolved, plugins)
    settings = resolved or {}
    made = {
        database = is_file_mode(settings) and "off" or "postgres",
        loaded_plugins = set_of(plugins),
        enabled_headers = headers_of(settings.headers),
        enabled_headers_upstream = headers_of(settings.headers_upstream),
        remove_sensitive = remove_sensitive,
    }
end

local function find(_, name)
    if made[name] ~= nil then
        return made[name]
    elseif FIXED[name] ~= nil then
        return FIXED[name]
    elseif SECRET[name] then
        return nil
    end
    return settings[OURS[name] or name]
end

_M.use({ database = "off" }, {})

--- The table of plugins: read-only.
_M.view = setmetatable({}, {
    __index = find,
    __newindex = function()
        error("cannot write to configuration", 2)
    end,
})

return _M
