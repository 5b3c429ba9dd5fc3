--- Kong's settings: the 204 of Kong 3.9.3, each with what becomes of it here.
--
-- Long on purpose: one row for what has one answer.
--
-- The environment (KONG_*), kong.conf and docs/kong-settings.md go by this table. A row has:
--
--   names    of settings, as kong.conf spells them
--   takes    our setting, which the value is for; its own checks apply
--   as       how the value is read where it is not ours already (cli.options.kong_values)
--   warns    what is the case instead; the setting has no effect
--   refuses  why a start is refused, and what to do
--   same     values that say what is the case here anyway: nothing is said of them
--
-- Of two settings that are one here, the one that stands first wins, as with Kong.

local _M = {}

local DATABASE = "Sluice uses no external database: the store is in the prefix"
local NO_HYBRID = "there is no hybrid mode here"
local NO_MANAGER = "there is no Kong Manager here"
local NO_STREAM = "TCP and UDP are not proxied"
local NO_TRACES = "there are no traces"
local NAMES = "names are asked of the system's resolver (/etc/resolv.conf, /etc/hosts)"
local AT_ONCE = "changes are live on all workers at once, and nothing is asked of a database"
local NO_COMMANDS = "no commands are passed on to OpenSSL"
local NO_DHE = "ciphers with DHE are not offered"
local NO_WASM = "filters in WebAssembly are not run"
local IN_STORE = "the configuration is in the store and in shared memory that grows as needed"
local TICKETS = "sessions are resumed by tickets, for an hour, with keys that change"
local OWN_TEXT = "error responses have Kong's standard form"
local NO_LIMIT = "plugins are given all that nginx has read of a request or a response"
local OF_LUA = "plugins written in Lua have the limits of Sluice's own nginx.conf"

--- What becomes of settings that are injected into nginx.conf and have no row.
_M.INJECTED = "nothing is injected into nginx.conf; docs/config.md has the settings"
--- The same of other names that Kong takes of any spelling.
_M.OF_PLUGIN_SERVERS = "plugins in other languages are not run"
_M.OF_VAULTS = "the only vault is the environment, and vault_env lists its variables"
--- The same of names that are none of Kong 3.9.3.
_M.UNKNOWN = "this is no setting of Kong 3.9.3, and has no effect"

