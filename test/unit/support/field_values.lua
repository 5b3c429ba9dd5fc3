--- Values that the entities' fields take and refuse, and what users are told.

local words = require("test.unit.support.words")

local LONG_PATH = "invalid path: '%s' (characters outside of the reserved list of RFC 3986 found)"
local NAME =
    "invalid value '%s': the only accepted ascii characters are alphanumerics or ., -, _, and ~"
local TAG =
    "invalid tag '%s': expected printable ascii (except `,` and `/`) or valid utf-8 sequences"
local START = "should start with: / (fixed path) or ~/ (regex path)"
local ONE_WILDCARD = "invalid wildcard: must have at most one wildcard"
local EDGE_WILDCARD = "invalid wildcard: must be placed at leftmost or rightmost label"
local UNSUPPORTED = "this field is not supported by this version"
local REFERENCE = "expected a reference: a name, an id, { id = ... } or { name = ... }"
local TIMEOUT = "value should be between 1 and 2147483646"

-- kind -> field -> { good = values, bad = { { value, message, path of the error } } }
return {
    services = {
        id = {
            good = { "3c45ea7d-1e22-587c-ad2f-e4631336c6ba" },
            bad = { { "x", "expected a valid UUID" }, { 1, "expected a string" } },
        },
        name = {
            good = { "a", "A.b-c_d~1", "größe", "日本", "\240\144\141\136", "\224\160\128" },
            bad = {
                { "a b", NAME:format("a b") },
                { "a/b", NAME:format("a/b") },
                { "", "length must be at least 1" },
                { "a\255", "invalid utf-8 character sequence detected at position 2" },
                { "\237\160\128", "invalid utf-8 character sequence detected at position 1" },
                { "\244\144\128\128", "invalid utf-8 character sequence detected at position 1" },
                { "a\195\40", "invalid utf-8 character sequence detected at position 2" },
                { "\192\128", "invalid utf-8 character sequence detected at position 1" },
                { "ab\226\130", "invalid utf-8 character sequence detected at position 3" },
            },
        },
        host = {
            good = words([[
                a A.B.example. a_b 127.0.0.1 ::1 [::1] ::ffff:1.2.3.4 1:: 255.255.255.255
                1:2:3:4:5:6:7:: 1:2:3:4:5:6:7:8
            ]]),
            bad = {
                { "a:80", "must not have a port" },
                { "[::1]:80", "must not have a port" },
                { "a:99999", "must not have a port" },
                { "a b", "invalid value: a b" },
                { "a..b", "invalid value: a..b" },
                { "-.", "invalid value: -." },
                { "1.2.3", "invalid value: 1.2.3" },
                { "1.2.3.256", "invalid value: 1.2.3.256" },
                { "1::2::3", "invalid value: 1::2::3" },
                { "1:2:3:4:5:6:7", "invalid value: 1:2:3:4:5:6:7" },
                { "::1.2.3.400", "invalid value: ::1.2.3.400" },
                { "[::1", "invalid value: [::1" },
                { "http://a", "invalid value: http://a" },
                { "a/b", "invalid value: a/b" },
            },
        },
        protocol = {
            good = { "http", "https" },
            bad = {
                {
                    "ftp",
                    "expected one of: grpc, grpcs, http, https, tcp, tls, tls_passthrough, udp",
                },
                { "grpc", "'grpc' is not supported by this version (supported: http, https)" },
                { "tcp", "'tcp' is not supported by this version (supported: http, https)" },
            },
        },
        port = {
            good = { 0, 65535 },
            bad = {
                { 65536, "value should be between 0 and 65535" },
                { "80", "expected an integer" },
            },
        },
        path = {
            good = { "/", "/a/b.c~d", "/a%20b", "/a;b=c@d" },
            bad = {
                { "a", "should start with: /" },
                { "/a//b", "must not have empty segments" },
                { "/a b", LONG_PATH:format("/a b") },
                { "/a?b", LONG_PATH:format("/a?b") },
                { "/a%2", "invalid url-encoded value: '%2'" },
                { "/a%zzb", "invalid url-encoded value: '%zz'" },
            },
        },
        retries = {
            good = { 0, 32767 },
            bad = { { 32768, "value should be between 0 and 32767" } },
        },
        tls_verify_depth = {
            good = {},
            bad = {
                { 65, "value should be between 0 and 64" },
                { 64, "value must be null (given the value of field 'protocol')" },
            },
        },
        connect_timeout = {
            good = { 1, 2147483646 },
            bad = { { 0, TIMEOUT }, { 2147483647, TIMEOUT } },
        },
        read_timeout = { good = { 1 }, bad = { { 0, TIMEOUT }, { 1.5, "expected an integer" } } },
        write_timeout = { good = { 1 }, bad = { { 0, TIMEOUT } } },
        tags = {
            good = { {}, { "a", "b c", "ü", "!~" } },
            bad = {
                { { "a", "b,c" }, TAG:format("b,c"), "tags[1]" },
                { { "a/b" }, TAG:format("a/b"), "tags[0]" },
                { { "a\n" }, TAG:format("a\n"), "tags[0]" },
                { { "" }, "length must be at least 1", "tags[0]" },
                { "a", "expected a set" },
            },
        },
        enabled = { good = { true, false }, bad = { { "yes", "expected a boolean" } } },
        url = {
            good = { "http://a", "https://a:8443/x", "http://[::1]:80/x", "HTTP://a/" },
            bad = {
                { "a/b", "missing scheme in url" },
                { "http://", "missing host in url" },
                { "http://u:p@a/", "must not have a user name or password" },
                { "http://a/?q=1", "must not have a query or a fragment" },
                { "http://a:70000", "value should be between 0 and 65535", "port" },
                { "http://a:x", "invalid address in url" },
                { "http://a//b", "must not have empty segments", "path" },
                {
                    "ws://a",
                    "expected one of: grpc, grpcs, http, https, tcp, tls, tls_passthrough, udp",
                    "protocol",
                },
                { 1, "expected a string" },
            },
        },
        client_certificate = {
            good = {},
            bad = { { "a", "value must be null (given the value of field 'protocol')" } },
        },
        ca_certificates = {
            good = { {} },
            bad = { { { "x" }, "expected a valid UUID", "ca_certificates[0]" } },
        },
        tls_verify = {
            good = {},
            bad = {
                { false, "value must be null (given the value of field 'protocol')" },
                { true, "value must be null (given the value of field 'protocol')" },
            },
        },
    },
    routes = {
        protocols = {
            good = { { "http" }, { "https" }, { "https", "http" } },
            bad = {
                { {}, "length must be at least 1" },
                {
                    { "http", "x" },
                    "expected one of: grpc, grpcs, http, https, tcp, tls, tls_passthrough, udp",
                    "protocols[1]",
                },
                {
                    { "tcp" },
                    "'tcp' is not supported by this version (supported: http, https)",
                    "protocols[0]",
                },
                { "http", "expected a set" },
            },
        },
        paths = {
            good = { { "/" }, { "/a", "~/b/(?<id>\\d+)$" }, { "/a%2Fb" }, { "~/a|/b" } },
            bad = {
                { { "/", "a" }, START, "paths[1]" },
                { { "~a" }, START, "paths[0]" },
                { { "" }, "length must be at least 1", "paths[0]" },
                { { "/a//b" }, "must not have empty segments", "paths[0]" },
                { { "/a/../b" }, "non-normalized path, consider use '/b' instead", "paths[0]" },
                { { "/%7ea" }, "non-normalized path, consider use '/~a' instead", "paths[0]" },
                { { "/a%f" }, "invalid url-encoded value: '%f'", "paths[0]" },
                { "/a", "expected an array" },
            },
        },
        hosts = {
            good = {
                {
                    "a",
                    "a.example:80",
                    "*.example.com",
                    "example.*",
                    "*.a.b:8080",
                    "10.0.0.1",
                    "[::1]:80",
                },
            },
            bad = {
                { { "*.a.*" }, ONE_WILDCARD, "hosts[0]" },
                { { "a.*.b" }, EDGE_WILDCARD, "hosts[0]" },
                { { "*a.b" }, EDGE_WILDCARD, "hosts[0]" },
                { { "a.b*" }, EDGE_WILDCARD, "hosts[0]" },
                { { "*" }, EDGE_WILDCARD, "hosts[0]" },
                { { "ok", "a b" }, "invalid hostname: a b", "hosts[1]" },
                { { "a:70000" }, "invalid port number", "hosts[0]" },
                { { "*.a..b" }, "invalid hostname: *.a..b", "hosts[0]" },
            },
        },
        methods = {
            good = { { "GET", "PURGE" } },
            bad = { { { "get" }, "invalid value: get", "methods[0]" } },
        },
        headers = {
            good = { { ["x-a"] = { "1", "2" } }, { X_b = { "~*^v" } } },
            bad = {
                {
                    { Host = { "a" } },
                    "cannot contain 'host' header, which must be specified "
                        .. "in the 'hosts' attribute",
                    "headers.Host",
                },
                {
                    { ["a b"] = { "x" } },
                    "bad header name 'a b', allowed characters are A-Z, a-z, 0-9, '_', and '-'",
                    'headers["a b"]',
                },
                { { a = "x" }, "expected an array", "headers.a" },
                { { a = { 1 } }, "expected a string", "headers.a[0]" },
                { "a", "expected a map" },
            },
        },
        https_redirect_status_code = {
            good = { 426, 301, 302, 307, 308 },
            bad = { { 303, "expected one of: 426, 301, 302, 307, 308" } },
        },
        path_handling = { good = { "v0", "v1" }, bad = { { "v2", "expected one of: v0, v1" } } },
        regex_priority = { good = { -1, 0, 100 }, bad = { { 1.5, "expected an integer" } } },
        strip_path = { good = { false }, bad = { { 1, "expected a boolean" } } },
        preserve_host = { good = { true }, bad = { { "true", "expected a boolean" } } },
        request_buffering = { good = { true }, bad = { { 1, "expected a boolean" } } },
        response_buffering = { good = { true }, bad = { { 1, "expected a boolean" } } },
        snis = {
            good = { {}, { "a.b", "*.b" } },
            bad = { { { "a:1" }, "must not have a port", "snis[0]" } },
        },
        sources = {
            good = { {} },
            bad = {
                { { { ip = "10.0.0.0/8" } }, UNSUPPORTED },
                {
                    { { ip = "10.0.0.0/33" } },
                    "invalid ip or cidr range: '10.0.0.0/33'",
                    "sources[0].ip",
                },
                {
                    { {} },
                    "at least one of these fields must be non-empty: 'ip', 'port'",
                    "sources[0]",
                },
            },
        },
        destinations = { good = { {} }, bad = { { { { port = 1 } }, UNSUPPORTED } } },
    },
    upstreams = {
        name = {
            good = { "a.b", "service_1" },
            bad = {
                { "a:1", "Invalid name ('a:1'); no port allowed" },
                { "a:99999", "Invalid name ('a:99999'); no port allowed" },
                { "10.0.0.1", "Invalid name ('10.0.0.1'); no ip addresses allowed" },
                { "a b", "Invalid name ('a b'); must be a valid hostname" },
            },
        },
        slots = { good = { 10, 65536 }, bad = { { 9, "value should be between 10 and 65536" } } },
        algorithm = {
            good = { "round-robin" },
            bad = {
                {
                    "latency",
                    "'latency' is not supported by this version (supported: round-robin)",
                },
                {
                    "x",
                    "expected one of: consistent-hashing, least-connections, round-robin, latency",
                },
            },
        },
        hash_on = {
            good = { "none" },
            bad = { { "ip", "'ip' is not supported by this version (supported: none)" } },
        },
        host_header = {
            good = { "a", "a:80" },
            bad = { { "a b", "invalid hostname: a b" }, { "a:99999", "invalid port number" } },
        },
        client_certificate = { good = { { id = "x" } }, bad = { { 1, REFERENCE } } },
        use_srv_name = {
            good = { false },
            bad = { { true, "'true' is not supported by this version (supported: false)" } },
        },
        healthchecks = {
            good = {
                {},
                { active = { healthy = { interval = 0 } } },
                { passive = { healthy = { successes = 3 } } },
            },
            bad = {
                {
                    { active = { healthy = { interval = 5 } } },
                    "'5' is not supported by this version (supported: 0)",
                    "healthchecks.active.healthy.interval",
                },
                {
                    { passive = { unhealthy = { http_failures = 1 } } },
                    "'1' is not supported by this version (supported: 0)",
                    "healthchecks.passive.unhealthy.http_failures",
                },
                {
                    { threshold = 101 },
                    "value should be between 0 and 100",
                    "healthchecks.threshold",
                },
                {
                    { active = { healthy = { http_statuses = { 99 } } } },
                    "value should be between 100 and 999",
                    "healthchecks.active.healthy.http_statuses[0]",
                },
                { { actve = {} }, "unknown field", "healthchecks.actve" },
            },
        },
    },
    targets = {
        target = {
            good = { "a", "a:1", "10.0.0.1:80", "[::1]:80", "::1" },
            bad = {
                { "a:x", "Invalid target ('a:x'); not a valid hostname or ip address" },
                { "a:99999", "Invalid target ('a:99999'); invalid port number" },
                { "http://a", "Invalid target ('http://a'); not a valid hostname or ip address" },
                { "[::1]80", "Invalid target ('[::1]80'); not a valid hostname or ip address" },
                { "[::1]:", "Invalid target ('[::1]:'); not a valid hostname or ip address" },
            },
        },
        weight = {
            good = { 0, 65535 },
            bad = {
                { -1, "value should be between 0 and 65535" },
                { 65536, "value should be between 0 and 65535" },
            },
        },
    },
    consumers = {
        username = { good = { "a b/ü" }, bad = { { 5, "expected a string" } } },
        custom_id = { good = { "x" }, bad = { { "", "length must be at least 1" } } },
    },
    keyauth_credentials = {
        key = { good = { "x y" }, bad = { { 5, "expected a string" } } },
        ttl = { good = { 0, 5 }, bad = { { 0.5, "expected an integer" } } },
    },
    plugins = {
        protocols = {
            good = { { "http" }, { "grpc", "http" } },
            bad = {
                {
                    { "x" },
                    "expected one of: grpc, grpcs, http, https, tcp, tls, tls_passthrough, udp, "
                        .. "ws, wss",
                    "protocols[0]",
                },
            },
        },
        instance_name = { good = { "a" }, bad = { { "a b", NAME:format("a b") } } },
        ordering = { good = { {} }, bad = { { { before = {} }, UNSUPPORTED } } },
        consumer_group = {
            good = { "gold", { id = "x" } },
            bad = { { 1, REFERENCE } },
        },
        enabled = { good = { false }, bad = { { 0, "expected a boolean" } } },
    },
    snis = {
        name = {
            good = { "a", "a.example", "*.example", "a.*" },
            bad = {
                { "a.*.b", "wildcard must be leftmost or rightmost character" },
                { "*.a.*", "only one wildcard must be specified" },
                { "127.0.0.1", "must not be an IP" },
                { "a:443", "must not have a port" },
            },
        },
    },
    consumer_groups = {
        name = { good = { "gold" }, bad = { { "a b", NAME:format("a b") } } },
    },
    vaults = {
        prefix = {
            good = { "my-env", "e1" },
            bad = {
                { "env", "must not be one of: env" },
                { "a", "invalid value: a" },
                { "A-b", "invalid value: A-b" },
                { "a-", "invalid value: a-" },
            },
        },
        name = { good = { "env" }, bad = { { "aws", "vault 'aws' is not installed" } } },
        config = {
            good = { {}, { prefix = "APP_" } },
            bad = { { { region = "eu" }, "unknown field", "config.region" } },
        },
    },
}
