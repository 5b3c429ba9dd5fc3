-- Kong's settings: all of 3.9.3, each with what becomes of it.
-- Long on purpose: one case after the other, a few lines each.

local files = require("test.house.files")
local kong = require("cli.options.kong")
local options = require("cli.options")
local settings = require("cli.options.settings")

local FILE = "/etc/test/kong.conf"

-- Resolves as the command line does; `file` is the text of kong.conf.
local function resolve(environment, file, flags)
    flags = flags or {}
    flags.conf = file and FILE
    return settings.resolve({
        flags = flags,
        environment = environment,
        cwd = "/base",
        open = function(path)
            if path ~= FILE then
                return nil
            end
            return {
                read = function()
                    return file
                end,
                close = function() end,
            }
        end,
    })
end

local function variable(name)
    return "KONG_" .. name:upper()
end

-- What nginx.conf is made of where one setting of Kong is given, with others.
local function render(name, value, with)
    local environment = { [variable(name)] = value }
    for other, text in pairs(with or {}) do
        environment[variable(other)] = text
    end
    local found, errors, _, warnings = resolve(environment)
    assert.same({}, errors, name)
    assert.same({}, warnings, name)
    return require("cli.nginx.conf").render(found, "/root-of-sluice", "staff"), found
end

local CUSTOM = { ssl_cipher_suite = "custom" }
local STATUS = { status_listen = "127.0.0.1:84" }
local TRUSTED = { trusted_ips = "10.0.0.0/8" }

-- Each setting that is taken: a value, text that nginx.conf has then and not without, and others
-- that it needs.
local IN_NGINX = {
    prefix = { "/p/q", "/p/q/run/nginx.pid" },
    proxy_listen = {
        "127.0.0.1:81 reuseport backlog=16384, 127.0.0.1:82 http2 ssl deferred so_keepalive=on",
        "listen 127.0.0.1:81 reuseport backlog=16384;",
    },
    admin_listen = { "127.0.0.1:83 reuseport", "listen 127.0.0.1:83 reuseport;" },
    status_listen = {
        "127.0.0.1:84 ssl http2",
        -- What stands behind it depends on nginx's release.
        "listen 127.0.0.1:84 ssl",
    },
    port_maps = { "80:8000, 443:8443", "8000 80;" },
    ssl_cert = { "/t/c.pem", 'ssl_certificate "/t/c.pem";', { ssl_cert_key = "/t/k.pem" } },
    ssl_cert_key = { "/t/k.pem", 'ssl_certificate_key "/t/k.pem";', { ssl_cert = "/t/c.pem" } },
    admin_ssl_cert = {
        "/t/a.pem",
        'ssl_certificate "/t/a.pem";',
        { admin_ssl_cert_key = "/t/b.pem", admin_listen = "127.0.0.1:83 ssl" },
    },
    admin_ssl_cert_key = {
        "/t/b.pem",
        'ssl_certificate_key "/t/b.pem";',
        { admin_ssl_cert = "/t/a.pem", admin_listen = "127.0.0.1:83 ssl" },
    },
    status_ssl_cert = {
        "/t/s.pem",
        'ssl_certificate "/t/s.pem";',
        { status_ssl_cert_key = "/t/u.pem", status_listen = "127.0.0.1:84 ssl" },
    },
    status_ssl_cert_key = {
        "/t/u.pem",
        'ssl_certificate_key "/t/u.pem";',
        { status_ssl_cert = "/t/s.pem", status_listen = "127.0.0.1:84 ssl" },
    },
    ssl_cipher_suite = { "modern", "ssl_protocols TLSv1.3;" },
    ssl_ciphers = { "AES128-SHA", 'ssl_ciphers "AES128-SHA";', CUSTOM },
    nginx_http_ssl_protocols = { "TLSv1.2", "ssl_protocols TLSv1.2;", CUSTOM },
    ssl_protocols = { "TLSv1.2", "ssl_protocols TLSv1.2;", CUSTOM },
    nginx_http_ssl_prefer_server_ciphers = { "on", "ssl_prefer_server_ciphers on;", CUSTOM },
    ssl_prefer_server_ciphers = { "on", "ssl_prefer_server_ciphers on;", CUSTOM },
    nginx_main_user = { "nobody", "user nobody staff;" },
    nginx_user = { "nobody", "user nobody staff;" },
    nginx_main_worker_processes = { "77", "worker_processes 78;" },
    nginx_worker_processes = { "77", "worker_processes 78;" },
    nginx_events_worker_connections = { "99", "worker_connections 99;" },
    log_level = { "crit", " crit;" },
    proxy_access_log = { "/dev/stdout combined", 'access_log "/dev/stdout" sluice if=' },
    proxy_error_log = { "/dev/stderr", 'error_log "stderr" ' },
    admin_access_log = { "/l/a.log", 'access_log "/l/a.log" sluice;' },
    admin_error_log = { "/l/e.log", 'error_log "/l/e.log" notice;' },
    status_access_log = { "/l/s.log", 'access_log "/l/s.log" sluice;', STATUS },
    status_error_log = { "/l/t.log", 'error_log "/l/t.log" notice;', STATUS },
    trusted_ips = { "10.1.0.0/16, ::1", "set_real_ip_from 10.1.0.0/16;" },
    nginx_proxy_real_ip_header = { "X-Client", "real_ip_header X-Client;", TRUSTED },
    real_ip_header = { "X-Client", "real_ip_header X-Client;", TRUSTED },
    nginx_proxy_real_ip_recursive = { "on", "real_ip_recursive on;", TRUSTED },
    real_ip_recursive = { "on", "real_ip_recursive on;", TRUSTED },
    nginx_http_client_max_body_size = { "3m", "client_max_body_size 3m;" },
    nginx_http_client_body_buffer_size = { "9k", "client_body_buffer_size 9k;" },
    client_body_buffer_size = { "9k", "client_body_buffer_size 9k;" },
    nginx_http_keepalive_requests = { "14", "keepalive_requests 14;" },
    upstream_keepalive_pool_size = { "15", "sluice_upstream keepalive=15 " },
    upstream_keepalive_max_requests = { "0", " requests=2147483647 " },
    upstream_keepalive_idle_timeout = { "17", " timeout=17;" },
    headers = { "Via, X-Kong-Upstream-Status", "X-Kong-Upstream-Status $sluice_upstream_status" },
    lua_package_path = { "/lua/?.lua;;", "/lua/?.lua;;" },
    lua_package_cpath = { "/lua/?.so", "/lua/?.so;" },
}