_M.rows = {
    -- files
    { names = "prefix", takes = "prefix" },
    { names = "declarative_config", takes = "file" },
    {
        names = "declarative_config_string",
        takes = "declarative_config_string",
        as = "document",
    },
    { names = "database", takes = "database" },
    {
        names = [[
            pg_host pg_port pg_database pg_schema pg_timeout pg_user pg_password pg_ssl
            pg_ssl_verify pg_max_concurrent_queries pg_semaphore_timeout pg_keepalive_timeout
            pg_pool_size pg_backlog _debug_pg_ttl_cleanup_interval pg_ro_host pg_ro_port
            pg_ro_database pg_ro_schema pg_ro_timeout pg_ro_user pg_ro_password pg_ro_ssl
            pg_ro_ssl_verify pg_ro_max_concurrent_queries pg_ro_semaphore_timeout
            pg_ro_keepalive_timeout pg_ro_pool_size pg_ro_backlog
        ]],
        warns = DATABASE,
    },
    {
        names = [[
            db_update_frequency db_update_propagation db_cache_ttl db_cache_neg_ttl
            db_resurrect_ttl db_cache_warmup_entities worker_state_update_frequency
        ]],
        warns = AT_ONCE,
    },
    { names = "worker_consistency", same = "strict", warns = AT_ONCE },
    {
        names = "lmdb_environment_path lmdb_map_size mem_cache_size worker_events_max_payload",
        warns = IN_STORE,
    },
    {
        names = "dedicated_config_processing",
        same = "on true",
        warns = "a process of its own always handles the configuration",
    },
    { names = "vaults", same = "bundled env", warns = _M.OF_VAULTS },
    { names = "node_id", warns = "the node's id follows from its host name and prefix" },

    -- modes
    {
        names = "role",
        same = "traditional",
        refuses = NO_HYBRID
            .. "; run the node by itself, with database = off and "
            .. "declarative_config, or send it POST /config",
    },
    { names = "cluster_listen", same = "off", warns = NO_HYBRID },
    {
        names = [[
            cluster_control_plane cluster_cert cluster_cert_key cluster_mtls
            cluster_ca_cert cluster_server_name cluster_data_plane_purge_delay cluster_ocsp
            cluster_max_payload cluster_use_proxy cluster_dp_labels cluster_rpc
            cluster_incremental_sync cluster_cjson proxy_server proxy_server_ssl_verify
        ]],
        warns = NO_HYBRID,
    },
    { names = "kic", same = "on off true false", warns = "no reports are sent" },
    {
        names = "router_flavor",
        same = "traditional traditional_compatible",
        refuses = "routes have no expressions here; write them as paths, hosts, methods, headers "
            .. "and snis, with traditional_compatible",
    },
    { names = "anonymous_reports", same = "off false", warns = "no reports are sent" },

    -- listeners
    { names = "proxy_listen", takes = "proxy_listen" },
    { names = "admin_listen", takes = "admin_listen" },
    { names = "status_listen", takes = "status_listen" },
    {
        names = "stream_listen",
        same = "off",
        refuses = NO_STREAM .. " by this version; set it to off",
    },
    {
        names = "proxy_stream_access_log proxy_stream_error_log",
        warns = NO_STREAM,
    },
    {
        names = [[
            admin_gui_listen admin_gui_access_log admin_gui_error_log admin_gui_ssl_cert
            admin_gui_ssl_cert_key admin_gui_url admin_gui_path admin_gui_api_url
        ]],
        same = "off",
        warns = NO_MANAGER,
    },
    { names = "port_maps", takes = "port_maps" },
    { names = "host_ports", warns = "Kong makes it of port_maps by itself" },

    -- TLS
    { names = "ssl_cert", takes = "ssl_cert" },
    { names = "ssl_cert_key", takes = "ssl_cert_key" },
    { names = "admin_ssl_cert", takes = "admin_ssl_cert" },
    { names = "admin_ssl_cert_key", takes = "admin_ssl_cert_key" },
    { names = "status_ssl_cert", takes = "status_ssl_cert" },
    { names = "status_ssl_cert_key", takes = "status_ssl_cert_key" },
    {
        names = "client_ssl",
        same = "off false",
        refuses = "there is no client certificate for all upstreams; give each service a "
            .. "client_certificate",
    },
    {
        names = "client_ssl_cert client_ssl_cert_key",
        warns = "upstreams get the client_certificate of their service",
    },
    { names = "ssl_cipher_suite", takes = "ssl_cipher_suite" },
    { names = "ssl_ciphers", takes = "ssl_ciphers" },
    { names = "nginx_http_ssl_protocols", takes = "ssl_protocols" },
    { names = "ssl_protocols", takes = "ssl_protocols" },
    { names = "nginx_http_ssl_prefer_server_ciphers", takes = "ssl_prefer_server_ciphers" },
    { names = "ssl_prefer_server_ciphers", takes = "ssl_prefer_server_ciphers" },
    { names = "ssl_dhparam nginx_http_ssl_dhparam", warns = NO_DHE },
    {
        names = "ssl_session_tickets nginx_http_ssl_session_tickets",
        same = "on true",
        warns = TICKETS,
    },
    {
        names = "ssl_session_timeout nginx_http_ssl_session_timeout",
        same = "1h",
        warns = TICKETS,
    },
    { names = "ssl_session_cache_size", warns = TICKETS },
    {
        names = [[
            nginx_http_ssl_conf_command nginx_http_proxy_ssl_conf_command
            nginx_http_lua_ssl_conf_command nginx_http_grpc_ssl_conf_command
        ]],
        warns = NO_COMMANDS,
    },

    -- nginx's processes
    { names = "nginx_main_user", takes = "user", as = "user" },
    { names = "nginx_user", takes = "user", as = "user" },
    { names = "nginx_main_worker_processes", takes = "workers" },
    { names = "nginx_worker_processes", takes = "workers" },
    { names = "nginx_main_daemon", takes = "daemon" },
    { names = "nginx_daemon", takes = "daemon" },
    {
        names = "nginx_main_worker_rlimit_nofile",
        same = "auto",
        warns = "the limit of open files follows from worker_connections",
    },
    { names = "nginx_events_worker_connections", takes = "worker_connections", as = "count" },
    {
        names = "nginx_events_multi_accept",
        same = "off",
        warns = "a worker accepts one connection at a time",
    },
    { names = "openresty_path", warns = "nginx_binary names the nginx that is run" },

    -- logs
    { names = "log_level", takes = "log_level" },
    { names = "proxy_access_log", takes = "access_log", as = "access_log" },
    { names = "proxy_error_log", takes = "error_log", as = "error_log" },
    { names = "admin_access_log", takes = "admin_access_log", as = "access_log" },
    { names = "admin_error_log", takes = "admin_error_log", as = "error_log" },
    { names = "status_access_log", takes = "status_access_log", as = "access_log" },
    { names = "status_error_log", takes = "status_error_log", as = "error_log" },

    -- clients
    { names = "trusted_ips", takes = "trusted_ips" },
    { names = "nginx_proxy_real_ip_header", takes = "real_ip_header" },
    { names = "real_ip_header", takes = "real_ip_header" },
    { names = "nginx_proxy_real_ip_recursive", takes = "real_ip_recursive" },
    { names = "real_ip_recursive", takes = "real_ip_recursive" },
    { names = "nginx_http_client_max_body_size", takes = "client_max_body_size" },
    { names = "nginx_http_client_body_buffer_size", takes = "client_body_buffer_size" },
    { names = "client_body_buffer_size", takes = "client_body_buffer_size" },
    { names = "nginx_http_keepalive_requests", takes = "keepalive_requests" },
    {
        names = "nginx_http_charset",
        same = "off",
        warns = "responses keep the charset of the upstream",
    },
    {
        names = "nginx_admin_client_max_body_size nginx_admin_client_body_buffer_size",
        warns = "the Admin API has its own limits (docs/admin.md)",
    },
    { names = "allow_debug_header", same = "off false", warns = "Kong-Debug is not answered" },
    {
        names = "request_debug request_debug_token",
        same = "off false",
        warns = "X-Kong-Request-Debug is not answered",
    },

    -- upstreams
    { names = "upstream_keepalive_pool_size", takes = "upstream_keepalive_pool_size" },
    {
        names = "upstream_keepalive_max_requests",
        takes = "upstream_keepalive_max_requests",
        as = "endless_requests",
    },
    {
        names = "upstream_keepalive_idle_timeout",
        takes = "upstream_keepalive_idle_timeout",
        as = "endless_time",
    },
    {
        names = [[
            dns_resolver dns_hostsfile dns_order dns_valid_ttl dns_stale_ttl dns_cache_size
            dns_not_found_ttl dns_error_ttl dns_no_sync resolver_address resolver_hosts_file
            resolver_family resolver_valid_ttl resolver_stale_ttl resolver_lru_cache_size
            resolver_mem_cache_size resolver_error_ttl
        ]],
        warns = NAMES,
    },
    { names = "new_dns_client", same = "off false", warns = NAMES },

    -- headers and responses
    { names = "headers", takes = "headers", as = "headers" },
    { names = "headers_upstream", takes = "headers_upstream", as = "headers" },
    { names = "error_default_type", takes = "error_default_type" },
    {
        names = [[
            error_template_html error_template_json error_template_xml error_template_plain
        ]],
        warns = OWN_TEXT,
    },

    -- plugins
    { names = "plugins", takes = "plugins", as = "plugins" },
    { names = "lua_package_path", takes = "lua_package_path" },
    { names = "lua_package_cpath", takes = "lua_package_cpath" },
    {
        names = [[
            lua_socket_pool_size lua_ssl_verify_depth lua_ssl_protocols
            nginx_http_lua_regex_match_limit nginx_http_lua_regex_cache_max_entries
        ]],
        warns = OF_LUA,
    },
    {
        names = "lua_ssl_trusted_certificate",
        warns = "the CAs of upstreams are those of proxy_ssl_trusted_certificate",
    },
    {
        names = "lua_max_req_headers lua_max_resp_headers lua_max_uri_args lua_max_post_args",
        warns = NO_LIMIT,
    },
    {
        names = "pluginserver_names",
        refuses = _M.OF_PLUGIN_SERVERS
            .. "; write them in Lua (docs/plugin-development.md), and "
            .. "remove this",
    },
    { names = "untrusted_lua", takes = "untrusted_lua" },
    { names = "untrusted_lua_sandbox_requires", takes = "untrusted_lua_sandbox_requires" },
    { names = "untrusted_lua_sandbox_environment", takes = "untrusted_lua_sandbox_environment" },
    { names = "opentelemetry_tracing tracing_instrumentations", same = "off", warns = NO_TRACES },
    { names = "opentelemetry_tracing_sampling_rate tracing_sampling_rate", warns = NO_TRACES },
    { names = "wasm", same = "off false", refuses = NO_WASM .. "; set it to off" },
    { names = "wasm_filters_path wasm_dynamic_module wasm_filters", warns = NO_WASM },

    -- TCP and UDP
    {
        names = [[
            nginx_stream_ssl_conf_command nginx_stream_proxy_ssl_conf_command
            nginx_stream_lua_ssl_conf_command nginx_stream_ssl_protocols
            nginx_stream_ssl_prefer_server_ciphers nginx_stream_ssl_dhparam
            nginx_stream_ssl_session_tickets nginx_stream_ssl_session_timeout
        ]],
        warns = NO_STREAM,
    },
}

