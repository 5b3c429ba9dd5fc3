--- Every option of Sluice, declared once as data.
--
-- Long on purpose: one row an option.
--
-- The command line flags, the SLUICE_* environment, the settings file, the checks, the help
-- text and docs/config.md all come from this table. A row has:
--
--   name     in the settings file; the flag is --name with dashes, the variable SLUICE_NAME
--   type     one of cli.values; it says how the text is read and what the typed value is
--   default  as text, read like any other value
--   doc      what it does
--   unit     what a bare number counts (optional)
--   values   the words that an enum or a list accepts
--   min, max bounds of an integer, or of a size in bytes
--   syslog   whether a log may go to one
--   where    "start" when only a new start takes it (a reload keeps the old value)
--
-- A secret has no flag, as everybody may read the arguments of a process, and no message shows it.
--
-- Typed values in the settings table: a list is an array (an option that is "off" is an empty
-- one), a boolean a boolean, an integer a number, everything else a string. Times and sizes
-- stay in nginx's notation ("60s", "8k").

local platform = require("cli.platform")

local _M = {}

-- Sections order the help text and the generated page.
_M.sections =
    { "files", "listeners", "workers", "logs", "clients", "upstreams", "headers", "nginx" }

_M.titles = {
    files = "Files",
    listeners = "Listeners",
    workers = "Workers",
    logs = "Logs",
    clients = "Clients",
    upstreams = "Upstreams",
    headers = "Headers and responses",
    nginx = "nginx and plugins",
}

