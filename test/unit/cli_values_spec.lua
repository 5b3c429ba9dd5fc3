-- What the text of each type of setting means, and what is refused.

local listen = require("cli.options.listen")
local options = require("cli.options")
local values = require("cli.options.values")

local function read(kind, text, more)
    local option = { type = kind, name = "x" }
    for key, value in pairs(more or {}) do
        option[key] = value
    end
    return values.read(option, text, "/base/dir")
end

-- Each row: type, text, expected value, more fields of the option.
local RIGHT = {
    { "integer", "7", 7, { min = 1, max = 9 } },
    { "count", "auto", "auto", { min = 1, max = 9 } },
    { "count", "9", 9, { min = 1, max = 9 } },
    { "boolean", "on", true },
    { "boolean", "false", false },
    { "enum", "b", "b", { values = { "a", "b" } } },
    { "word_list", "b, a", { "b", "a" }, { values = { "a", "b" } } },
    { "word_list", "off", {}, { values = { "a" } } },
    { "words", " b  a ", "b a", { values = { "a", "b" } } },
    { "name_list", "bundled, my-plugin", { "bundled", "my-plugin" } },
    { "module_list", "cjson, resty.a-b ,os", { "cjson", "resty.a-b", "os" } },
    { "module_list", "", {} },
    { "host_list", "Admin.example, a_b,x-1", { "admin.example", "a_b", "x-1" } },
    { "host_list", "", {} },
    { "secret", "", "", { min = 4, max = 6 } },
    { "secret", "a'b$", "a'b$", { min = 4, max = 6 } },
    { "path", "/a/../b/./c", "/b/c" },
    { "path", "c.yaml", "/base/dir/c.yaml" },
    { "path", "../c.yaml", "/base/c.yaml" },
    { "path", "", "" },
    { "path_list", "/a.so, b.so", { "/a.so", "/base/dir/b.so" } },
    { "path_list", "", {} },
    { "log", "logs/x.log", "logs/x.log", { values = { "off" } } },
    { "log", "off", "off", { values = { "off" } } },
    { "log", "syslog:server=[::1]:5", "syslog:server=[::1]:5", { values = {}, syslog = true } },
    {
        "log",
        "syslog:server=unix:/dev/log,facility=local3,severity=warn,tag=a_b,nohostname",
        "syslog:server=unix:/dev/log,facility=local3,severity=warn,tag=a_b,nohostname",
        { values = {}, syslog = true },
    },
    { "log_format", "json", "json", { values = { "json" } } },
    { "log_format", "{$a} ${b}c", "{$a} ${b}c", { values = { "json" } } },
    { "time", "60s", "60s" },
    { "time", "1m30s", "1m30s" },
    { "time", "500ms", "500ms" },
    { "time", "75", "75" },
    { "time", "0", "0" },
    { "time", "2s", "2s", { min = 2000 } },
    { "size", "8K", "8k" },
    { "size", "0", "0" },
    { "buffers", "4  8k", "4 8k" },
    { "cidr_list", "10.0.0.0/8, ::1, fd00::/8", { "10.0.0.0/8", "::1", "fd00::/8" } },
    { "cidr_list", "::ffff:10.0.0.1", { "::ffff:10.0.0.1" } },
    { "cidr_list", "", {} },
    { "listen", "127.0.0.1:80", { "127.0.0.1:80" } },
    {
        "listen",
        "[::]:8000  reuseport   backlog=9,*:1",
        { "[::]:8000 reuseport backlog=9", "*:1" },
    },
    { "listen", "off", {}, { off = true } },
    { "listen", "*:1 http2", { "*:1 http2" } },
    { "listen", "*:1 proxy_protocol ssl", { "*:1 proxy_protocol ssl" } },
    {
        "listen",
        "*:1 ssl, *:2 ssl  ask_client_certificate",
        { "*:1 ssl", "*:2 ssl ask_client_certificate" },
        { asks = true },
    },
    { "listen", "*:1 ssl  http2, *:2 ssl", { "*:1 ssl http2", "*:2 ssl" } },
    { "text", "$status $uri", "$status $uri" },
    { "word", "X-Real-IP", "X-Real-IP" },
}

