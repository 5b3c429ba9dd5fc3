-- The declaration of the options: complete, documented, and each one takes effect.

local conf_file = require("cli.options.conf_file")
local files = require("test.house.files")
local options = require("cli.options")
local settings = require("cli.options.settings")
local values = require("cli.options.values")
local words = require("test.unit.support.words")

local function render(flags)
    local resolved, errors = settings.resolve({
        flags = flags,
        environment = {},
        cwd = "/",
        open = function() end,
    })
    assert.same({}, errors)
    return require("cli.nginx.conf").render(resolved, "/root-of-sluice", "staff")
end

-- For each option that nginx.conf depends on: a value that is not the default, and text that the
-- rendered file then holds.
local EFFECTS = {
    prefix = { "/p/q", "/p/q/run/nginx.pid" },
    proxy_listen = { "127.0.0.1:81 backlog=5", "listen 127.0.0.1:81 backlog=5;" },
    admin_listen = { "[::1]:82", "listen [::1]:82;" },
    status_listen = { "127.0.0.1:84 ssl", "listen 127.0.0.1:84 ssl;" },
    workers = { "77", "worker_processes 78;" },
    worker_connections = { "99", "worker_connections 99;" },
    user = { "nobody", "user nobody staff;" },
    watchdog_timeout = { "8s", "sluice_control_watchdog 8s;" },
    shutdown_timeout = { "7s", "worker_shutdown_timeout 7s;" },
    log_level = { "crit", " crit;" },
    error_log = { "/l/e.log", "/l/e.log" },
    access_log = { "/l/a.log", "/l/a.log" },
    access_log_format = { "just $status", "just $status" },
    access_log_buffer = { "9k", "buffer=9k flush=1s" },
    admin_access_log_format = { "just $status", "just $status" },
    admin_error_log = { "/l/d.log", 'error_log "/l/d.log" notice;' },
    port_maps = { "80:8000", "8000 80;" },
    audit_log = { "/l/c.log", "/l/c.log" },
    admin_access_log = { "/l/b.log", "/l/b.log" },
    trusted_ips = { "10.1.0.0/16", "set_real_ip_from 10.1.0.0/16;" },
    client_max_body_size = { "3m", "client_max_body_size 3m;" },
    client_body_buffer_size = { "9k", "client_body_buffer_size 9k;" },
    client_header_timeout = { "11s", "client_header_timeout 11s;" },
    client_body_timeout = { "12s", "client_body_timeout 12s;" },
    send_timeout = { "21s", "send_timeout 21s;" },
    keepalive_timeout = { "13s", "keepalive_timeout 13s;" },
    ssl_cipher_suite = { "modern", "ssl_protocols TLSv1.3;" },
    ask_client_certificate = { "on", "sluice_tls_ask_certificate on;" },
    ssl_crl = { "/t/a.crl, /t/b.crl", 'sluice_crl "/t/a.crl";\n    sluice_crl "/t/b.crl";' },
    http2_max_concurrent_streams = { "18", "http2_max_concurrent_streams 18;" },
    http2_max_resets = { "19", "sluice_http2_limits 19 128 1000;" },
    http2_max_control_frames = { "20", "sluice_http2_limits 500 128 20;" },
    keepalive_requests = { "14", "keepalive_requests 14;" },
    large_client_header_buffers = { "5 16k", "large_client_header_buffers 5 16k;" },
    early_hints = { "off", "sluice_early_hints off;" },
    ignore_invalid_headers = { "on", "ignore_invalid_headers on;" },
    reject_encoded_climbs = { "off", "sluice_reject_path_traversal off;" },
    proxy_ssl_trusted_certificate = {
        "/t/ca.pem",
        'sluice_upstream_trusted_certificate "/t/ca.pem";',
    },
    proxy_buffer_size = { "20k", "proxy_buffer_size 20k;" },
    proxy_buffered_body_size = { "17m", "sluice_buffered_body_size 17m;" },
    proxy_buffers = { "9 16k", "proxy_buffers 9 16k;" },
    upstream_keepalive_pool_size = { "15", "sluice_upstream keepalive=15 " },
    upstream_keepalive_max_requests = { "16", " requests=16 " },
    upstream_keepalive_idle_timeout = { "17s", " timeout=17s;" },
    header_prefix = { "X-Test", "X-Test-Request-Id" },
    rate_limiting_memory = { "1m", "sluice_limits_size 1m;" },
    log_buffer_size = { "1m", "sluice_spool_size 1m;" },
    events_stall = { "20s", "sluice_events_stall 20s;" },
    idle_grace = { "3s", "sluice_idle_grace 3s;" },
    metrics_series = { "7", "sluice_metrics_series 7;" },
    events_size = { "4m", "sluice_events_size 4m;" },
    nginx_modules = { "/m/x.so", 'load_module "/m/x.so";' },
    lua_package_path = { "/lua/?.lua", "/lua/?.lua;" },
    vault_env = { "A, B_C", "env A;\nenv B_C;" },
    lua_package_cpath = { "/lua/?.so", "/lua/?.so;" },
}