-- The same that act elsewhere: a value, our setting, and its value.
local ELSEWHERE = {
    declarative_config = { "k.yaml", "file", "/base/k.yaml" },
    declarative_config_string = {
        '{"_format_version":"3.0"}',
        "file",
        "environment KONG_DECLARATIVE_CONFIG_STRING",
    },
    database = { "off", "database", "off" },
    nginx_daemon = { "off", "daemon", false },
    nginx_main_daemon = { "off", "daemon", false },
    headers_upstream = { "off", "headers_upstream", {} },
    error_default_type = { "application/json", "error_default_type", "application/json" },
    plugins = { "off", "plugins", {} },
    untrusted_lua = { "off", "untrusted_lua", "off" },
    untrusted_lua_sandbox_requires = {
        "cjson, resty.template",
        "untrusted_lua_sandbox_requires",
        { "cjson", "resty.template" },
    },
    untrusted_lua_sandbox_environment = {
        "bit, os.getenv",
        "untrusted_lua_sandbox_environment",
        { "bit", "os.getenv" },
    },
}

-- A value of which something is to be said.
local function sample(row)
    for _, value in ipairs({ "7", "on" }) do
        if not (" " .. (row.same or "") .. " "):find(" " .. value .. " ", 1, true) then
            return value
        end
    end
end