-- Each row: type, text, more fields of the option.
local WRONG = {
    { "integer", "0", { min = 1, max = 9 } },
    { "integer", "10", { min = 1, max = 9 } },
    { "integer", "-1", { min = -5, max = 9 } },
    { "integer", "1e1", { min = 1, max = 99 } },
    { "integer", "1.0", { min = 1, max = 9 } },
    { "integer", "", { min = 0, max = 9 } },
    { "count", "Auto", { min = 1, max = 9 } },
    { "boolean", "yes" },
    { "enum", "c", { values = { "a", "b" } } },
    { "word_list", "a,c", { values = { "a", "b" } } },
    { "word_list", "a,a", { values = { "a", "b" } } },
    { "word_list", "", { values = { "a" } } },
    { "words", "", { values = { "a" } } },
    { "words", "a a", { values = { "a" } } },
    { "words", "a; b", { values = { "a", "b" } } },
    { "words", "a;b on", { values = { "a" } } },
    { "name_list", "../x" },
    { "module_list", "a..b" },
    { "module_list", ".a" },
    { "module_list", "a/b" },
    { "host_list", "admin.example:8001" },
    { "host_list", "http://admin.example" },
    { "host_list", "admin.example." },
    { "host_list", "*.example" },
    { "host_list", "*" },
    { "host_list", "10.0.0.1" },
    { "host_list", "[::1]" },
    { "host_list", "a b" },
    { "secret", "abc", { min = 4, max = 6 } },
    { "secret", "abcdefg", { min = 4, max = 6 } },
    { "secret", "abc d", { min = 4, max = 6 } },
    { "secret", "abc\td", { min = 4, max = 6 } },
    { "secret", "abcd\195\164", { min = 4, max = 6 } },
    { "path", '/a"b' },
    { "path", "/a;b" },
    { "path", "/a$b" },
    { "path_list", "/a, /b{" },
    { "log", "syslog:server=x", { values = {} } },
    { "log", "syslog:", { values = {}, syslog = true } },
    { "log", "syslog:facility=local0", { values = {}, syslog = true } },
    { "log", "syslog:server=x,server=y", { values = {}, syslog = true } },
    { "log", "syslog:server=x;", { values = {}, syslog = true } },
    { "log", "syslog:server=x,tag=a-b", { values = {}, syslog = true } },
    { "log", "syslog:server=x,buffer=1", { values = {}, syslog = true } },
    { "log_format", "", { values = {} } },
    { "log_format", "classic", { values = { "json" } } },
    { "log_format", "$", { values = {} } },
    { "log_format", "${a", { values = {} } },
    { "log_format", "$a\n", { values = {} } },
    { "log", "", { values = {} } },
    { "log", "a b", { values = {} } },
    { "time", "s" },
    { "time", "1s1m" },
    { "time", "1x" },
    { "time", "100y" },
    { "time", "" },
    { "time", "0", { min = 1 } },
    { "time", "1999ms", { min = 2000 } },
    { "size", "8kb" },
    { "size", "-1" },
    { "size", "1k", { min = 1025 } },
    { "buffers", "4" },
    { "buffers", "0 8k" },
    { "cidr_list", "10.0.0.0/33" },
    { "cidr_list", "10.0.0/8" },
    { "cidr_list", "256.0.0.1" },
    { "cidr_list", "::1/129" },
    { "cidr_list", "1:2:3:4:5:6:7:8:9" },
    { "cidr_list", "1::2::3" },
    { "cidr_list", "12345::" },
    { "cidr_list", "example.com" },
    { "listen", "8000" },
    -- Whoever may open the folder could connect to a socket that nginx makes.
    { "listen", "unix:/run/admin.sock" },
    { "listen", "admin.example:8001" },
    { "listen", "127.0.0.1:0" },
    { "listen", "127.0.0.1:65536" },
    { "listen", "::1:8000" },
    { "listen", "[::x]:8000" },
    { "listen", "127.0.0.1:80 ask_client_certificate", { asks = true } },
    { "listen", "127.0.0.1:80 ssl ask_client_certificate" },
    { "listen", "*:1 ssl, [::]:1 ssl ask_client_certificate", { asks = true } },
    { "listen", "127.0.0.1:80 ssl ssl" },
    { "listen", "127.0.0.1:80 backlog=0" },
    { "listen", "127.0.0.1:80 backlog=1 backlog=2" },
    { "listen", "127.0.0.1:80 ipv6only=on" },
    { "listen", "[::1]:80 ipv6only=yes" },
    { "listen", "127.0.0.1:80 so_keepalive=::" },
    { "listen", "127.0.0.1:80 host=x" },
    { "listen", "off" },
    { "listen", "" },
    { "text", "a\nb" },
    { "word", "a b" },
    { "word", "x;" },
}