-- These act elsewhere, and have their tests there: test_cli.py starts with them, the gateway reads
-- them from settings.json.
local ELSEWHERE = {
    -- Where there is a buffer: below.
    access_log_flush = true,
    -- with ssl_cipher_suite = custom alone, below
    ssl_ciphers = true,
    ssl_prefer_server_ciphers = true,
    ssl_protocols = true,
    -- together
    ssl_cert = true,
    ssl_cert_key = true,
    admin_ssl_cert = true,
    admin_ssl_cert_key = true,
    admin_client_ca = true,
    admin_verify_client = true,
    admin_verify_depth = true,
    status_ssl_cert = true,
    status_ssl_cert_key = true,
    -- with status_listen
    status_access_log = true,
    status_access_log_format = true,
    status_error_log = true,
}
for _, name in
    ipairs(words([[
    client_identity_headers conf error_default_type file headers image_dir metrics_latencies
    nginx_binary plugins real_ip_header real_ip_recursive run_dir admin_hosts admin_insecure
    admin_token admin_read_token history max_entities admin_secrets headers_upstream database
    single_node daemon declarative_config_string admin_named_tokens
    untrusted_lua untrusted_lua_sandbox_requires untrusted_lua_sandbox_environment
]]))
do
    ELSEWHERE[name] = true
end

