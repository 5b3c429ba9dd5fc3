-- What plugins decide of requests, judged without nginx: configurations as their pack() writes
-- them, through the core as a library (judge.h). test/core/decide*.c has the hostile requests.

local files = require("test.house.files")
local registry = require("gateway.plugin.registry")
local support = require("test.unit.support.judge")

local judge, lib = support.judge, support.lib

-- What a plugin has compiled.
local PATTERNS = lib.sluice_core_regexes_create(2 ^ 20)
local KEY_AUTH = {
    key_names = { "apikey" },
    key_in_header = true,
    key_in_query = true,
    run_on_preflight = true,
    hide_credentials = true,
    realm = "here",
}
local RATE_LIMITING = {
    minute = 5,
    limit_by = "consumer",
    error_code = 429,
    error_message = "slow down",
    fault_tolerant = true,
}
local MTLS_AUTH = { ca_certificates = { "00000000-0000-4000-8000-000000000001" }, depth = 4 }
local JWT = {
    key_claim_name = "iss",
    header_names = { "authorization" },
    run_on_preflight = true,
    realm = "here",
}
local SIZE = { allowed_payload_size = 2, size_unit = "kilobytes" }
local ORIGINS = { "http://a.com", "http://b.com" }
local REDIRECT = { status_code = 302, location = "http://A.com/x#y", keep_incoming_path = true }
local TERMINATION = { status_code = 404, trigger = "stop" }

