--- Kong's constants. Of `BUNDLED_PLUGINS` there are none here: who asks `kong.configuration` gets
-- the plugins that are loaded.
-- @module kong.constants

-- nginx's numbers.
local LEVELS = {
    emerg = 1,
    alert = 2,
    crit = 3,
    error = 4,
    warn = 5,
    notice = 6,
    info = 7,
    debug = 8,
}

-- Both ways: name to number, number to name.
local log_levels = {}
for name, level in pairs(LEVELS) do
    log_levels[name], log_levels[level] = level, name
end

-- Kinds of entities, as a list and as a set.
local core_entities = {
    "workspaces",
    "consumers",
    "certificates",
    "services",
    "routes",
    "snis",
    "upstreams",
    "targets",
    "plugins",
    "tags",
    "ca_certificates",
    "clustering_data_planes",
    "parameters",
    "vaults",
    "key_sets",
    "keys",
    "filter_chains",
}

-- Which cache keeps a kind; those of plugins are in `kong.cache`.
local cache_of = setmetatable({ consumers = "cache", tags = "cache" }, {
    __index = function()
        return "cache"
    end,
})
for i = 3, 11 do
    local kind = core_entities[i]
    cache_of[kind] = kind ~= "tags" and "core_cache" or nil
end
for _, kind in ipairs({ "vaults", "key_sets", "keys" }) do
    cache_of[kind] = "core_cache"
end

for i = 1, #core_entities do
    core_entities[core_entities[i]] = true
end

local sync_status = {}
for i, name in ipairs({
    "UNKNOWN",
    "NORMAL",
    "KONG_VERSION_INCOMPATIBLE",
    "PLUGIN_SET_INCOMPATIBLE",
    "PLUGIN_VERSION_INCOMPATIBLE",
    "FILTER_SET_INCOMPATIBLE",
}) do
    sync_status[i], sync_status[name] = { [name] = name:lower() }, name:lower()
end

return {
    CJSON_MAX_PRECISION = 16,
    BUNDLED_PLUGINS = {},
    DEPRECATED_PLUGINS = {},
    BUNDLED_VAULTS = { env = true },
    DEPRECATED_VAULTS = {},
    CORE_ENTITIES = core_entities,
    ENTITY_CACHE_STORE = cache_of,
    DICTS = {
        "kong",
        "kong_locks",
        "kong_db_cache",
        "kong_db_cache_miss",
        "kong_cluster_events",
        "kong_healthchecks",
        "kong_rate_limiting_counters",
        "kong_secrets",
    },
    DECLARATIVE_DEFAULT_WORKSPACE_ID = "0dc6f45b-8f8d-40d2-a504-473544ee190b",
    DECLARATIVE_DEFAULT_WORKSPACE_KEY = "declarative_config:default_workspace",
    DECLARATIVE_EMPTY_CONFIG_HASH = ("0"):rep(32),
    DECLARATIVE_HASH_KEY = "declarative_config:hash",
    DECLARATIVE_LOAD_KEY = "declarative_config:loaded",
    PLUGINS_REBUILD_COUNTER_KEY = "readiness_probe_config:plugins_rebuild_counter",
    ROUTERS_REBUILD_COUNTER_KEY = "readiness_probe_config:routers_rebuild_counter",
    CLUSTER_ID_PARAM_KEY = "cluster_id",
    CLUSTERING_SYNC_STATUS = sync_status,
    CLUSTERING_TIMEOUT = 5000,
    CLUSTERING_PING_INTERVAL = 30,
    CLUSTERING_OCSP_TIMEOUT = 5000,
    CLEAR_HEALTH_STATUS_DELAY = 300,
    DYN_LOG_LEVEL_KEY = "kong:dyn_log_level",
    DYN_LOG_LEVEL_TIMEOUT_AT_KEY = "kong:dyn_log_level_timeout_at",
    DYN_LOG_LEVEL_DEFAULT_TIMEOUT = 60,
    ADMIN_GUI_KCONFIG_CACHE_KEY = "admin:gui:kconfig",
    REQUEST_DEBUG_TOKEN_FILE = ".request_debug_token",
    REQUEST_DEBUG_LOG_PREFIX = "[request-debug]",
    SCHEMA_NAMESPACES = { PROXY_WASM_FILTERS = "proxy-wasm-filters" },
    SOCKET_DIRECTORY = "sockets",
    HEADERS = {
        ADMIN_LATENCY = "X-Kong-Admin-Latency",
        ANONYMOUS = "X-Anonymous-Consumer",
        AUTHENTICATED_GROUPS = "X-Authenticated-Groups",
        CONSUMER_CUSTOM_ID = "X-Consumer-Custom-ID",
        CONSUMER_GROUPS = "X-Consumer-Groups",
        CONSUMER_ID = "X-Consumer-ID",
        CONSUMER_USERNAME = "X-Consumer-Username",
        CREDENTIAL_IDENTIFIER = "X-Credential-Identifier",
        FORWARDED_HOST = "X-Forwarded-Host",
        FORWARDED_PATH = "X-Forwarded-Path",
        FORWARDED_PREFIX = "X-Forwarded-Prefix",
        HOST_OVERRIDE = "X-Host-Override",
        PROXY_LATENCY = "X-Kong-Proxy-Latency",
        RATELIMIT_LIMIT = "X-RateLimit-Limit",
        RATELIMIT_REMAINING = "X-RateLimit-Remaining",
        REQUEST_ID = "X-Kong-Request-Id",
        RESPONSE_LATENCY = "X-Kong-Response-Latency",
        SERVER = "Server",
        UPSTREAM_LATENCY = "X-Kong-Upstream-Latency",
        UPSTREAM_STATUS = "X-Kong-Upstream-Status",
        VIA = "Via",
    },
    PROTOCOLS = { "grpc", "grpcs", "http", "https", "tcp", "tls", "tls_passthrough", "udp" },
    PROTOCOLS_WITH_SUBSYSTEM = {
        grpc = "http",
        grpcs = "http",
        http = "http",
        https = "http",
        tcp = "stream",
        tls = "stream",
        tls_passthrough = "stream",
        udp = "stream",
    },
    RATELIMIT = { PERIODS = { "second", "minute", "hour", "day", "month", "year" } },
    RESPONSE_SOURCE = {
        TYPES = { ERROR = "error", EXIT = "exit", SERVICE = "service" },
        NAMES = { error = "kong", exit = "kong", service = "upstream" },
    },
    DATABASE = { DAO_MAX_TTL = 1e8, POSTGRES = { MIN = "9.5" } },
    KEY_FORMATS = { "jwk", "pem" },
    KEY_FORMATS_MAP = { jwk = true, pem = true },
    LOG_LEVELS = log_levels,
}