-- Directives that Kong's users inject, and what sets them here.
local OF_HTTP = {
    client_header_timeout = "client_header_timeout",
    client_body_timeout = "client_body_timeout",
    client_body_buffer_size = "client_body_buffer_size",
    client_max_body_size = "client_max_body_size",
    http2_max_concurrent_streams = "http2_max_concurrent_streams",
    ignore_invalid_headers = "ignore_invalid_headers",
    keepalive_requests = "keepalive_requests",
    keepalive_timeout = "keepalive_timeout",
    large_client_header_buffers = "large_client_header_buffers",
    proxy_buffer_size = "proxy_buffer_size",
    proxy_buffers = "proxy_buffers",
    real_ip_header = "real_ip_header",
    real_ip_recursive = "real_ip_recursive",
    send_timeout = "send_timeout",
    ssl_ciphers = "ssl_ciphers",
    ssl_prefer_server_ciphers = "ssl_prefer_server_ciphers",
    ssl_protocols = "ssl_protocols",
}

--- Block of nginx.conf -> directive -> our setting.
_M.injected = {
    admin = {
        ssl_client_certificate = "admin_client_ca",
        ssl_verify_client = "admin_verify_client",
        ssl_verify_depth = "admin_verify_depth",
    },
    main = { worker_shutdown_timeout = "shutdown_timeout" },
    http = OF_HTTP,
    proxy = OF_HTTP,
    location = OF_HTTP,
    upstream = {
        keepalive = "upstream_keepalive_pool_size",
        keepalive_requests = "upstream_keepalive_max_requests",
        keepalive_timeout = "upstream_keepalive_idle_timeout",
    },
}

--- How the value of one that is injected is read where it is not ours already
-- (cli.options.kong_values).
_M.injected_as = { admin_client_ca = "client_ca", admin_verify_client = "verify_client" }

--- Name -> its row, and their order.
_M.by_name, _M.list = {}, {}
for _, row in ipairs(_M.rows) do
    for name in row.names:gmatch("%S+") do
        _M.by_name[name] = row
        _M.list[#_M.list + 1] = name
    end
end

-- Kong Enterprise's alone, of which somebody may believe that it protects the Admin API.
_M.by_name.enforce_rbac = {
    names = "enforce_rbac",
    same = "off",
    refuses = "there is no RBAC; set it to off, and have the Admin API require a token with "
        .. "`sluice token add`, whose --role may be to read only",
}

return _M
