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
--   is_needed  whether a path may not be empty
--   where    "start" when only a new start takes it (a reload that would change it is refused)
--   inherits the option whose value an empty one takes (optional)
--   holds    where the settings have what is in the file that it names (optional)
--
-- A secret has no flag, as everybody may read the arguments of a process, and no message shows it.
--
-- Typed values in the settings table: a list is an array (an option that is "off" is an empty
-- one), a boolean a boolean, an integer a number, everything else a string. Times and sizes
-- stay in nginx's notation ("60s", "8k").

local platform = require("cli.options.platform")

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
        is_needed = true,
        where = "start",
        doc = "Directory of one instance: its rendered nginx.conf, store, logs and temporary "
            .. "files. Each instance needs its own. Created if missing.",
    },
    {
        name = "run_dir",
        section = "files",
        type = "path",
        default = "",
        where = "start",
        doc = "Directory of the pid file and the control socket of one instance. Commands find it "
            .. "through a link in the prefix. Created if missing; root creates it for the owner of "
            .. "the prefix. Empty: `run` in the prefix.",
    },
    {
        name = "conf",
        section = "files",
        type = "path",
        default = "/etc/sluice/sluice.conf",
        doc = "The settings file: `name = value` lines, `#` starts a comment. The default is read "
            .. "only if it exists; any other must exist. Cannot be set in the file itself.",
    },
    {
        name = "file",
        section = "files",
        type = "path",
        default = "",
        doc = "The declarative configuration (YAML or JSON): services, routes, consumers, plugins. "
            .. "If set, this file is the source of truth and the Admin API is read-only, save that "
            .. "`POST /config` replaces what is live until the next reload or restart loads the "
            .. "file again. Empty: the store in the prefix is the source of truth, and the Admin "
            .. "API changes it; with `database = off`, the last `POST /config` is the "
            .. "configuration.",
    },
    {
        name = "declarative_config_string",
        section = "files",
        type = "document",
        default = "",
        doc = "The text of the declarative configuration, in place of a file; `file` comes first. "
            .. "Not available as a flag. A reload without the variable keeps the text that start "
            .. "was given.",
    },
    {
        name = "database",
        section = "files",
        type = "enum",
        default = "local",
        values = { "local", "off", "postgres" },
        doc = "`local`: without a file the store in the prefix is the source of truth, and the "
            .. "Admin API changes it. `off`: the whole configuration is replaced by `POST /config` "
            .. "or a file, and the Admin API changes no single entity. `postgres`, Kong's default, "
            .. "requires `single_node`, and is `local` then.",
    },
    {
        name = "single_node",
        section = "files",
        type = "boolean",
        default = "off",
        doc = "Whether this node may keep a store of its own where `database` is `postgres`.",
    },
    {
        name = "history",
        section = "files",
        type = "integer",
        default = "1000",
        unit = "revisions",
        min = 0,
        max = 1000000,
        doc = "Revisions kept for `sluice rollback` when the store is the source of truth, at most "
            .. "64 MiB of replaced entities. 0 keeps none.",
    },
    {
        name = "max_entities",
        section = "files",
        type = "integer",
        default = "1500000",
        unit = "entities",
        min = 1,
        max = 100000000,
        doc = "Maximum number of entities in a declarative file, read or posted, nested ones "
            .. "included. Checking and writing takes about 4.5 KB of memory per entity; a check "
            .. "that takes more than 4 KiB per allowed entity, and more than 256 MiB, is refused.",
    },
    {
        name = "image_dir",
        section = "files",
        type = "path",
        default = "",
        where = "start",
        doc = "Directory of the images that route requests, for one instance. It should be in "
            .. "memory (tmpfs), with 32 MiB and about 1.5 kilobytes per route free. Empty: a "
            .. "directory in /dev/shm or, if space is short there, `images` in the prefix, with a "
            .. "warning: a stalled disk would stall traffic.",
    },
    {
        name = "vault_env",
        section = "files",
        type = "name_list",
        default = "",
        doc = "Environment variables that a declarative configuration may refer to as "
            .. "`{vault://env/NAME}` or through a vault, separated by commas. They are read when "
            .. "the gateway starts. Anyone who may post a configuration can send their values to "
            .. "any server.",
    },
    -- listeners
    {
        name = "proxy_listen",
        section = "listeners",
        type = "listen",
        default = "0.0.0.0:8000, 0.0.0.0:8443 ssl http2",
        asks = true,
        off = true,
        doc = "Addresses that the proxy listens on, or `off`; separated by commas: `host:port`, "
            .. "IPv6 as `[::]:8000`; an address may be followed by `ssl`, `http2`, "
            .. "`ask_client_certificate`, `proxy_protocol`, `reuseport`, `backlog=N`, and nginx's "
            .. "`deferred`, `bind`, `ipv6only` and `so_keepalive`. See [tls.md](tls.md).",
    },
    {
        name = "ssl_cipher_suite",
        section = "listeners",
        type = "enum",
        default = "intermediate",
        values = { "modern", "intermediate", "custom" },
        doc = "TLS versions and ciphers for clients, as recommended by Mozilla: `intermediate` is "
            .. "TLS 1.2 and 1.3, `modern` is TLS 1.3 only; `custom` uses ssl_protocols and "
            .. "ssl_ciphers.",
    },
    {
        name = "ask_client_certificate",
        section = "listeners",
        type = "boolean",
        default = "off",
        doc = "Request a client certificate in the TLS handshake on all addresses with `ssl`. The "
            .. "plugin mtls-auth needs it. Clients without a certificate can still connect. "
            .. "Browsers that have certificates ask their user to choose one.",
    },
    {
        name = "ssl_crl",
        section = "listeners",
        type = "path_list",
        default = "",
        doc = "Certificate revocation lists (PEM files, up to 16 MiB each), separated by commas. "
            .. "Every mtls-auth plugin checks them in addition to its own. Read at start and "
            .. "reload.",
    },
    {
        name = "ssl_protocols",
        section = "listeners",
        type = "words",
        default = "TLSv1.2 TLSv1.3",
        values = { "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3" },
        doc = "TLS versions, if ssl_cipher_suite is `custom`.",
    },
    {
        name = "ssl_ciphers",
        section = "listeners",
        type = "text",
        default = "HIGH:!aNULL:!MD5",
        doc = "TLS 1.2 ciphers in OpenSSL's notation, if ssl_cipher_suite is `custom`.",
    },
    {
        name = "ssl_prefer_server_ciphers",
        section = "listeners",
        type = "boolean",
        default = "off",
        doc = "Prefer the order of ssl_ciphers to the client's, if ssl_cipher_suite is `custom`.",
    },
    {
        name = "ssl_cert",
        section = "listeners",
        type = "pem_list",
        default = "",
        doc = "Certificates, with their chains, for clients that ask for a name without a "
            .. "certificate of its own: PEM files separated by commas, one for each type of key; "
            .. "or their text, as PEM or that in base64. Empty: a self-signed one. Read at start "
            .. "and reload.",
    },
    {
        name = "ssl_cert_key",
        section = "listeners",
        type = "pem_list",
        default = "",
        doc = "Private keys of ssl_cert, in the same order.",
    },
    {
        name = "admin_listen",
        section = "listeners",
        type = "listen",
        default = "127.0.0.1:8001",
        off = true,
        doc = "Addresses that the Admin API listens on, or `off`, as those of proxy_listen. An "
            .. "address that is not on loopback requires a token, or `ssl` and certificates of "
            .. "admin_client_ca; of `KONG_ADMIN_LISTEN` it is taken without, with a warning.",
    },
    {
        name = "admin_ssl_cert",
        section = "listeners",
        type = "pem_list",
        default = "",
        doc = "Certificates of admin_listen addresses with `ssl`, as those of ssl_cert. Empty: a "
            .. "self-signed one.",
    },
    {
        name = "admin_ssl_cert_key",
        section = "listeners",
        type = "pem_list",
        default = "",
        doc = "Private keys of admin_ssl_cert, in the same order.",
    },
    {
        name = "admin_client_ca",
        section = "listeners",
        type = "path",
        default = "",
        doc = "CA certificates (a PEM file) whose client certificates admin_listen addresses with "
            .. "`ssl` accept. A client without one gets a 400, and nothing of the Admin API. "
            .. "Empty: clients need no certificate. Read at start and reload.",
    },
    {
        name = "admin_verify_client",
        section = "listeners",
        type = "enum",
        default = "on",
        values = { "on", "optional", "off" },
        doc = "Whether clients must have a certificate of admin_client_ca: `on`; `optional` also "
            .. "accepts clients that send none; `off` requests none.",
    },
    {
        name = "admin_verify_depth",
        section = "listeners",
        type = "integer",
        default = "1",
        unit = "certificates",
        min = 0,
        max = 100,
        doc = "Maximum number of intermediate CAs between a client certificate and one in "
            .. "admin_client_ca.",
    },
    {
        name = "admin_hosts",
        section = "listeners",
        type = "host_list",
        default = "",
        doc = "Host names, in addition to `localhost` and IP addresses, that the Admin API accepts "
            .. "in the Host header (without port). If an address of admin_listen is not on "
            .. "loopback, names without a dot are accepted too. Others are refused, which protects "
            .. "against DNS rebinding.",
    },
    {
        name = "admin_token",
        section = "listeners",
        type = "secret",
        default = "",
        unit = "characters",
        min = 16,
        max = 512,
        doc = "Token that clients of the Admin API must send as `Kong-Admin-Token: TOKEN` or "
            .. "`Authorization: Bearer TOKEN`. Empty: no token is required. Not available as a "
            .. "flag, since all users can read the arguments of a process.",
    },
    {
        name = "admin_read_token",
        section = "listeners",
        type = "secret",
        default = "",
        unit = "characters",
        min = 16,
        max = 512,
        doc = "A second token for read-only clients: it allows GET, HEAD and OPTIONS, and secrets "
            .. "are hidden. Requires admin_token. Not available as a flag.",
    },
    {
        name = "admin_named_tokens",
        section = "listeners",
        type = "path",
        default = "",
        holds = "admin_token_list",
        doc = "File of further tokens, each with a name and a role; `sluice token` writes it, and "
            .. "[admin.md](admin.md#tokens) has its format. It must belong to the user of the "
            .. "command, with mode 0600. If it exists, a token is required, even if it has none. "
            .. "Empty: `tokens` in the prefix.",
    },
    {
        name = "admin_secrets",
        section = "listeners",
        type = "enum",
        default = "show",
        values = { "show", "hide" },
        doc = "Whether the Admin API returns the secrets of entities (keys, private keys): `show` "
            .. "returns them, as Kong does; `hide` returns null, unless a client with write access "
            .. "sends `?reveal=1`.",
    },
    {
        name = "admin_insecure",
        section = "listeners",
        type = "boolean",
        default = "off",
        doc = "Allow admin_listen addresses that are not on loopback without an admin_token. "
            .. "Anyone who can connect can then read every key and replace the configuration.",
    },
    {
        name = "status_listen",
        section = "listeners",
        type = "listen",
        default = "off",
        off = true,
        doc = "Addresses of a listener for probes and monitoring, or `off`, as those of "
            .. "proxy_listen: `/status`, `/status/ready` and `/metrics`, for all clients that can "
            .. "connect. See [operations.md](operations.md#probes).",
    },
    {
        name = "status_ssl_cert",
        section = "listeners",
        type = "pem_list",
        default = "",
        doc = "Certificates of status_listen addresses with `ssl`, as those of ssl_cert. Empty: a "
            .. "self-signed one.",
    },
    {
        name = "status_ssl_cert_key",
        section = "listeners",
        type = "pem_list",
        default = "",
        doc = "Private keys of status_ssl_cert, in the same order.",
    },
    -- workers
    {
        name = "workers",
        section = "workers",
        type = "count",
        default = "auto",
        min = 1,
        max = 511,
        doc = "Worker processes that serve traffic; `auto` is one per CPU available to the gateway "
            .. "(CPU affinity and the `cpu.max` of its control group). One more process, the "
            .. "control worker, manages the configuration. nginx has at most 1,024 processes, so "
            .. "the old workers of up to three reloads can drain at the same time with up to 255 "
            .. "workers, of two with up to 340, of one with up to 511. The process table is sized "
            .. "at start, for at least 256 processes; a reload that needs more is refused.",
    },
    {
        name = "daemon",
        section = "workers",
        type = "boolean",
        default = "on",
        where = "start",
        doc = "Whether `start` and `restart` return when the gateway serves. `off` is the flag "
            .. "`--foreground`.",
    },
    {
        name = "worker_connections",
        section = "workers",
        type = "integer",
        default = "16384",
        unit = "connections",
        min = 32,
        max = 1048576,
        doc = "Maximum connections per worker, to clients and upstreams together. Lowered, with a "
            .. "warning, to what the hard limit of open files (`ulimit -Hn`) leaves after a "
            .. "worker's other descriptors: 512, more with many workers (docs/operations.md).",
    },
    {
        name = "user",
        section = "workers",
        type = "word",
        default = platform.user,
        where = "start",
        doc = "User of the worker processes when root starts the gateway; otherwise they run as "
            .. "the user who starts it. If this user owns the prefix, commands of root and all of "
            .. "nginx run as this user.",
    },
    {
        name = "idle_grace",
        section = "workers",
        type = "time",
        default = "5s",
        doc = "Time that a worker keeps idle client connections open when it shuts down at a "
            .. "reload. Each may send one more request, which is answered with `Connection: "
            .. "close`. 0 closes them immediately, as nginx does, and can lose a request that is "
            .. "arriving.",
    },
    {
        name = "shutdown_timeout",
        section = "workers",
        type = "time",
        default = "0",
        unit = "seconds",
        doc = "Time that a worker has to finish its requests when it shuts down (reload, quit); "
            .. "then it closes their connections. 0 is no limit.",
    },
    {
        name = "watchdog_timeout",
        section = "workers",
        type = "time",
        default = "30s",
        unit = "seconds",
        min = 2000,
        doc = "CPU time that a plugin in Lua may take in one step without a turn of the event "
            .. "loop; then the step, or its worker, is ended. Also the time that the control "
            .. "worker may be stuck before it is replaced. See "
            .. "[plugin-development.md](plugin-development.md).",
    },
    -- logs
    {
        name = "log_level",
        section = "logs",
        type = "enum",
        default = "notice",
        values = { "debug", "info", "notice", "warn", "error", "crit", "alert", "emerg" },
        doc = "Minimum severity of messages in the error log. `debug` logs whole requests, "
            .. "including keys and passwords.",
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
        name = "admin_error_log",
        section = "logs",
        type = "log",
        default = "",
        inherits = "error_log",
        values = { "stderr" },
        doc = "Error log of requests to the Admin API. Empty: error_log.",
    },
    {
        name = "access_log",
        section = "logs",
        type = "log",
        default = "logs/access.log",
        values = { "off", "/dev/stdout", "/dev/stderr" },
        syslog = true,
        doc = "Access log of the proxy: a file (relative to the prefix), `off`, `/dev/stdout` or "
            .. "`/dev/stderr` (with --foreground), or `syslog:server=ADDRESS` with nginx's "
            .. "parameters (docs/logs.md).",
    },
    {
        name = "access_log_format",
        section = "logs",
        type = "log_format",
        default = "text",
        values = { "text", "combined", "json" },
        doc = "Format of the access logs: `text`, which is `combined` with whose response it is, "
            .. "the route and failed tries behind it; `json`; or an nginx log format such as "
            .. "`$remote_addr $status`. A format that begins with `{` is escaped as JSON. Keys, "
            .. "cookies and passwords are REDACTED in every format (docs/logs.md).",
    },
    {
        name = "access_log_buffer",
        section = "logs",
        type = "size",
        default = "0",
        unit = "bytes",
        max = 16777216,
        doc = "Memory in which each worker buffers access_log. The buffer is written when it is "
            .. "full or after access_log_flush. If a worker is killed, its buffer is lost. 0 "
            .. "writes each line immediately; syslog is never buffered.",
    },
    {
        name = "access_log_flush",
        section = "logs",
        type = "time",
        default = "1s",
        min = 1,
        doc = "Maximum time that a line stays in that buffer.",
    },
    {
        name = "admin_access_log",
        section = "logs",
        type = "log",
        default = "logs/admin_access.log",
        values = { "off", "/dev/stdout", "/dev/stderr" },
        syslog = true,
        doc = "Access log of the Admin API; same values as access_log.",
    },
    {
        name = "admin_access_log_format",
        section = "logs",
        type = "log_format",
        default = "",
        inherits = "access_log_format",
        values = { "text", "combined", "json" },
        doc = "Format of admin_access_log. Empty: access_log_format.",
    },
    {
        name = "status_access_log",
        section = "logs",
        type = "log",
        default = "off",
        values = { "off", "/dev/stdout", "/dev/stderr" },
        syslog = true,
        doc = "Access log of status_listen; same values as access_log.",
    },
    {
        name = "status_access_log_format",
        section = "logs",
        type = "log_format",
        default = "",
        inherits = "access_log_format",
        values = { "text", "combined", "json" },
        doc = "Format of status_access_log. Empty: access_log_format.",
    },
    {
        name = "status_error_log",
        section = "logs",
        type = "log",
        default = "",
        inherits = "error_log",
        values = { "stderr" },
        doc = "Error log of requests to status_listen. Empty: error_log.",
    },
    {
        name = "audit_log",
        section = "logs",
        type = "log",
        default = "off",
        values = { "off", "/dev/stdout", "/dev/stderr" },
        syslog = true,
        doc = "Audit log: one line of JSON for each request to the Admin API that can change the "
            .. "configuration, with time, user, address, request and result. Same values as "
            .. "access_log.",
    },
    -- clients
    {
        name = "trusted_ips",
        section = "clients",
        type = "cidr_list",
        default = "",
        doc = "Addresses and networks (CIDR) that are trusted to send X-Forwarded-* headers and "
            .. "real_ip_header. Empty: none.",
    },
    {
        name = "port_maps",
        section = "clients",
        type = "port_maps",
        default = "",
        doc = "Ports that clients connect to where something in front maps them to those of "
            .. "proxy_listen: `80:8000, 443:8443`. Upstreams are sent the first in "
            .. "X-Forwarded-Port.",
    },
    {
        name = "real_ip_header",
        section = "clients",
        type = "word",
        default = "X-Real-IP",
        doc = "Request header that contains the client address, if it comes from a trusted "
            .. "address; `proxy_protocol` for the address in the PROXY protocol header "
            .. "([operations.md](operations.md#load-balancers-of-layer-4)).",
    },
    {
        name = "real_ip_recursive",
        section = "clients",
        type = "boolean",
        default = "off",
        doc = "Use the last untrusted address in real_ip_header instead of the last address.",
    },
    {
        name = "client_max_body_size",
        section = "clients",
        type = "size",
        default = "0",
        unit = "bytes",
        doc = "Maximum size of a request body; a larger one gets a 413. 0 is no limit.",
    },
    {
        name = "client_body_buffer_size",
        section = "clients",
        type = "size",
        default = "8k",
        unit = "bytes",
        min = 1,
        doc = "Memory for a request body; a larger body is written to a temporary file.",
    },
    {
        name = "client_header_timeout",
        section = "clients",
        type = "time",
        default = "60s",
        unit = "seconds",
        doc = "Timeout for reading the request header.",
    },
    {
        name = "client_body_timeout",
        section = "clients",
        type = "time",
        default = "60s",
        unit = "seconds",
        doc = "Timeout between two reads of a request body.",
    },
    {
        name = "send_timeout",
        section = "clients",
        type = "time",
        default = "60s",
        unit = "seconds",
        doc = "Timeout between two writes of a response. If the client reads nothing within it, "
            .. "the connection or the HTTP/2 stream is closed.",
    },
    {
        name = "keepalive_timeout",
        section = "clients",
        type = "time",
        default = "75s",
        unit = "seconds",
        doc = "Time that an idle client connection stays open; 0 closes it after each response.",
    },
    {
        name = "keepalive_requests",
        section = "clients",
        type = "integer",
        default = "10000",
        unit = "requests",
        min = 1,
        max = 2147483647,
        doc = "Maximum requests per client connection.",
    },
    {
        name = "http2_max_concurrent_streams",
        section = "clients",
        type = "integer",
        default = "128",
        unit = "streams",
        min = 1,
        max = 10000,
        doc = "Maximum concurrent requests per HTTP/2 connection.",
    },
    {
        name = "http2_max_resets",
        section = "clients",
        type = "integer",
        default = "500",
        unit = "frames",
        min = 1,
        max = 2147483647,
        doc = "Maximum RST_STREAM frames per minute from an HTTP/2 client, per connection.",
    },
    {
        name = "http2_max_control_frames",
        section = "clients",
        type = "integer",
        default = "1000",
        unit = "frames",
        min = 1,
        max = 2147483647,
        doc = "Maximum SETTINGS, PING, PRIORITY, CONTINUATION and empty DATA frames per minute "
            .. "from an HTTP/2 client, per connection.",
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
        doc = "Answer 400 if a dot segment of the path (`.`, `..`) is next to `%2f`, `%5c`, `\\`, "
            .. "`;` or `#`, or is encoded more than once. Some upstreams treat it as path "
            .. "traversal (`/public/..%2fprivate`), although routing does not. `off` passes such "
            .. "paths on, unless they leave the path of the service.",
    },
    {
        name = "ignore_invalid_headers",
        section = "clients",
        type = "boolean",
        default = "off",
        doc = "Whether to drop headers of a request whose name has other characters than letters, "
            .. "digits, `-` and `_`, such as `X.Dot`, as nginx and Kong do. `off`: all names that "
            .. "RFC 9110 permits pass. Others are dropped; with a control character or a blank the "
            .. "request is refused.",
    },
    {
        name = "early_hints",
        section = "clients",
        type = "boolean",
        default = "on",
        doc = "Whether interim responses of upstreams, such as 103 (Early Hints), pass to clients "
            .. "over HTTP/1.1 and HTTP/2. `off`: they are dropped. Some clients take one for the "
            .. "final response: nginx before 1.29 as a proxy in front of the gateway, and Python's "
            .. "http.client.",
    },
    {
        name = "client_identity_headers",
        section = "clients",
        type = "enum",
        default = "drop",
        values = { "drop", "pass" },
        doc = "What to do with X-Consumer-*, X-Credential-*, X-Anonymous-Consumer, "
            .. "X-Authenticated-Groups and X-Client-Cert-* headers from clients: `drop` them, or "
            .. "`pass` them on routes without authentication, as Kong does. Spellings with "
            .. "another character, such as `_` or `.`, instead of a dash are always dropped.",
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
        doc = "Maximum idle upstream connections per worker, all services together; 0 closes each "
            .. "after its request. A TLS connection is reused only for the same server name, CAs "
            .. "and client certificate.",
    },
    {
        name = "upstream_keepalive_max_requests",
        section = "upstreams",
        type = "integer",
        default = "10000",
        unit = "requests",
        min = 1,
        max = 2147483647,
        doc = "Maximum requests per upstream connection.",
    },
    {
        name = "upstream_keepalive_idle_timeout",
        section = "upstreams",
        type = "time",
        default = "60s",
        unit = "seconds",
        min = 1,
        doc = "Time that an idle upstream connection stays open.",
    },
    {
        name = "proxy_ssl_trusted_certificate",
        section = "upstreams",
        type = "path_list",
        default = platform.ca_bundle,
        doc = "CA certificates (PEM files), separated by commas, for services that have "
            .. "`tls_verify` and no `ca_certificates`. The default, that of the system, is read "
            .. "only if it exists; any other must exist. Read at start and reload.",
    },
    {
        name = "proxy_buffer_size",
        section = "upstreams",
        type = "size",
        default = "32k",
        unit = "bytes",
        min = 1024,
        max = 16777216,
        doc = "Buffer for the header of a response and the beginning of its body. A header that "
            .. "does not fit causes a 502. Each active response has one; memory is used only as "
            .. "far as it is filled.",
    },
    {
        name = "proxy_buffers",
        section = "upstreams",
        type = "buffers",
        default = "8 16k",
        doc = "Number and size of the buffers for the body of a response while the client is slow; "
            .. "the rest goes to a temporary file. Allocated as needed. All but one of them must "
            .. "together hold twice the larger of their size and proxy_buffer_size.",
    },
    {
        name = "proxy_buffered_body_size",
        section = "upstreams",
        type = "size",
        default = "16m",
        unit = "bytes",
        min = 1024,
        max = 1073741824,
        doc = "Longest body of a response that a plugin wants whole (the phase `response`, "
            .. "`kong.service.request.enable_buffering`). It is in memory until the response was "
            .. "sent. A longer one causes a 502.",
    },
    -- headers
    {
        name = "headers",
        section = "headers",
        type = "word_list",
        default = "server_tokens, latency_tokens, request_id",
        values = {
            "server_tokens",
            "latency_tokens",
            "request_id",
            "via",
            "server",
            "proxy_latency",
            "response_latency",
            "upstream_latency",
            "upstream_status",
        },
        off = true,
        doc = "Headers that the gateway adds to responses, or `off`: its name in `via` or `server` "
            .. "(`server_tokens` is both), the latencies (`latency_tokens` is all three), the "
            .. "status of the upstream's response, the request id.",
    },
    {
        name = "headers_upstream",
        section = "headers",
        type = "word_list",
        default = "request_id",
        values = { "request_id" },
        off = true,
        doc = "Headers that the gateway adds to requests to upstreams, or `off`: the request id.",
    },
    {
        name = "header_prefix",
        section = "headers",
        type = "word",
        default = "X-Kong",
        doc = "Prefix of the names of those headers: with `X-Kong`, `X-Kong-Request-Id`, "
            .. "`X-Kong-Proxy-Latency`, `X-Kong-Upstream-Latency`.",
    },
    {
        name = "error_default_type",
        section = "headers",
        type = "enum",
        default = "text/plain",
        values = { "text/plain", "text/html", "application/json", "application/xml" },
        doc = "Media type of the gateway's error responses if the request has no Accept header.",
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
        doc = "Shared memory for the counters of rate-limiting, allocated as needed. Changing it "
            .. "resets all counters.",
    },
    {
        name = "log_buffer_size",
        section = "nginx",
        type = "size",
        default = "16m",
        unit = "bytes",
        min = 65536,
        max = 1073741824,
        doc = "Shared memory for entries of log plugins on their way to the control worker, which "
            .. "takes as much again for those on their way to log servers. If it is full, new "
            .. "entries are dropped and counted; entries larger than a quarter "
            .. "of it are dropped as well.",
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
        doc = "Shared memory for events between workers, rounded up to a power of two. It limits "
            .. "how many events can be pending while a worker is busy.",
    },
    {
        name = "events_stall",
        section = "nginx",
        type = "time",
        default = "10s",
        unit = "seconds",
        min = 1,
        doc = "Time that a stuck worker can block the others when that memory is full. After it, "
            .. "the worker is skipped and loads the configuration again when it continues.",
    },
    {
        name = "metrics_series",
        section = "nginx",
        type = "integer",
        default = "1000",
        unit = "routes",
        min = 0,
        max = 10000,
        where = "start",
        doc = "Maximum number of routes, and of services, with their own series in `/metrics`. 0: "
            .. "only totals. Each takes 448 bytes per worker that serves it, and none before.",
    },
    {
        name = "metrics_latencies",
        section = "nginx",
        type = "boolean",
        default = "off",
        doc = "Also export histograms of those routes and services: 50 lines each.",
    },
    {
        name = "plugins",
        section = "nginx",
        type = "name_list",
        default = "bundled",
        doc = "Plugins that a configuration may use, separated by commas: `bundled` for all that "
            .. "come with Sluice, and the names of your own, which are loaded as Lua modules "
            .. "`plugins.<name>` through lua_package_path. One that the store has configurations "
            .. "of cannot be left out.",
    },
    {
        name = "nginx_binary",
        section = "nginx",
        type = "path",
        default = platform.nginx_binary,
        where = "start",
        doc = "The nginx binary to run.",
    },
    {
        name = "nginx_modules",
        section = "nginx",
        type = "path_list",
        default = table.concat(platform.nginx_modules, ", "),
        doc = "Dynamic modules to load, in this order, separated by commas. Empty for an nginx "
            .. "with these modules built in (OpenResty).",
    },
    {
        name = "lua_package_path",
        section = "nginx",
        type = "text",
        default = "",
        doc = "Additional search path for Lua modules (`/dir/?.lua;...`), after Sluice's own and "
            .. "before the machine's.",
    },
    {
        name = "lua_package_cpath",
        section = "nginx",
        type = "text",
        default = platform.lua_package_cpath,
        doc = "Additional search path for Lua modules in C (`/dir/?.so;...`).",
    },
    {
        name = "untrusted_lua",
        section = "nginx",
        type = "enum",
        default = "sandbox",
        values = { "off", "sandbox", "on" },
        doc = "Lua in configurations, as that of pre-function. `off`: it is not run, and what "
            .. "would run it fails. `sandbox`: it has no files, processes, "
            .. "modules or globals ([pre-function](plugins/pre-function.md#the-sandbox)). `on`: it "
            .. "may do whatever the workers may: whoever changes the configuration owns them.",
    },
    {
        name = "untrusted_lua_sandbox_requires",
        section = "nginx",
        type = "module_list",
        default = "",
        doc = "Modules that Lua in the sandbox may `require`, separated by commas. What a module "
            .. "can do, whoever changes the configuration can.",
    },
    {
        name = "untrusted_lua_sandbox_environment",
        section = "nginx",
        type = "module_list",
        default = "",
        doc = "Globals that Lua in the sandbox has, too, separated by commas, such as `bit` or "
            .. "`table.concat`. Whoever changes the configuration can use them.",
    },
}