describe("cli.options.values", function()
    for _, row in ipairs(RIGHT) do
        local kind, text, expected, more = row[1], row[2], row[3], row[4]
        it(("reads %s %q"):format(kind, text), function()
            assert.same(expected, (read(kind, text, more)))
        end)
    end

    for _, row in ipairs(WRONG) do
        local kind, text, more = row[1], row[2], row[3]
        it(("refuses %s %q and says what is right"):format(kind, text), function()
            local value, expected = read(kind, text, more)
            assert.is_nil(value)
            assert.is_string(expected)
        end)
    end

    it("splits a listen address, with all of nginx's words", function()
        local all = "[::1]:8000 backlog=7 reuseport ssl http2 proxy_protocol deferred bind "
            .. "ask_client_certificate ipv6only=off so_keepalive=30m::10"
        assert.same({
            host = "::1",
            port = 8000,
            reuseport = true,
            ssl = true,
            http2 = true,
            proxy_protocol = true,
            deferred = true,
            bind = true,
            ask_client_certificate = true,
            backlog = 7,
            ipv6only = "off",
            so_keepalive = "30m::10",
        }, listen.parse(all))
        assert.same({
            host = "*",
            port = 80,
            ssl = false,
            http2 = false,
            proxy_protocol = false,
            reuseport = false,
            deferred = false,
            bind = false,
            ask_client_certificate = false,
        }, listen.parse("*:80"))
    end)

    it("says what to write for a port alone, an address alone and what is no port", function()
        local no_port = "a port from 1 to 65535"
        local in_brackets = "an IPv6 address in brackets, with its port; write it as in [::1]:8000"
        for _, row in ipairs({
            { "proxy_listen", "20000", "an address with the port; write 0.0.0.0:20000" },
            {
                "proxy_listen",
                "[::]:20000 http2 tls",
                "the word ssl for TLS; write [::]:20000 http2 ssl",
            },
            { "proxy_listen", ":20000 ssl", "an address with the port; write 0.0.0.0:20000" },
            { "admin_listen", "20000", "an address with the port; write 127.0.0.1:20000" },
            { "status_listen", "9000", "an address with the port; write 127.0.0.1:9000" },
            { "proxy_listen", "127.0.0.1", "an address with its port; write 127.0.0.1:8000" },
            { "admin_listen", "[::1]", "an address with its port; write [::1]:8001" },
            { "admin_listen", "::1", in_brackets },
            { "admin_listen", "::1:8000", in_brackets },
            { "proxy_listen", "127.0.0.1:65536", no_port },
            { "proxy_listen", "0", no_port },
            { "proxy_listen", "127.0.0.1:1, " .. ("9"):rep(400), no_port },
        }) do
            local name, text, expected = row[1], row[2], row[3]
            local value, said, is_long = values.read(options.by_name[name], text, "/")
            assert.same({ nil, expected, false }, { value, said, is_long })
        end
    end)
end)

describe("the text of a value", function()
    it("is what users write", function()
        for _, row in ipairs({
            { "single_node", true, "on" },
            { "single_node", false, "off" },
            { "trusted_ips", {}, "(unset)" },
            { "trusted_ips", { "10.0.0.0/8", "::1" }, "10.0.0.0/8, ::1" },
            { "proxy_listen", {}, "off" },
            { "headers_upstream", {}, "off" },
            { "run_dir", "", "(unset)" },
            { "run_dir", nil, "(unset)" },
            { "worker_connections", 512, "512" },
        }) do
            local option = assert(options.by_name[row[1]])
            assert.equal(row[3], values.text(option, row[2]))
        end
    end)

    it("reads back as the value", function()
        for _, option in ipairs(options.list) do
            local value = values.read(option, option.default, "/")
            local text = value ~= nil and values.text(option, value)
            if text and text ~= "(unset)" then
                assert.same(value, (values.read(option, text, "/")), option.name)
            end
        end
    end)
end)
