--- Renders nginx.conf from resolved settings.
--
-- The file that comes out is the whole of what nginx is told: nothing outside
-- the prefix is written, and no other file is included. The shape of the proxy
-- server follows what Lua costs on nginx: a location pays for each phase that
-- it declares, so there is one location a set of phases, and a request is put
-- into the one that has just what its plugins need (docs/architecture.md, "One
-- request").
-- @module cli.nginx.conf

local blocks = require("cli.nginx.blocks")
local control_servers = require("cli.nginx.control_servers")
local dictionaries = require("cli.nginx.dictionaries")
local late_phases = require("gateway.proxy.late_phases")
local libraries = require("cli.nginx.libraries")
local listeners = require("cli.nginx.listeners")
local logs = require("cli.nginx.logs")
local own_headers = require("cli.nginx.own_headers")
local package_path = require("cli.nginx.package_path")
local platform = require("cli.options.platform")
local tls = require("cli.nginx.tls")
local variables = require("gateway.pdk.variables")

local _M = {}

local quote = logs.quote

local PRODUCT = "sluice/" .. require("gateway.version").product

-- One that writes, one that merges, two that read (gateway.writer).
local STORE_THREADS = 4
-- Those of gateway.upstream.queries, together.
local NAME_THREADS = 8
-- Of threads: each call that waits for one has one. nginx refuses what is beyond.
local THREAD_VMS = 64

local call, error_pages, REFUSED = blocks.call, blocks.error_pages, blocks.REFUSED

local function lines(...)
    return table.concat({ ... }, "\n")
end

local function main(settings, group)
    local out = {}
    for i, directive in ipairs(libraries.main(settings)) do
        out[i] = directive[1]
    end
    out[#out + 1] = ("sluice_metrics_series %d;"):format(settings.metrics_series)
    out[#out + 1] = ("sluice_limits_size %s;"):format(settings.rate_limiting_memory)
    out[#out + 1] = ("sluice_spool_size %s;"):format(settings.log_buffer_size)
    -- What nginx keeps of the environment in its workers (gateway.config.vault).
    for _, name in ipairs(settings.vault_env) do
        out[#out + 1] = ("env %s;"):format(name)
    end
    -- Worker 0 is the control worker; one that is stuck is ended, and another takes its place.
    out[#out + 1] = "sluice_control on;"
    out[#out + 1] = ("sluice_control_watchdog %s;"):format(settings.watchdog_timeout)
    -- The system's resolver blocks (gateway.upstream.queries), and so does the disk.
    out[#out + 1] = ("thread_pool sluice_dns threads=%d;"):format(NAME_THREADS)
    out[#out + 1] = ("thread_pool sluice_store threads=%d;"):format(STORE_THREADS)
    -- Files are checked beside the event loop (gateway.change.checks).
    out[#out + 1] = "thread_pool sluice_check_large threads=1;"
    out[#out + 1] = "thread_pool sluice_check_small threads=1;"
    out[#out + 1] = ("sluice_idle_grace %s;"):format(settings.idle_grace)
    if group then
        out[#out + 1] = ("user %s %s;"):format(settings.user, group)
    end
    out[#out + 1] = ("worker_processes %d;"):format(settings.workers + 1)
    local beside = platform.files_beside_connections(settings.workers)
    local files = settings.worker_connections + beside
    out[#out + 1] = ("worker_rlimit_nofile %d;"):format(files)
    if settings.shutdown_timeout ~= "0" then
        out[#out + 1] = ("worker_shutdown_timeout %s;"):format(settings.shutdown_timeout)
    end
    out[#out + 1] = ("pid %s;"):format(quote(settings.prefix .. "/run/nginx.pid"))
    out[#out + 1] = ("error_log %s %s;"):format(
        quote(logs.target(settings.error_log, settings.prefix)),
        settings.log_level
    )
    if not settings.daemon then
        out[#out + 1] = "daemon off;"
    end
    out[#out + 1] = "pcre_jit on;"
    out[#out + 1] = ("events { worker_connections %d; }"):format(settings.worker_connections)
    return table.concat(out, "\n")
end

--- The port that clients connect to, and what nginx has to know of it.
local function port_of(settings)
    if #settings.port_maps == 0 then
        return "$sluice_server_port", ""
    end
    local out = { "map $sluice_server_port $sluice_mapped_port {" }
    for _, map in ipairs(settings.port_maps) do
        out[#out + 1] = map:gsub("^(%d+):(%d+)$", "%2 %1;")
    end
    out[#out + 1] = "default $sluice_server_port;\n}"
    return "$sluice_mapped_port", table.concat(out, "\n")
end

--- Where X-Forwarded-* come from: the client's own are believed only if the
-- peer's address is trusted; the variables below hold what goes upstream.
local function forwarded(settings)
    local port, mapped = port_of(settings)
    if #settings.trusted_ips == 0 then
        return {
            conf = mapped,
            proto = "$scheme",
            host = "$sluice_named_host",
            port = port,
            path = "$sluice_request_path",
            prefix = "$sluice_prefix",
            client = "$remote_addr",
        }
    end
    local out = { mapped, "geo $realip_remote_addr $sluice_trusted {" }
    for _, cidr in ipairs(settings.trusted_ips) do
        out[#out + 1] = ("    %s 1;"):format(cidr)
    end
    out[#out + 1] = "}"
    for _, cidr in ipairs(settings.trusted_ips) do
        out[#out + 1] = ("set_real_ip_from %s;"):format(cidr)
    end
    out[#out + 1] = ("real_ip_header %s;"):format(settings.real_ip_header)
    out[#out + 1] = ("real_ip_recursive %s;"):format(settings.real_ip_recursive and "on" or "off")
    local function believe(name, own)
        local claimed, result = "$sluice_client_" .. name, "$sluice_forwarded_" .. name
        out[#out + 1] = ("map $sluice_trusted %s { 1 $http_x_forwarded_%s; }"):format(claimed, name)
        out[#out + 1] = ('map %s %s { "" %s; default %s; }'):format(claimed, result, own, claimed)
        return result
    end
    local result = {
        proto = believe("proto", "$scheme"),
        host = believe("host", "$sluice_named_host"),
        port = believe("port", port),
        path = believe("path", "$sluice_request_path"),
        prefix = believe("prefix", "$sluice_prefix"),
    }
    out[#out + 1] = "map $sluice_trusted $sluice_client_for { 1 $http_x_forwarded_for; }"
    out[#out + 1] = 'map $sluice_client_for $sluice_forwarded_for { "" $remote_addr; '
        .. 'default "$sluice_client_for, $realip_remote_addr"; }'
    result.client = "$sluice_forwarded_for"
    result.conf = table.concat(out, "\n")
    return result
end

--- One block for every service.
local function upstream(settings)
    local pool = ""
    if settings.upstream_keepalive_pool_size > 0 then
        pool = (" keepalive=%d requests=%d timeout=%s"):format(
            settings.upstream_keepalive_pool_size,
            settings.upstream_keepalive_max_requests,
            settings.upstream_keepalive_idle_timeout
        )
    end
    return lines(
        "upstream sluice_upstream {",
        "    server 0.0.0.1;",
        "    sluice_upstream" .. pool .. ";",
        "}"
    )
end

-- What the master reads of CAs, whichever server it is for.
local function tls_files(settings)
    local out = {}
    for i, path in ipairs(tls.trusted(settings)) do
        out[i] = ("sluice_upstream_trusted_certificate %s;"):format(quote(path))
    end
    for _, path in ipairs(settings.ssl_crl) do
        out[#out + 1] = ("sluice_crl %s;"):format(quote(path))
    end
    return table.concat(out, "\n")
end

--- The gateway's variables.
local function indexed()
    local out = {}
    for i, name in ipairs(variables.names) do
        out[i] = "$" .. name
    end
    return table.concat(out, " ")
end

--- What the gateway's own answers say of it, and for whom they are.
local function answers(settings)
    local out = { ("sluice_answer_default_type %s;"):format(settings.error_default_type) }
    local added = own_headers.added(settings)
    if added.server then
        out[#out + 1] = ("sluice_answer_server %s;"):format(PRODUCT)
    end
    if added.response_latency then
        out[#out + 1] = ("sluice_answer_latency %s;"):format(
            own_headers.name(settings, "response_latency")
        )
    end
    if added.upstream_status then
        -- Of several tries, the last.
        out[#out + 1] = "map $upstream_status $sluice_upstream_status {\n"
            .. "~(?<sluice_last_status>\\d+)$ $sluice_last_status;\n}"
    end
    return table.concat(out, "\n")
end

local function http(settings, root, forward)
    local tmp = settings.prefix .. "/tmp"
    local lua_path = package_path.text(root, settings.lua_package_path .. ";;")
    return lines(
        ("client_body_temp_path %s;"):format(quote(tmp .. "/client_body")),
        ("proxy_temp_path %s;"):format(quote(tmp .. "/proxy")),
        ("fastcgi_temp_path %s;"):format(quote(tmp .. "/fastcgi")),
        ("uwsgi_temp_path %s;"):format(quote(tmp .. "/uwsgi")),
        ("scgi_temp_path %s;"):format(quote(tmp .. "/scgi")),
        ("lua_package_path %s;"):format(quote(lua_path)),
        ("lua_package_cpath %s;"):format(quote(settings.lua_package_cpath .. ";;")),
        dictionaries.render(settings),
        ("lua_worker_thread_vm_pool_size %d;"):format(THREAD_VMS),
        "lua_regex_cache_max_entries 65536;",
        -- Most are those of plugins in the control worker (gateway/init.lua).
        "lua_max_running_timers 1024;",
        "lua_socket_log_errors off;",
        "default_type application/octet-stream;",
        "server_tokens off;",
        "tcp_nodelay on;",
        "underscores_in_headers on;",
        "uninitialized_variable_warn off;",
        -- And what loggers and plugins usually ask for.
        ("sluice_var_index default %s;"):format(indexed()),
        "variables_hash_max_size 2048;",
        "variables_hash_bucket_size 128;",
        "map_hash_bucket_size 128;",
        ("client_max_body_size %s;"):format(settings.client_max_body_size),
        ("client_body_buffer_size %s;"):format(settings.client_body_buffer_size),
        ("client_header_timeout %s;"):format(settings.client_header_timeout),
        ("client_body_timeout %s;"):format(settings.client_body_timeout),
        ("send_timeout %s;"):format(settings.send_timeout),
        ("sluice_buffered_body_size %s;"):format(settings.proxy_buffered_body_size),
        -- A proxied request needs some 6 KB: one block of memory instead of nginx's 4 KB and more.
        "request_pool_size 8k;",
        -- Requests between two returns of free memory, ten times the default: each makes the next
        -- requests fault their pages in again.
        "lua_malloc_trim 10000;",
        ("keepalive_timeout %s;"):format(settings.keepalive_timeout),
        ("keepalive_requests %d;"):format(settings.keepalive_requests),
        ("large_client_header_buffers %s;"):format(settings.large_client_header_buffers),
        logs.formats(settings),
        ("init_by_lua_block { require('gateway').init([==[%s]==]) }"):format(
            settings.prefix .. "/settings.json"
        ),
        "init_worker_by_lua_block { package.loaded.gateway.init_worker() }",
        "exit_worker_by_lua_block { package.loaded.gateway.exit_worker() }",
        ('sluice_via "1.1 %s";'):format(PRODUCT),
        answers(settings),
        ("sluice_asked_scheme %s;"):format(forward.proto),
        ("sluice_asked_host %s;"):format(forward.host),
        forward.conf,
        tls_files(settings),
        tls.trust_of_lua(settings),
        upstream(settings)
    )
end

local function directive(name, words)
    return #words == 0 and "" or name .. " " .. table.concat(words, " ") .. ";"
end

-- What is added to a response, in this order.
local RESPONSE_HEADERS = {
    { "upstream_latency", "$sluice_upstream_ms" },
    { "proxy_latency", "$sluice_proxy_ms" },
    { "upstream_status", "$sluice_upstream_status" },
    { "via", "$sluice_response_via" },
    { "request_id", "$sluice_request_id" },
}

local function response_headers(settings)
    local out = {}
    local function add(name, value)
        out[#out + 1] = ("sluice_response_header %s %s;"):format(name, value)
    end
    for _, name in ipairs(own_headers.hidden_of_response(settings)) do
        out[#out + 1] = directive("proxy_hide_header", { name })
    end
    local added = own_headers.added(settings)
    for _, each in ipairs(RESPONSE_HEADERS) do
        local word, variable = unpack(each)
        if added[word] then
            add(word == "via" and "Via" or own_headers.name(settings, word), variable)
        end
    end
    return table.concat(out, "\n")
end

local function request_headers(settings, forward)
    local out = {
        directive("sluice_drop_headers", own_headers.dropped_of_request(settings)),
        directive("sluice_guard_headers", own_headers.guarded_of_request(settings)),
        -- All lines but those that frame a body are the module's (ngx_http_sluice_head.c).
        'proxy_set_header Host "";',
        'proxy_set_header Connection "";',
        "proxy_pass_request_headers off;",
    }
    local function send(name, value)
        out[#out + 1] = ("sluice_upstream_header %s %s;"):format(name, value)
    end
    send("Host", "$sluice_host")
    send("Via", "$sluice_via")
    send("X-Real-IP", "$remote_addr")
    send("X-Forwarded-For", forward.client)
    send("X-Forwarded-Proto", forward.proto)
    send("X-Forwarded-Host", forward.host)
    send("X-Forwarded-Port", forward.port)
    send("X-Forwarded-Path", forward.path)
    send("X-Forwarded-Prefix", forward.prefix)
    if settings.headers_upstream[1] == "request_id" then
        send(settings.header_prefix .. "-Request-Id", "$sluice_request_id")
    end
    for _, name in ipairs(own_headers.of_this_hop) do
        send(name, '""')
    end
    return table.concat(out, "\n")
end

--- The head of a location, with what Lua runs in it.
local function location(variant)
    local out = {
        ("location %s {"):format(variant.location),
        ("sluice_location %s %d;"):format(variant.kind, variant.level),
    }
    for _, phase in ipairs(variant.phases) do
        out[#out + 1] = call(phase, phase)
    end
    return out
end

--- The location of one set of phases (gateway.proxy.late_phases names them all).
local function proxy_location(variant)
    local out = location(variant)
    if variant.kind == "lua" then
        out[#out + 1] = call("access", "access")
    end
    out[#out + 1] = error_pages(variant.error_location)
    out[#out + 1] = "proxy_pass https://sluice_upstream;"
    out[#out + 1] = "}"
    return table.concat(out, "\n    ")
end

--- That of a response that plugins have whole.
local function response_location(variant)
    local out = location(variant)
    out[#out + 1] = call("content", "response")
    out[#out + 1] = error_pages(variant.error_location)
    -- A response without a type stays without.
    out[#out + 1] = 'default_type "";'
    out[#out + 1] = "}"
    return table.concat(out, "\n    ")
end

local function error_location(variant)
    local out = location(variant)
    out[#out + 1] = "sluice_error_page;"
    out[#out + 1] = "}"
    return table.concat(out, "\n    ")
end

local function proxy_server(settings, forward)
    local out = {
        "server {",
        "server_name sluice;",
        listeners.listens(settings.proxy_listen),
        listeners.tls(settings),
        listeners.http2(settings, settings.proxy_listen),
        logs.proxy(settings),
        ("ignore_invalid_headers %s;"):format(settings.ignore_invalid_headers and "on" or "off"),
        "sluice_metrics on;",
        ("sluice_early_hints %s;"):format(settings.early_hints and "on" or "off"),
        "sluice_check_requests on;",
        "sluice_route on;",
        ("sluice_reject_path_traversal %s;"):format(
            settings.reject_encoded_climbs and "on" or "off"
        ),
        "proxy_http_version 1.1;",
        -- Which failures have another peer tried. This is nginx's default. A request that is
        -- not idempotent is repeated only if nothing of it was sent.
        "proxy_next_upstream error timeout;",
        "proxy_redirect off;",
        ("proxy_buffer_size %s;"):format(settings.proxy_buffer_size),
        ("proxy_buffers %s;"):format(settings.proxy_buffers),
        "proxy_pass_header Server;",
        "proxy_pass_header Date;",
        -- An upstream must not steer the gateway's own nginx.
        "proxy_ignore_headers X-Accel-Redirect X-Accel-Limit-Rate X-Accel-Charset;",
        "proxy_ssl_protocols TLSv1.2 TLSv1.3;",
        "proxy_ssl_server_name on;",
        "proxy_ssl_name $sluice_host;",
        request_headers(settings, forward),
        response_headers(settings),
        -- What a request comes to is for C to say (ngx_http_sluice_route.c); the
        -- location is for subrequests that somebody has written in here.
        error_pages(REFUSED),
        ("location = %s {"):format(REFUSED),
        "internal;",
        "sluice_error_page;",
        "}",
    }
    for _, variant in ipairs(late_phases.variants) do
        out[#out + 1] = proxy_location(variant)
    end
    for _, variant in ipairs(late_phases.response_variants) do
        out[#out + 1] = response_location(variant)
    end
    for _, variant in ipairs(late_phases.error_variants) do
        out[#out + 1] = error_location(variant)
    end
    out[#out + 1] = "}"
    return table.concat(out, "\n")
end

local function indent(text)
    local depth = 0
    return (
        text:gsub("[^\n]+", function(line)
            line = line:match("^%s*(.-)$")
            if line:sub(1, 1) == "}" then
                depth = depth - 1
            end
            local out = ("    "):rep(depth) .. line
            if line:sub(-1) == "{" then
                depth = depth + 1
            end
            return out
        end):gsub("\n\n+", "\n")
    )
end

--- Renders nginx.conf.
-- @tparam table settings resolved settings (cli.settings)
-- @tparam string root absolute path of Sluice's own files
-- @tparam[opt] string group of `settings.user`, whom the workers run as; nil where nginx's master
--   will not run as root
-- @treturn string the text of nginx.conf
function _M.render(settings, root, group)
    local forward = forwarded(settings)
    local out = {
        "# Rendered by sluice; changes here are lost at the next start or reload.",
        main(settings, group),
        "http {",
        http(settings, root, forward),
            -- One without an address would listen on nginx's default.
        #settings.proxy_listen > 0 and proxy_server(settings, forward) or "",
        control_servers.admin(settings),
        #settings.status_listen > 0 and control_servers.status(settings) or "",
        "}",
    }
    return indent(table.concat(out, "\n")) .. "\n"
end

return _M
