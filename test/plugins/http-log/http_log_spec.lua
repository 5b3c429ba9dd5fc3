--- http-log: which configurations are right, and what follows from them.

local endpoint = require("sluice.http_endpoint")
local support = require("test.unit.support.config")

local function config(body)
    return "plugins:\n- name: http-log\n  config:\n    http_endpoint: http://a/b\n    " .. body
end

local function errors(body)
    return support.errors(config(body))
end

describe("http-log's configuration", function()
    it("had several values for a header before format 3.0, sent in one line", function()
        local lists = config("headers: {X-A: [b], X-B: [c, d], X-C: e}")
        for _, version in ipairs({ "1.1", "2.1" }) do
            local found = support.parse(lists, version).plugins[1].config
            assert.same({ ["X-A"] = "b", ["X-B"] = "c, d", ["X-C"] = "e" }, found.headers)
        end
        for values, message in pairs({
            ["[1]"] = "expected a string",
            ["[]"] = "expected a string",
            ["{a: b}"] = "expected a string",
            ['["a\\n"]'] = "must not contain a line break",
        }) do
            local text = support.errors(config("headers: {X-A: " .. values .. "}"), "2.1")
            assert.equal("plugins[0].config.headers.X-A: " .. message, text, values)
        end
        assert.truthy(errors("headers: {X-A: [b]}"):find("expected a string", 1, true))
    end)

    it("has Kong's fields and defaults", function()
        local found = support.parse(config("headers: {X-A: b}")).plugins[1].config
        assert.equal("http://a/b", found.http_endpoint)
        assert.equal("POST", found.method)
        assert.equal("application/json", found.content_type)
        assert.equal(10000, found.timeout)
        assert.equal(60000, found.keepalive)
        assert.same({ ["X-A"] = "b" }, found.headers)
        assert.same({
            max_batch_size = 1,
            max_coalescing_delay = 1,
            max_entries = 10000,
            initial_retry_delay = 0.01,
            max_retry_delay = 60,
            max_retry_time = 60,
            concurrency_limit = 1,
        }, found.queue)
        assert.is_nil(found.queue.max_bytes)
    end)

    it("takes the fields of former versions", function()
        assert.equal("", errors("retry_count: 10\n    queue_size: 5\n    flush_timeout: 0.5"))
    end)

    it("refuses what would not work, in words", function()
        local cases = {
            { "method: GET", "expected one of: POST, PUT, PATCH" },
            { "content_type: text/plain", "expected one of: application/json" },
            { "timeout: 0", "value should be between 1 and" },
            { "queue: {max_batch_size: 0}", "value should be between 1 and 1000000" },
            { "queue: {concurrency_limit: 2}", "expected one of: -1, 1" },
            { "queue: {max_tries: 2}", "unknown field" },
            { "headers: {host: a}", "cannot contain 'Host' header" },
            { "headers: {CONTENT-length: '1'}", "cannot contain 'Content-Length' header" },
            { "headers: {Content-Type: a}", "cannot contain 'Content-Type' header" },
            { "headers: {transfer-encoding: a}", "cannot contain 'Transfer-Encoding' header" },
            { 'headers: {X-A: "a\\r\\nb"}', "must not contain a line break" },
            { "custom_fields_by_lua: {a: return return}", "Error parsing function" },
            { "custom_fields_by_lua: {a: ''}", "length must be at least 1" },
        }
        for _, case in ipairs(cases) do
            local found = errors(case[1])
            assert.truthy(found:find(case[2], 1, true), case[1] .. ": " .. found)
        end
    end)

    it("refuses two kinds of authorization at once", function()
        local found = support.errors([[
plugins:
- name: http-log
  config: { http_endpoint: "http://a:b@c/", headers: { authorization: x } }
]])
        assert.truthy(found:find("specifying both an 'Authorization' header", 1, true), found)
    end)
end)

describe("sluice.http_endpoint", function()
    it("splits URLs", function()
        local cases = {
            { "http://a", "http", "a", 80, "/", "a" },
            { "HTTPS://a/", "https", "a", 443, "/", "a" },
            { "http://a:81/b/c?d=e", "http", "a", 81, "/b/c?d=e", "a:81" },
            { "https://a:443?x", "https", "a", 443, "/?x", "a" },
            { "http://u:p@a:8/b", "http", "a", 8, "/b", "a:8", "u:p" },
            { "http://u@h@a/", "http", "a", 80, "/", "a", "u@h" },
            { "http://[::1]:9/", "http", "::1", 9, "/", "[::1]:9" },
            { "https://[2001:db8::1]", "https", "2001:db8::1", 443, "/", "[2001:db8::1]" },
        }
        for _, case in ipairs(cases) do
            assert.same({
                scheme = case[2],
                host = case[3],
                port = case[4],
                target = case[5],
                authority = case[6],
                userinfo = case[7],
            }, endpoint.parse(case[1]))
        end
    end)

    it("says what is wrong", function()
        local cases = {
            { "a", "missing scheme in url" },
            { "ftp://a/", "scheme 'ftp' is not supported (expected http or https)" },
            { "http://", "missing host in url" },
            { "http://:80/", "missing host in url" },
            { "http://a:b/", "invalid address in url" },
            { "http://a:70000/", "invalid port in url" },
            { "http://a/ b", "invalid url" },
            { "http://a/#b", "invalid url" },
        }
        for _, case in ipairs(cases) do
            local parsed, err = endpoint.parse(case[1])
            assert.is_nil(parsed, case[1])
            assert.equal(case[2], err)
        end
    end)
end)

describe("plugins.http-log.schema", function()
    it("joins the values that a header had before format 3.0", function()
        local migrate = require("plugins.http-log.schema").migrate
        local old = { timeout = 1, headers = { a = { "x", "y" }, b = {}, c = "z", d = { 1 } } }
        assert.same(
            { timeout = 1, headers = { a = "x, y", b = {}, c = "z", d = { 1 } } },
            migrate(old)
        )
        assert.same({ "x", "y" }, old.headers.a)
        assert.same({ headers = "none" }, migrate({ headers = "none" }))
    end)
end)