-- By plugin: a configuration, what is given of a request (test/unit/support/judge.lua), what is
-- decided, and what stands in the result.
local CASES = {
    ["access-log"] = { { { sample = 0.5, errors = true }, {}, "pass" } },
    ["file-log"] = { { { path = "/dev/null" }, {}, "pass" } },
    ["http-log"] = { { { http_endpoint = "http://a.example" }, {}, "pass" } },
    prometheus = { { { latency_metrics = true }, {}, "pass" } },
    acl = {
        {
            { allow = { "a" } },
            { credential = false, consumer = false, authenticated_groups = false },
            "respond",
            { status = 401, message = "Unauthorized" },
        },
        {
            { allow = { "a" } },
            { credential = false, consumer = false },
            "unknown",
            { unknown = "the groups" },
        },
        {
            { allow = { "a" } },
            { credential = false, consumer = false, authenticated_groups = { "b", "a" } },
            "pass",
        },
        {
            { deny = { "a" } },
            { credential = false, consumer = "1", authenticated_groups = { "a" }, acls = {} },
            "respond",
            { status = 403 },
        },
        {
            { deny = { "b" }, always_use_authenticated_groups = true },
            { credential = "1", consumer = "1", authenticated_groups = { "b" }, acls = { "a" } },
            "respond",
            { status = 403 },
        },
        {
            { allow = { "a" } },
            { credential = "1", consumer = "1", acls = { "b" } },
            "respond",
            { status = 403, message = "You cannot consume this service" },
        },
        { { allow = { "a" } }, { credential = "1", consumer = "1", acls = { "a" } }, "pass" },
        {
            { deny = { "a" } },
            { credential = "1", consumer = "1", acls = { "a" } },
            "respond",
            { status = 403 },
        },
        { { deny = { "a" } }, {}, "unknown", { unknown = "who asks" } },
    },
    ["basic-auth"] = {
        {
            { realm = "here" },
            { headers = {} },
            "respond",
            { status = 401, message = "Unauthorized", challenge = 'Basic realm="here"' },
        },
        { { realm = "here" }, {}, "unknown", { unknown = "a header" } },
    },
    ["bot-detection"] = {
        { {}, { headers = {} }, "pass" },
        { {}, { headers = { "User-Agent", "BUbiNG" } }, "respond", { status = 403 } },
        {
            {},
            { headers = { "User-Agent", "a", "User-Agent", "b" } },
            "respond",
            { status = 400 },
        },
        { {}, {}, "unknown", { unknown = "the headers" } },
    },
    ["correlation-id"] = {
        {
            { header_name = "X-Id", generator = "uuid" },
            { headers = { "x-id", "mine" } },
            "pass",
            { logged = "mine" },
        },
        {
            { header_name = "X-Id", generator = "uuid" },
            { headers = {} },
            "unknown",
            { unknown = "the id" },
        },
    },
    cors = {
        {
            { origins = ORIGINS, methods = { "GET" } },
            {
                method = "OPTIONS",
                headers = { "Origin", "http://b.com", "Access-Control-Request-Method", "GET" },
                own = PATTERNS,
            },
            "respond",
            {
                status = 200,
                headers = {
                    ["Access-Control-Allow-Origin"] = "http://b.com",
                    ["Access-Control-Allow-Methods"] = "GET",
                    Vary = "Origin",
                },
            },
        },
        {
            { origins = ORIGINS },
            { method = "GET", headers = { "Origin", "http://b.com" }, own = PATTERNS },
            "pass",
        },
        {
            { origins = ORIGINS },
            { method = "GET", headers = { "Origin", "http://b.com" } },
            "unknown",
            { unknown = "the patterns" },
        },
        { { origins = ORIGINS }, { method = "OPTIONS" }, "unknown", { unknown = "the headers" } },
    },
    ["hmac-auth"] = {
        {
            { algorithms = { "hmac-sha256" }, realm = "here" },
            { headers = {} },
            "respond",
            { status = 401, message = "Unauthorized", challenge = 'hmac realm="here"' },
        },
        { { algorithms = { "hmac-sha256" } }, {}, "unknown", { unknown = "a header" } },
    },
    ["ip-restriction"] = {
        {
            { allow = { "10.0.0.0/8" } },
            { address = "11.0.0.1" },
            "respond",
            { status = 403, message = "IP address not allowed: 11.0.0.1" },
        },
        { { allow = { "10.0.0.0/8" } }, { address = "10.1.2.3" }, "pass" },
        { { deny = { "::1" } }, {}, "unknown" },
    },
    jwt = {
        {
            JWT,
            { method = "GET", query = false, headers = {} },
            "respond",
            {
                status = 401,
                message = '{"message":"Unauthorized"}',
                challenge = 'Bearer realm="here"',
            },
        },
        {
            JWT,
            { method = "GET", query = false, headers = { "Authorization", "Bearer a.b" } },
            "respond",
            { status = 401 },
        },
        { JWT, { method = "GET", query = false }, "unknown", { unknown = "where a token can be" } },
    },
    ["key-auth"] = {
        {
            KEY_AUTH,
            { method = "GET", query = "a=1&apikey=right", headers = {} },
            "pass",
            { query = "a=1" },
        },
        {
            KEY_AUTH,
            { method = "GET", query = false, headers = { "Accept", "*/*" } },
            "respond",
            {
                status = 401,
                message = "No API key found in request",
                challenge = 'Key realm="here"',
            },
        },
        {
            KEY_AUTH,
            { query = false, headers = { "APIKEY", "wrong" } },
            "respond",
            { message = "Unauthorized" },
        },
        { KEY_AUTH, { query = false }, "unknown", { unknown = "the headers" } },
        { KEY_AUTH, { headers = {} }, "unknown", { unknown = "the query" } },
    },
    ["mtls-auth"] = {
        { MTLS_AUTH, { server_name = "a.com", host = "b.com" }, "respond", { status = 421 } },
        { MTLS_AUTH, { server_name = "a.com", host = "a.com" }, "unknown" },
    },
    ["rate-limiting"] = {
        { RATE_LIMITING, { headers = {} }, "unknown", { unknown = "the counters" } },
    },
    redirect = {
        {
            { status_code = 301, location = "http://a.com/x" },
            {},
            "respond",
            { status = 301, headers = { Location = "http://a.com/x" } },
        },
        {
            REDIRECT,
            { path = "/a b", query = "c=d" },
            "respond",
            { status = 302, headers = { Location = "http://a.com/a%20b?c=d#y" } },
        },
        { REDIRECT, { path = "/" }, "unknown", { unknown = "the query" } },
    },
    ["request-size-limiting"] = {
        { SIZE, { headers = { "Content-Length", "2049" } }, "respond", { status = 413 } },
        { SIZE, { headers = {} }, "pass", { bound = 2048 } },
    },
    ["request-termination"] = {
        {
            { status_code = 503, body = "later", content_type = "text/plain" },
            {},
            "respond",
            { status = 503, message = "later", type = "text/plain" },
        },
        {
            TERMINATION,
            { query = "a=1&stop", headers = {} },
            "respond",
            { status = 404, message = '{"message":"Not found"}' },
        },
        { TERMINATION, { query = "a=1", headers = {} }, "pass" },
        { TERMINATION, { query = false }, "unknown", { unknown = "the headers" } },
    },
}

describe("a request without nginx", function()
    it("is judged by each plugin", function()
        for name, cases in pairs(CASES) do
            for i, case in ipairs(cases) do
                local config, given, expected, result = unpack(case, 1, 4)
                local decision, found = judge(name, config, given)
                local shown = ("%s, case %d"):format(name, i)
                assert.equal(expected, decision, shown)
                for field, value in pairs(result or {}) do
                    assert.same(value, found[field], ("%s: %s"):format(shown, field))
                end
            end
        end
    end)

    it("has cases of each plugin, or a plugin in Lua has tests of its own", function()
        local lacking = {}
        for _, name in ipairs(registry.bundled()) do
            local own = ("test/unit/%s_spec.lua"):format((name:gsub("-", "_")))
            lacking[#lacking + 1] = not CASES[name] and not files.exists(own) and name or nil
        end
        assert.same({}, lacking)
    end)

    it("has no judge of another name, nor of other bytes", function()
        local decision, rc = judge("no-such", "", {})
        assert.is_nil(decision)
        assert.equal(lib.SLUICE_CORE_NONE, rc)
        decision, rc = judge("key-auth", "\1", {})
        assert.is_nil(decision)
        assert.equal(lib.SLUICE_CORE_BAD, rc)
    end)
end)