_M.list = {
    -- files
    {
        name = "prefix",
        section = "files",
        type = "path",
        default = "/var/lib/sluice",
        where = "start",
        doc = "Directory of one instance: its rendered nginx.conf, store, logs and temporary "
            .. "files. Two instances need two prefixes. It is created when missing.",
    },
    {
        name = "run_dir",
        section = "files",
        type = "path",
        default = "",
        where = "start",
        doc = "Folder of what lasts as long as the gateway runs, pid and control socket, of one "
            .. "instance alone; commands find it by a link in the prefix. It is created when "
            .. "missing, by root for who owns the prefix. Empty: `run` in the prefix.",
    },
    {
        name = "conf",
        section = "files",
        type = "path",
        default = "/etc/sluice/sluice.conf",
        doc = "The settings file: `name = value` lines, `#` starts a comment. The default is read "
            .. "only if it exists; one that was asked for has to. The file cannot set it.",
    },
    {
        name = "file",
        section = "files",
        type = "path",
        default = "",
        doc = "The declarative configuration (YAML or JSON): services, routes, consumers, plugins. "
            .. "It is the truth then, and the Admin API writes nothing. Empty: the store of the "
            .. "prefix is the truth, and the Admin API writes it.",
    },
    {
        name = "history",
        section = "files",
        type = "integer",
        default = "1000",
        unit = "revisions",
        min = 0,
        max = 1000000,
        doc = "How far `sluice rollback` reaches, where the store is the truth: the last so many "
            .. "changes, or 64 MiB of what they replaced. 0 keeps none.",
    },
    {
        name = "max_entities",
        section = "files",
        type = "integer",
        default = "1500000",
        unit = "entities",
        min = 1,
        max = 100000000,
        doc = "How many entities a declarative file may have, read or posted, with those nested in "
            .. "others. To check and write it takes some 4.5 KB of memory for each; a check that "
            .. "takes more than 4 KiB for each that is allowed, and more than 256 MiB, is refused.",
    },
    {
        name = "image_dir",
        section = "files",
        type = "path",
        default = "",
        where = "start",
        doc = "Folder of the images, from which requests are routed: of one instance alone, in "
            .. "memory (tmpfs), with room for 32 MiB and about 1.5 kilobytes a route. Empty: one "
            .. "of its own in /dev/shm, or where that has no room, `images` in the prefix, with a "
            .. "warning: a stalled disk would stall traffic.",
    },
    {
        name = "vault_env",
        section = "files",
        type = "name_list",
        default = "",
        doc = "Environment variables that a declarative configuration may refer to as "
            .. "`{vault://env/NAME}` or through a vault, separated by commas. They are read "
            .. "when the gateway starts. "
            .. "Whoever may post a configuration can send them to a server of his.",
    },
    -- listeners
    {
        name = "proxy_listen",
        section = "listeners",
        type = "listen",
        default = "0.0.0.0:8000, 0.0.0.0:8443 ssl http2",
        tls = true,
        doc = "Addresses that take the traffic, separated by commas: `host:port`, IPv6 as "
            .. "`[::]:8000`; an address may be followed by `ssl`, `http2`, "
            .. "`ask_client_certificate`, `reuseport` and `backlog=N`. See [tls.md](tls.md).",
    },
    {
        name = "ssl_cipher_suite",
        section = "listeners",
        type = "enum",
        default = "intermediate",
        values = { "modern", "intermediate", "custom" },
        doc = "Versions of TLS and ciphers that clients may speak, after Mozilla's: `intermediate` "
            .. "is TLS 1.2 and 1.3, `modern` TLS 1.3 alone; with `custom` ssl_protocols and "
            .. "ssl_ciphers count.",
    },
    {
        name = "ask_client_certificate",
        section = "listeners",
        type = "boolean",
        default = "off",
        doc = "Ask clients for a certificate in the TLS handshake, as the plugin mtls-auth needs "
            .. "it, on all addresses with `ssl`; who has none goes on without. A browser that has "
            .. "some asks its user.",
    },
    {
        name = "ssl_crl",
        section = "listeners",
        type = "path_list",
        default = "",
        doc = "Files of revocation lists (PEM, up to 16 MiB each), separated by commas, which all "
            .. "plugins mtls-auth look into beside their own. A start and a reload read them.",
    },
    {
        name = "ssl_protocols",
        section = "listeners",
        type = "text",
        default = "TLSv1.2 TLSv1.3",
        doc = "Versions of TLS, where ssl_cipher_suite is `custom`.",
    },
    {
        name = "ssl_ciphers",
        section = "listeners",
        type = "text",
        default = "HIGH:!aNULL:!MD5",
        doc = "Ciphers of TLS 1.2 as OpenSSL names them, where ssl_cipher_suite is `custom`.",
    },
    {
        name = "admin_listen",
        section = "listeners",
        type = "listen",
        default = "127.0.0.1:8001",
        off = true,
        doc = "Addresses of the admin listener, or `off`. Where one is not on loopback, `start` "
            .. "wants an admin_token.",
    },
    {
        name = "admin_hosts",
        section = "listeners",
        type = "host_list",
        default = "",
        doc = "Names, beside `localhost` and IP addresses, by which clients know the admin "
            .. "listener (their Host header, without port). Other names are refused, so that no "
            .. "web page reaches it by a name of its own.",
    },
    {
        name = "admin_token",
        section = "listeners",
        type = "secret",
        default = "",
        unit = "characters",
        min = 16,
        max = 512,
        doc = "Token that clients of the admin listener send as `Kong-Admin-Token: TOKEN` or "
            .. "`Authorization: Bearer TOKEN`; none is wanted where this is empty. Not a flag, as "
            .. "everybody may read the arguments of a process.",
    },
    {
        name = "admin_read_token",
        section = "listeners",
        type = "secret",
        default = "",
        unit = "characters",
        min = 16,
        max = 512,
        doc = "A second token, beside admin_token, for clients that only read: GET, HEAD, OPTIONS, "
            .. "and no secrets are shown. Not a flag either.",
    },
    {
        name = "admin_secrets",
        section = "listeners",
        type = "enum",
        default = "show",
        values = { "show", "hide" },
        doc = "What the admin listener shows where an entity has a secret (a key, a private key): "
            .. "`show` it, as Kong does, or `hide` it: null, unless a request that may write says "
            .. "`?reveal=1`.",
    },
    {
        name = "admin_insecure",
        section = "listeners",
        type = "boolean",
        default = "off",
        doc = "Allow an admin listener that is not on loopback without an admin_token: whoever "
            .. "reaches it reads every key and replaces the configuration.",
    },
    -- workers
    {
        name = "workers",
        section = "workers",
        type = "count",
        default = "auto",
        min = 1,
        max = 511,
        doc = "Worker processes that serve traffic; `auto` is one for each CPU that the gateway "
            .. "may use, by its affinity and the quota of its control group (`cpu.max`). One more "
            .. "process looks after the configuration. Up to 255 the old workers of three reloads "
            .. "may stay beside the new ones, up to 340 those of two, up to 511 of one: nginx has "
            .. "at most 1,024 processes. A start makes that space, for 256 processes at least; a "
            .. "reload that would need more is refused.",
    },
    {
        name = "worker_connections",
        section = "workers",
        type = "integer",
        default = "16384",
        unit = "connections",
        min = 32,
        max = 1048576,
        doc = "Connections of one worker, to clients and upstreams together. Lowered, with a "
            .. "warning, to what the hard limit of open files (`ulimit -Hn`) leaves beside a "
            .. "worker's other descriptors: 512, and with many workers more (docs/operations.md).",
    },
    {
        name = "user",
        section = "workers",
        type = "word",
        default = platform.user,
        where = "start",
        doc = "User that the workers run as when root starts the gateway; otherwise they run as "
            .. "the user who starts it. Where the prefix belongs to this user, root's commands "
            .. "run as it, and so does all of nginx.",
    },
    {
        name = "idle_grace",
        section = "workers",
        type = "time",
        default = "5s",
        doc = "How long a worker that leaves at a reload keeps idle client connections: each may "
            .. "send one more request, which is answered with `Connection: close`. 0 closes them "
            .. "at once, as nginx does, and with them a request that is just coming.",
    },
    {
        name = "shutdown_timeout",
        section = "workers",
        type = "time",
        default = "0",
        unit = "seconds",
        doc = "How long a worker that is to leave (reload, quit) may finish its requests before it "
            .. "closes them; 0 waits for as long as they take.",
    },
    -- logs
    {
        name = "log_level",
        section = "logs",
        type = "enum",
        default = "notice",
        values = { "debug", "info", "notice", "warn", "error", "crit", "alert", "emerg" },
        doc = "Least severe messages that the error log keeps. With `debug` whole requests stand "
            .. "in it, and with them keys and passwords.",
    },
    {
        name = "error_log",
        section = "logs",
        type = "log",
        default = "logs/error.log",
        values = { "stderr" },
        doc = "Error log: a file (relative to the prefix), or `stderr` with --foreground.",
    },
    {
        name = "access_log",
        section = "logs",
        type = "log",
        default = "logs/access.log",
        values = { "off", "/dev/stdout", "/dev/stderr" },
        syslog = true,
        doc = "Access log of the proxy: a file (relative to the prefix), `off`, `/dev/stdout` or "
            .. "`/dev/stderr` with --foreground, or `syslog:server=ADDRESS` with nginx's "
            .. "parameters (docs/logs.md).",
    },
    {
        name = "access_log_format",
        section = "logs",
        type = "log_format",
        default = "combined",
        values = { "combined", "json" },
        doc = "Format of the access logs: `combined`, `json`, or an nginx log format such as "
            .. "`$remote_addr $status`. One that begins with `{` is escaped as JSON. Keys, "
            .. "cookies and passwords are REDACTED in each (docs/logs.md).",
    },
    {
        name = "access_log_buffer",
        section = "logs",
        type = "size",
        default = "0",
        unit = "bytes",
        max = 16777216,
        doc = "Lines of access_log that a worker keeps in so much memory, and writes together when "
            .. "it is full or access_log_flush is over. What is in it is lost with a worker that "
            .. "is killed. 0 writes each line at once, and so does a syslog.",
    },
    {
        name = "access_log_flush",
        section = "logs",
        type = "time",
        default = "1s",
        min = 1,
        doc = "How long a line waits in that buffer at most.",
    },
    {
        name = "admin_access_log",
        section = "logs",
        type = "log",
        default = "logs/admin_access.log",
        values = { "off", "/dev/stdout", "/dev/stderr" },
        syslog = true,
        doc = "Access log of the admin listener: like access_log.",
    },
    {
        name = "audit_log",
        section = "logs",
        type = "log",
        default = "off",
        values = { "off", "/dev/stdout", "/dev/stderr" },
        syslog = true,
        doc = "One line of JSON for each request to the admin listener that would change anything: "
            .. "when, who, from where, what, and how it ended. Goes where access_log may.",
    },
    -- clients
    {
        name = "trusted_ips",
        section = "clients",
        type = "cidr_list",
        default = "",
        doc = "Addresses and networks (CIDR) whose X-Forwarded-* and real_ip_header are believed. "
            .. "Empty: nobody's.",
    },
    {
        name = "real_ip_header",
        section = "clients",
        type = "word",
        default = "X-Real-IP",
        doc = "Request header from which a trusted sender's client address is read.",
    },
    {
        name = "real_ip_recursive",
        section = "clients",
        type = "boolean",
        default = "off",
        doc = "Take the last address in real_ip_header that is not trusted, instead of the last.",
    },
    {
        name = "client_max_body_size",
        section = "clients",
        type = "size",
        default = "0",
        unit = "bytes",
        doc = "Largest request body; a larger one is answered 413. 0 is no limit.",
    },
    {
        name = "client_body_buffer_size",
        section = "clients",
        type = "size",
        default = "8k",
        unit = "bytes",
        min = 1,
        doc = "Part of a request body held in memory before it goes to a temporary file.",
    },
    {
        name = "client_header_timeout",
        section = "clients",
        type = "time",
        default = "60s",
        unit = "seconds",
        doc = "Time for a client to send its request header.",
    },
    {
        name = "client_body_timeout",
        section = "clients",
        type = "time",
        default = "60s",
        unit = "seconds",
        doc = "Time between two reads of a request body.",
    },
    {
        name = "send_timeout",
        section = "clients",
        type = "time",
        default = "60s",
        unit = "seconds",
        doc = "Time between two writes of a response; a client who takes nothing for so long loses "
            .. "the connection, or the stream of HTTP/2.",
    },
    {
        name = "keepalive_timeout",
        section = "clients",
        type = "time",
        default = "75s",
        unit = "seconds",
        doc = "How long an idle client connection is kept; 0 closes it after each response.",
    },
    {
        name = "keepalive_requests",
        section = "clients",
        type = "integer",
        default = "10000",
        unit = "requests",
        min = 1,
        max = 2147483647,
        doc = "Requests that one client connection may carry.",
    },
    {
        name = "http2_max_concurrent_streams",
        section = "clients",
        type = "integer",
        default = "128",
        unit = "streams",
        min = 1,
        max = 10000,
        doc = "Requests that one HTTP/2 connection may have open at once.",
    },
    {
        name = "http2_max_resets",
        section = "clients",
        type = "integer",
        default = "500",
        unit = "frames",
        min = 1,
        max = 2147483647,
        doc = "RST_STREAM frames that an HTTP/2 client may send on a connection in a minute.",
    },
    {
        name = "http2_max_control_frames",
        section = "clients",
        type = "integer",
        default = "1000",
        unit = "frames",
        min = 1,
        max = 2147483647,
        doc = "SETTINGS, PING, PRIORITY, CONTINUATION and empty DATA frames that an HTTP/2 client "
            .. "may send on a connection in a minute.",
    },
    {
        name = "large_client_header_buffers",
        section = "clients",
        type = "buffers",
        default = "4 8k",
        doc = "Number and size of the buffers for long request lines and headers.",
    },
    {
        name = "reject_encoded_climbs",
        section = "clients",
        type = "boolean",
        default = "on",
        doc = "Answer 400 where a dot segment of the path (`.`, `..`) stands beside `%2f`, `%5c`, "
            .. "`\\`, `;` or `#`, or is encoded more than once: some upstreams climb there "
            .. "(`/public/..%2fprivate`), where routing saw no step. Off passes such paths on; "
            .. "still refused is one that climbs out of a service's path.",
    },
    {
        name = "client_identity_headers",
        section = "clients",
        type = "enum",
        default = "drop",
        values = { "drop", "pass" },
        doc = "What happens to X-Consumer-*, X-Credential-*, X-Anonymous-Consumer and "
            .. "X-Client-Cert-* that clients send: `drop`, or `pass` them on routes without "
            .. "authentication, as Kong does. With an underscore for a dash they are dropped in "
            .. "either case.",
    },
    -- upstreams
    {
        name = "upstream_keepalive_pool_size",
        section = "upstreams",
        type = "integer",
        default = "512",
        unit = "connections",
        min = 0,
        max = 1048576,
        doc = "Idle upstream connections that a worker keeps, of all services together; 0 "
            .. "closes each after its request. A connection with TLS serves only requests for "
            .. "the server name, CAs and client certificate that it was made with.",
    },
    {
        name = "upstream_keepalive_max_requests",
        section = "upstreams",
        type = "integer",
        default = "10000",
        unit = "requests",
        min = 1,
        max = 2147483647,
        doc = "Requests that one upstream connection may carry.",
    },
    {
        name = "upstream_keepalive_idle_timeout",
        section = "upstreams",
        type = "time",
        default = "60s",
        unit = "seconds",
        min = 1,
        doc = "How long an idle upstream connection is kept.",
    },
    {
        name = "proxy_ssl_trusted_certificate",
        section = "upstreams",
        type = "path_list",
        default = platform.ca_bundle,
        doc = "Files of CA certificates (PEM), separated by commas: whom services trust that have "
            .. "`tls_verify` and no `ca_certificates`. The default, the system's, is read only if "
            .. "it exists; one that was asked for has to. A start and a reload read them.",
    },
    {
        name = "proxy_buffer_size",
        section = "upstreams",
        type = "size",
        default = "32k",
        unit = "bytes",
        min = 1024,
        max = 16777216,
        doc = "Buffer for the header of a response and the beginning of its body; a header that "
            .. "does not fit is answered 502. Each response under way has one; memory is used as "
            .. "far as it is filled.",
    },
    {
        name = "proxy_buffers",
        section = "upstreams",
        type = "buffers",
        default = "8 16k",
        doc = "Number and size of the buffers that a response's body may fill while the client is "
            .. "slow, before the rest goes to a temporary file; taken as they are needed. All but "
            .. "one of them together have to hold twice the larger of their size and "
            .. "proxy_buffer_size.",
    },
    -- headers
    {
        name = "headers",
        section = "headers",
        type = "word_list",
        default = "server_tokens, latency_tokens, request_id",
        values = { "server_tokens", "latency_tokens", "request_id" },
        off = true,
        doc = "What the gateway adds to responses: its name in Via or Server, the latencies, the "
            .. "request id (sent to the upstream too); or `off`.",
    },
    {
        name = "header_prefix",
        section = "headers",
        type = "word",
        default = "X-Kong",
        doc = "First part of the names of those headers: with `X-Kong`, `X-Kong-Request-Id`, "
            .. "`X-Kong-Proxy-Latency`, `X-Kong-Upstream-Latency`.",
    },
    {
        name = "error_default_type",
        section = "headers",
        type = "enum",
        default = "text/plain",
        values = { "text/plain", "text/html", "application/json", "application/xml" },
        doc = "Media type of the gateway's own error responses when the request has no Accept.",
    },
    -- nginx
    {
        name = "rate_limiting_memory",
        section = "nginx",
        type = "size",
        default = "12m",
        unit = "bytes",
        min = 131072,
        max = 34359738368,
        doc = "Shared memory for the counters of rate-limiting, taken as it is used. Another size "
            .. "lets all limits begin anew.",
    },
    {
        name = "events_size",
        section = "nginx",
        type = "size",
        default = "16m",
        unit = "bytes",
        min = 65536,
        max = 1073741824,
        where = "start",
        doc = "Shared memory for the log of events between the workers, rounded up to a power of "
            .. "two. How much may be under way while a worker is busy.",
    },
    {
        name = "events_stall",
        section = "nginx",
        type = "time",
        default = "10s",
        unit = "seconds",
        min = 1,
        doc = "How long a worker that is stuck may hold up the others when that log is full; then "
            .. "it is left behind, and reads the configuration anew when it goes on.",
    },
    {
        name = "metrics_series",
        section = "nginx",
        type = "integer",
        default = "0",
        unit = "routes",
        min = 0,
        max = 10000,
        where = "start",
        doc = "How many routes, and how many services, have lines of their own in `/metrics`. 0: "
            .. "only the node has. Each takes 448 bytes for each worker that serves it.",
    },
    {
        name = "metrics_latencies",
        section = "nginx",
        type = "boolean",
        default = "off",
        doc = "Show the histograms of those routes and services, too: 50 lines each.",
    },
    {
        name = "plugins",
        section = "nginx",
        type = "name_list",
        default = "bundled",
        doc = "Plugins that a configuration may use, separated by commas: `bundled` for all that "
            .. "come with Sluice, and names of your own, found as Lua modules `plugins.<name>` "
            .. "through lua_package_path.",
    },
    {
        name = "nginx_binary",
        section = "nginx",
        type = "path",
        default = platform.nginx_binary,
        where = "start",
        doc = "The nginx to run.",
    },
    {
        name = "nginx_modules",
        section = "nginx",
        type = "path_list",
        default = table.concat(platform.nginx_modules, ", "),
        doc = "Dynamic modules to load, in this order, separated by commas. Empty for an nginx "
            .. "that has them built in (OpenResty).",
    },
    {
        name = "lua_package_path",
        section = "nginx",
        type = "text",
        default = "",
        doc = "More places for Lua modules (`/dir/?.lua;...`), searched after Sluice's own.",
    },
    {
        name = "lua_package_cpath",
        section = "nginx",
        type = "text",
        default = platform.lua_package_cpath,
        doc = "More places for Lua modules in C (`/dir/?.so;...`).",
    },
}

_M.by_name = {}
for _, option in ipairs(_M.list) do
    _M.by_name[option.name] = option
end

--- The flag of an option, as typed.
-- @tparam table option a row of the list
-- @treturn string for example "--proxy-listen"
function _M.flag(option)
    return "--" .. option.name:gsub("_", "-")
end

--- The environment variable of an option.
-- @tparam table option a row of the list
-- @treturn string for example "SLUICE_PROXY_LISTEN"
function _M.variable(option)
    return "SLUICE_" .. option.name:upper()
end

return _M