_M.by_name = {}
--- The options that name listen addresses.
_M.listens = {}
for _, option in ipairs(_M.list) do
    _M.by_name[option.name] = option
    _M.listens[#_M.listens + 1] = option.type == "listen" and option.name or nil
end

-- Types whose text is nobody's to see.
local SECRET = { document = true, pem_list = true, secret = true }

--- Whether the text of an option may be, or hold, a secret.
-- @tparam table option a row of the list
-- @treturn boolean
function _M.is_secret(option)
    return SECRET[option.type] == true
end

-- Types that are lists, whose flag is given once.
local LISTS = {
    cidr_list = true,
    host_list = true,
    listen = true,
    module_list = true,
    name_list = true,
    path_list = true,
    port_maps = true,
    word_list = true,
}

--- Whether an option takes values separated by commas.
-- @tparam table option a row of the list
-- @treturn boolean
function _M.is_list(option)
    return LISTS[option.type] == true
end

--- The flag of an option, as typed.
-- @tparam table option a row of the list
-- @treturn string for example "--proxy-listen"
function _M.flag(option)
    return "--" .. option.name:gsub("_", "-")
end

--- What an option takes beside its type.
-- @tparam table option a row of the list
-- @treturn string|nil Markdown
function _M.limits(option)
    if option.values then
        return "Values: `" .. table.concat(option.values, "`, `") .. "`."
    elseif option.min and option.max then
        return ("From %d to %d."):format(option.min, option.max)
    elseif option.type == "time" and option.min and option.min > 1 then
        return ("At least %gs."):format(option.min / 1000)
    elseif option.min and option.min > 1 then
        return ("At least %d."):format(option.min)
    end
    return nil
end

--- The environment variable of an option.
-- @tparam table option a row of the list
-- @treturn string for example "SLUICE_PROXY_LISTEN"
function _M.variable(option)
    return "SLUICE_" .. option.name:upper()
end

return _M