describe("Kong's settings", function()
    it("are all there, once", function()
        local seen = {}
        for _, name in ipairs(kong.list) do
            assert.is_nil(seen[name], name)
            seen[name] = true
        end
        -- Of kong/templates/kong_defaults.lua at 3.9.3: 199 with a default, five without.
        assert.equal(199 + 5, #kong.list)
    end)

    it("are each taken, warned of or refused", function()
        for _, row in ipairs(kong.rows) do
            local fates = (row.takes and 1 or 0) + (row.warns and 1 or 0) + (row.refuses and 1 or 0)
            assert.equal(1, fates, row.names)
            assert.is_truthy(not row.takes or options.by_name[row.takes], row.takes)
        end
    end)

    it("take effect where they are taken", function()
        local default = require("cli.nginx.conf").render(resolve({}), "/root-of-sluice", "staff")
        for _, name in ipairs(kong.list) do
            local effect, other = IN_NGINX[name], ELSEWHERE[name]
            if kong.by_name[name].takes then
                assert.is_truthy(effect or other, name .. " has no test")
            end
            if effect then
                local value, text, with = unpack(effect)
                assert.is_nil(default:find(text, 1, true), name)
                assert.is_truthy(render(name, value, with):find(text, 1, true), name)
            elseif other then
                local _, found = render(name, other[1])
                assert.same(other[3], found[other[2]], name)
            end
        end
    end)

    it("get a line each where they are warned of, and change nothing", function()
        local default = resolve({})
        for _, name in ipairs(kong.list) do
            local row = kong.by_name[name]
            if row.warns then
                local found, errors, _, warnings = resolve({ [variable(name)] = sample(row) })
                assert.same({}, errors)
                assert.same({
                    ("environment: %s: %s"):format(variable(name), row.warns),
                }, warnings)
                assert.same(default, found, name)
            end
        end
    end)

    it("end with a sentence where they are refused", function()
        for _, name in ipairs(kong.list) do
            local row = kong.by_name[name]
            if row.refuses then
                local value = sample(row)
                local found, errors = resolve({ [variable(name)] = value })
                assert.is_nil(found, name)
                assert.same({
                    ("%s (environment %s): '%s' is not supported: %s"):format(
                        name,
                        variable(name),
                        value,
                        row.refuses
                    ),
                }, errors)
            end
        end
    end)

    it("are silent where they say what is the case, and where they are empty", function()
        local default = resolve({})
        for _, name in ipairs(kong.list) do
            local values = { "" }
            for word in (kong.by_name[name].same or ""):gmatch("%S+") do
                values[#values + 1] = word
            end
            for _, value in ipairs(values) do
                local found, errors, _, warnings = resolve({ [variable(name)] = value })
                assert.same({ {}, {} }, { errors, warnings }, name)
                assert.same(default, found, name)
            end
        end
    end)

    it("are named in one line where the same is to be said of them", function()
        local _, _, _, warnings = resolve({
            KONG_PG_HOST = "db",
            KONG_PG_PASSWORD = "hidden",
            KONG_PG_RO_HOST = "db",
            KONG_CLUSTER_MTLS = "shared",
        })
        assert.same({
            "environment: KONG_PG_HOST, KONG_PG_PASSWORD, KONG_PG_RO_HOST: "
                .. kong.by_name.pg_host.warns,
            "environment: KONG_CLUSTER_MTLS: " .. kong.by_name.cluster_mtls.warns,
        }, warnings)
    end)

    it("come after ours, and before the file", function()
        local environment = {
            KONG_NGINX_WORKER_PROCESSES = "2",
            KONG_LOG_LEVEL = "warn",
            KONG_TRUSTED_IPS = "10.0.0.0/8",
            SLUICE_WORKERS = "3",
        }
        local file = "nginx_worker_processes = 4\nlog_level = crit\ntrusted_ips = ::1\n"
            .. "upstream_keepalive_pool_size = 5\n"
        local found = resolve(environment, file, { trusted_ips = "10.9.0.0/16" })
        assert.equal(3, found.workers)
        assert.equal("warn", found.log_level)
        assert.same({ "10.9.0.0/16" }, found.trusted_ips)
        assert.equal(5, found.upstream_keepalive_pool_size)
    end)

    it("follow Kong where two of them are one setting", function()
        local found = resolve({
            KONG_NGINX_WORKER_PROCESSES = "2",
            KONG_NGINX_MAIN_WORKER_PROCESSES = "3",
        })
        assert.equal(3, found.workers)
    end)

    it("name the variable and the value that is wrong, but no secret", function()
        local _, errors = resolve({ KONG_NGINX_WORKER_PROCESSES = "many" })
        assert.same({
            "workers (environment KONG_NGINX_WORKER_PROCESSES): 'many' is not valid; "
                .. "expected auto, or a whole number from 1 to 511",
        }, errors)
        _, errors = resolve({ KONG_SSL_CERT_KEY = "-----BEGIN hidden", KONG_SSL_CERT = "$" })
        assert.equal(1, #errors)
        assert.is_nil(errors[1]:find("hidden", 1, true))
        _, errors = resolve({ KONG_TRUSTED_IPS = "{vault://env/trusted}" })
        assert.matches(
            "^trusted_ips %(environment KONG_TRUSTED_IPS%): references to vaults",
            errors[1]
        )
    end)

    it("take what is injected where there is a setting, and warn of the rest", function()
        local found, errors, _, warnings = resolve({
            KONG_NGINX_PROXY_PROXY_BUFFERS = "9 16k",
            KONG_NGINX_HTTP_LARGE_CLIENT_HEADER_BUFFERS = "5 16k",
            KONG_NGINX_PROXY_IGNORE_INVALID_HEADERS = "on",
            KONG_NGINX_UPSTREAM_KEEPALIVE = "NONE",
            KONG_NGINX_HTTP_INCLUDE = "/etc/x.conf",
            KONG_NGINX_STREAM_PREREAD_TIMEOUT = "1s",
            KONG_VAULT_ENV_PREFIX = "X",
            KONG_PLUGINSERVER_GO_SOCKET = "/s",
        })
        assert.same({}, errors)
        assert.equal("9 16k", found.proxy_buffers)
        assert.equal("5 16k", found.large_client_header_buffers)
        assert.is_true(found.ignore_invalid_headers)
        assert.equal(512, found.upstream_keepalive_pool_size)
        assert.same({
            "environment: KONG_NGINX_HTTP_INCLUDE, KONG_NGINX_STREAM_PREREAD_TIMEOUT: "
                .. kong.INJECTED,
            "environment: KONG_PLUGINSERVER_GO_SOCKET: " .. kong.OF_PLUGIN_SERVERS,
            "environment: KONG_VAULT_ENV_PREFIX: " .. kong.OF_VAULTS,
        }, warnings)
    end)

    it("take what asks clients of the Admin API for a certificate", function()
        local function injected(verify, ca)
            local found, errors, _, warnings = resolve({
                KONG_ADMIN_LISTEN = "127.0.0.1:1 ssl",
                KONG_NGINX_ADMIN_SSL_CLIENT_CERTIFICATE = ca or "/t/ca.pem",
                KONG_NGINX_ADMIN_SSL_VERIFY_CLIENT = verify,
                KONG_NGINX_ADMIN_SSL_VERIFY_DEPTH = "2",
            })
            return found, errors[1], warnings and warnings[1]
        end
        local found, err, warning = injected("on")
        assert.same({ nil, nil }, { err, warning })
        assert.same({ "/t/ca.pem", "on", 2 }, {
            found.admin_client_ca,
            found.admin_verify_client,
            found.admin_verify_depth,
        })
        found = injected("optional")
        assert.equal("optional", found.admin_verify_client)
        -- nginx asks nobody then.
        found, err, warning = injected(nil)
        assert.same({ "", nil }, { found.admin_client_ca, err })
        assert.matches("NGINX_ADMIN_SSL_CLIENT_CERTIFICATE: clients are asked for no", warning)
        found, err = injected("optional_no_ca")
        assert.is_nil(found)
        assert.matches("'optional_no_ca' would accept every certificate", err)
    end)

    it("leave alone what is for others, and tell of names that nobody has", function()
        local _, errors, _, warnings = resolve({
            KONG_PORTAL = "on",
            KONG_ENFORCE_RBAC = "off",
            KONG_VERSION = "3.9.3",
            KONG_PROXY_SERVICE_HOST = "10.0.0.1",
            KONG_PROXY_PORT = "tcp://10.0.0.1:80",
            KONG_DB_SECRET = "hidden",
            SLUICE_VAULT_ENV = "KONG_DB_SECRET",
        })
        assert.same({}, errors)
        assert.same({ "environment: KONG_PORTAL: " .. kong.UNKNOWN }, warnings)
    end)

    it("refuse what would protect the Admin API of Kong Enterprise", function()
        for _, value in ipairs({ "on", "both", "entity" }) do
            local _, errors = resolve({ KONG_ENFORCE_RBAC = value })
            local start = "enforce_rbac (environment KONG_ENFORCE_RBAC): '%s' is not supported: "
            assert.equal(1, #errors)
            assert.equal(1, (errors[1]:find(start:format(value), 1, true)))
            assert.is_truthy(errors[1]:find("sluice token add", 1, true))
        end
    end)

    it("name what was probably meant", function()
        local _, _, _, warnings = resolve({ KONG_PROXY_LISEN = "127.0.0.1:1" })
        assert.same({
            ("environment: KONG_PROXY_LISEN: %s; did you mean KONG_PROXY_LISTEN?"):format(
                kong.UNKNOWN
            ),
        }, warnings)
    end)

    it("need single_node for a database, and say what that is", function()
        local _, errors = resolve({ KONG_DATABASE = "postgres" })
        assert.same({
            "database (environment KONG_DATABASE): 'postgres' needs a cluster, which this version "
                .. "does not have; let each node keep a store of its own (SLUICE_SINGLE_NODE=on), "
                .. "or set it to off",
        }, errors)
        local _, _, _, warnings = resolve({ KONG_DATABASE = "postgres", SLUICE_SINGLE_NODE = "on" })
        assert.same({
            "database (environment KONG_DATABASE): this node keeps a store of its own, which no "
                .. "other node sees",
        }, warnings)
    end)

    it("open the Admin API with a warning, which a token ends", function()
        local environment = { KONG_ADMIN_LISTEN = "0.0.0.0:8001, 127.0.0.1:7, [::]:8001" }
        local found, _, _, warnings = resolve(environment)
        assert.same({ "0.0.0.0:8001", "127.0.0.1:7", "[::]:8001" }, found.admin_listen)
        assert.same({
            "admin_listen (environment KONG_ADMIN_LISTEN): everybody who can connect to "
                .. "0.0.0.0:8001, [::]:8001 can read all keys and replace the configuration; set a "
                .. "token (SLUICE_ADMIN_TOKEN, or `sluice token add NAME`)",
        }, warnings)
        environment.SLUICE_ADMIN_TOKEN = ("t"):rep(16)
        assert.same({}, (select(4, resolve(environment))))
        assert.is_nil((resolve({ SLUICE_ADMIN_LISTEN = "0.0.0.0:8001" })))
    end)

    it("have their page in docs/kong-settings.md (make docs writes it)", function()
        local page = files.run("luajit cli/options/kong_reference.lua")
        assert.equal(page, files.read("docs/kong-settings.md"))
    end)
end)

describe("Kong's logs", function()
    local function access_log(text, format)
        local environment = { KONG_PROXY_ACCESS_LOG = text, KONG_NGINX_HTTP_LOG_FORMAT = format }
        return resolve(environment)
    end

    it("have formats: nginx's, Kong's own, and one that is injected", function()
        assert.equal("combined", access_log("/dev/stdout combined").access_log_format)
        local own = access_log("logs/access.log kong_log_format").access_log_format
        assert.matches('kong_request_id: "$sluice_request_id"', own, 1, true)
        local format = "show 'a=\"$status\" '\n  'it\\'s $kong_request_id'"
        local found = access_log("logs/a.log show buffer=32k flush=5s", format)
        assert.equal('a="$status" it\'s $sluice_request_id', found.access_log_format)
        assert.same({ "32k", "5s" }, { found.access_log_buffer, found.access_log_flush })
        found = access_log("logs/a.log j", 'j escape=json \'{"status":"$status"}\'')
        assert.equal('{"status":"$status"}', found.access_log_format)
        assert.equal("off", access_log("off").access_log)
    end)

    it("may have another format for the Admin API", function()
        local conf, found = render("admin_access_log", "/l/a.log combined")
        assert.equal("text", found.access_log_format)
        assert.is_truthy(conf:find("log_format sluice_admin escape=default", 1, true))
        assert.is_truthy(conf:find('access_log "/l/a.log" sluice_admin;', 1, true))
    end)

    it("are refused with formats that are not there or not complete", function()
        for _, row in ipairs({
            { "logs/a.log show" },
            { "logs/a.log show", "other '$status'" },
            { "logs/a.log show", "show '$status" },
            { "logs/a.log show", "show escape=none '$status'" },
            { "logs/a.log show", "show escape=json '$status'" },
            { "logs/a.log combined gzip=1" },
            { "logs/a.log combined combined" },
        }) do
            local _, errors = access_log(row[1], row[2])
            assert.equal(1, #errors, row[1])
            assert.matches("^proxy_access_log %(environment KONG_PROXY_ACCESS_LOG%): ", errors[1])
        end
    end)
end)

describe("kong.conf", function()
    it("is read in Kong's syntax, with ours beside it", function()
        local found, errors, _, warnings = resolve(
            {},
            "# comment\n ; another\n\nprefix = /p # where\nlog_level=warn#loud\n"
                .. "proxy_access_log = logs/a\\#b.log\nproxy-listen = 127.0.0.1:1, \\\n"
                .. "  127.0.0.1:2 ssl\r\npg_host = db\npg_port = 1\nworkers = 4\nportal = on\n"
                .. 'declarative_config = "k.yaml"\nheaders = off\nlog_level = warn\n'
        )
        assert.same({}, errors)
        assert.equal("/p", found.prefix)
        assert.equal("warn", found.log_level)
        assert.equal("logs/a#b.log", found.access_log)
        assert.same({ "127.0.0.1:1", "127.0.0.1:2 ssl" }, found.proxy_listen)
        assert.equal(4, found.workers)
        assert.equal("/etc/test/k.yaml", found.file)
        assert.same({}, found.headers)
        assert.same({
            FILE .. ": pg_host, pg_port: " .. kong.by_name.pg_host.warns,
            FILE .. ": portal: " .. kong.UNKNOWN,
        }, warnings)
    end)

    it("names the lines of a setting that stands twice, and what is no setting", function()
        local _, errors = resolve({}, "database = off\nlog_level = warn\nlog_level = crit\nhm\n")
        assert.same({
            FILE .. ":3: 'log_level' is already set in " .. FILE .. ":2",
            FILE .. ":4: expected `name = value`, found `hm`",
        }, errors)
    end)

    it("is refused with the line of what is refused", function()
        local _, errors = resolve({}, "\nrole = data_plane\n")
        assert.equal(1, #errors)
        assert.equal(1, (errors[1]:find("role (" .. FILE .. ":2): 'data_plane'", 1, true)))
    end)
end)

describe("a variable that names a file", function()
    local TEXTS = {
        ["/run/secrets/level"] = "crit\n\n",
        ["/run/secrets/password"] = "s\ncret\n",
        ["/run/secrets/none"] = "",
        ["/dev/zero"] = "",
    }

    local function resolve_with(environment)
        return settings.resolve({
            flags = {},
            environment = environment,
            cwd = "/base",
            open = function(path)
                local text = TEXTS[path]
                if not text then
                    return nil, path .. ": No such file or directory"
                end
                return {
                    read = function(_, bytes)
                        return path == "/dev/zero" and ("\0"):rep(bytes) or text
                    end,
                    close = function() end,
                }
            end,
        })
    end

    it("has the value, without the newlines at its end", function()
        local found, errors, _, warnings = resolve_with({
            KONG_LOG_LEVEL_FILE = "/run/secrets/level",
            KONG_PG_PASSWORD_FILE = "/run/secrets/password",
            KONG_PREFIX_FILE = "/run/secrets/none",
            KONG_PROXY_LISTEN_FILE = "",
        })
        assert.same({}, errors)
        assert.equal("crit", found.log_level)
        assert.equal(options.by_name.prefix.default, found.prefix)
        assert.same({
            "environment: KONG_PG_PASSWORD_FILE: " .. kong.by_name.pg_host.warns,
        }, warnings)
    end)

    it("is refused beside the value itself, and where it cannot be read", function()
        local _, errors = resolve_with({
            KONG_LOG_LEVEL_FILE = "/run/secrets/level",
            KONG_LOG_LEVEL = "info",
            KONG_PG_PASSWORD_FILE = "/nowhere",
        })
        assert.same({
            "pg_password (environment KONG_PG_PASSWORD_FILE): cannot read /nowhere: No such file "
                .. "or directory",
            "log_level (environment KONG_LOG_LEVEL_FILE): KONG_LOG_LEVEL is set, too; only one of "
                .. "them can be",
        }, errors)
    end)

    it("is not shown where it is wrong, nor read whole where it has no end", function()
        local _, errors = resolve_with({
            KONG_HEADERS_FILE = "/run/secrets/password",
            KONG_LOG_LEVEL_FILE = "/run/secrets/password",
            KONG_PREFIX_FILE = "/dev/zero",
            KONG_ROLE_FILE = "/run/secrets/password",
        })
        assert.equal(4, #errors)
        local text = table.concat(errors, "\n")
        assert.is_nil(text:find("\ncret", 1, true))
        assert.is_truthy(
            text:find(
                "prefix (environment KONG_PREFIX_FILE): /dev/zero is " .. "larger than",
                1,
                true
            )
        )
        assert.is_truthy(
            text:find("log_level (environment KONG_LOG_LEVEL_FILE) is not valid", 1, true)
        )
    end)

    it("is none where a setting of Kong's has that name, or nothing has the other", function()
        local _, errors, _, warnings = resolve_with({
            KONG_RESOLVER_HOSTS_FILE = "/nowhere",
            KONG_NOTHING_FILE = "/nowhere",
        })
        assert.same({}, errors)
        assert.same({
            "environment: KONG_RESOLVER_HOSTS_FILE: " .. kong.by_name.resolver_hosts_file.warns,
            "environment: KONG_NOTHING_FILE: " .. kong.UNKNOWN,
        }, warnings)
    end)
end)