describe("cli.options", function()
    it("declares each option fully, with a default that is right", function()
        local sections = {}
        for _, section in ipairs(options.sections) do
            sections[section] = true
        end
        for _, option in ipairs(options.list) do
            assert.is_truthy(option.name:match("^[a-z][a-z0-9_]+$"), option.name)
            assert.is_function(values.readers[option.type], option.name)
            assert.is_true(sections[option.section], option.name)
            assert.is_truthy(option.doc:match("%.$"), option.name)
            local value, expected = values.read(option, option.default, "/")
            assert.is_not_nil(value, ("%s: %s"):format(option.name, tostring(expected)))
        end
    end)

    it("lets every option take effect", function()
        local default = render({})
        for _, option in ipairs(options.list) do
            local effect = EFFECTS[option.name]
            assert.is_truthy(effect or ELSEWHERE[option.name], option.name .. " has no test")
            if effect then
                local conf = render({ [option.name] = effect[1] })
                assert.is_nil(default:find(effect[2], 1, true), option.name)
                assert.is_truthy(conf:find(effect[2], 1, true), option.name)
            end
        end
    end)

    it("takes what listeners of the control worker have, where there are any", function()
        local TLS = { admin_listen = "127.0.0.1:1 ssl", status_listen = "127.0.0.1:2 ssl" }
        local CA = { admin_listen = "127.0.0.1:1 ssl", admin_client_ca = "/t/ca.pem" }
        for text, given in pairs({
            ['ssl_certificate_key "/t/k.pem";'] = {
                TLS,
                { admin_ssl_cert = "/t/c.pem", admin_ssl_cert_key = "/t/k.pem" },
            },
            ['ssl_certificate "/t/s.pem";'] = {
                TLS,
                { status_ssl_cert = "/t/s.pem", status_ssl_cert_key = "/t/k.pem" },
            },
            ['ssl_client_certificate "/t/ca.pem";'] = { CA, {} },
            ["ssl_verify_client on;"] = { CA, {} },
            ["ssl_verify_client optional;"] = { CA, { admin_verify_client = "optional" } },
            ["ssl_verify_depth 3;"] = { CA, { admin_verify_depth = "3" } },
            ['access_log "/l/s.log" sluice_status;'] = {
                TLS,
                { status_access_log = "/l/s.log", status_access_log_format = "just $status" },
            },
            ['error_log "/l/t.log" notice;'] = { TLS, { status_error_log = "/l/t.log" } },
        }) do
            local flags = given[2]
            assert.is_nil(render(flags):find(text, 1, true), text)
            for name, value in pairs(given[1]) do
                flags[name] = value
            end
            assert.is_truthy(render(flags):find(text, 1, true), text)
        end
    end)

    it("takes real_ip_header and real_ip_recursive where an address is trusted", function()
        local conf = render({
            trusted_ips = "10.0.0.0/8",
            real_ip_header = "X-Client",
            real_ip_recursive = "on",
        })
        assert.is_truthy(conf:find("real_ip_header X-Client;", 1, true))
        assert.is_truthy(conf:find("real_ip_recursive on;", 1, true))
    end)

    it("takes ssl_protocols and ssl_ciphers where the suite is custom", function()
        local flags = {
            ssl_protocols = "TLSv1.2",
            ssl_ciphers = "AES128-SHA",
            ssl_prefer_server_ciphers = "on",
        }
        assert.is_nil(render(flags):find("ssl_prefer", 1, true))
        assert.is_nil(render(flags):find("AES128-SHA;", 1, true))
        flags.ssl_cipher_suite = "custom"
        local conf = render(flags)
        assert.is_truthy(conf:find("ssl_protocols TLSv1.2;", 1, true))
        assert.is_truthy(conf:find('ssl_ciphers "AES128-SHA";', 1, true))
        assert.is_truthy(conf:find("ssl_prefer_server_ciphers on;", 1, true))
    end)

    it("asks for certificates where an address says so", function()
        local listen = "*:1 ssl, *:2 ssl http2 ask_client_certificate, "
            .. "[::]:3 ask_client_certificate ssl"
        local conf = render({ proxy_listen = listen })
        assert.is_truthy(conf:find("sluice_tls_ask_certificate 2 3;", 1, true))
        assert.is_truthy(conf:find("listen *:2 ssl", 1, true))
        assert.is_truthy(conf:find("listen [::]:3 ssl;", 1, true))
        assert.is_nil(render({ proxy_listen = "*:1 ssl" }):find("ask_certificate", 1, true))
    end)

    it("has no TLS where no address has it", function()
        assert.is_nil(render({ proxy_listen = "127.0.0.1:81" }):find("ssl_certificate"))
    end)

    it("drops the clients' identity headers unless they pass", function()
        local drop = "sluice_drop_headers X-Consumer-* X-Credential-* X-Anonymous-Consumer "
            .. "X-Authenticated-Groups X-Client-Cert-*;"
        assert.is_truthy(render({}):find(drop, 1, true))
        assert.is_nil(render({ client_identity_headers = "pass" }):find("sluice_drop_headers"))
    end)

    it("leaves out headers, the admin listener and the access log when they are off", function()
        local conf = render({
            headers = "off",
            headers_upstream = "off",
            admin_listen = "off",
            access_log = "off",
        })
        assert.is_nil(conf:find("X-Kong", 1, true))
        assert.is_nil(conf:find("127.0.0.1:8001", 1, true))
        assert.is_truthy(conf:find("/run/control/socket", 1, true))
        assert.is_truthy(conf:find("access_log off;", 1, true))
    end)

    it("gives the buffer to all logs in the access log's place, and to no syslog", function()
        local buffered = { access_log_buffer = "8k", access_log_flush = "7s" }
        local parameters = " sluice buffer=8k flush=7s"
        local conf = render(buffered)
        assert.is_truthy(conf:find('access.log"' .. parameters .. " if=", 1, true))
        assert.is_truthy(conf:find('admin_access.log" sluice;', 1, true))
        buffered.admin_access_log = "logs/access.log"
        assert.is_truthy(render(buffered):find('access.log"' .. parameters .. ";", 1, true))
        buffered.access_log = "syslog:server=127.0.0.1"
        conf = render(buffered)
        assert.is_truthy(conf:find('access_log "syslog:server=127.0.0.1" sluice if=', 1, true))
        assert.is_nil(conf:find("buffer=8k", 1, true))
    end)

    it("has its page in docs/config.md (make docs writes it)", function()
        assert.equal(files.run("luajit cli/options/reference.lua"), files.read("docs/config.md"))
    end)

    it("has an example that is right", function()
        local _, errors =
            conf_file.parse("examples/sluice.conf", files.read("examples/sluice.conf"))
        assert.same({}, errors)
        local resolved, problems = settings.resolve({
            flags = { conf = "examples/sluice.conf" },
            environment = {},
            cwd = files.run("pwd"):gsub("%s+$", ""),
        })
        assert.same({}, problems)
        assert.is_truthy(files.read(resolved.file):find("_format_version", 1, true))
    end)
end)
