--- The entities' schemas: which values each field takes, and what users are told.

local entities = require("gateway.entities")
local schema = require("gateway.schema")
local pem = require("test.unit.support.pem")
local values = require("test.unit.support.field_values")

require("test.unit.support.config") -- loads the plugins, which add kinds

local cert, private, public = pem.pair()

-- The least that makes an entity of the kind valid.
local MINIMAL = {
    services = { host = "a.example" },
    routes = { paths = { "/" } },
    upstreams = { name = "up" },
    targets = { target = "a:1", upstream = "up" },
    consumers = { username = "u" },
    keyauth_credentials = { key = "k", consumer = "u" },
    basicauth_credentials = { username = "n", password = "p", consumer = "u" },
    jwt_secrets = { key = "k", consumer = "u" },
    hmacauth_credentials = { username = "n", consumer = "u" },
    acls = { group = "g", consumer = "u" },
    plugins = { name = "p" },
    certificates = { cert = cert, key = private },
    snis = { name = "a.example", certificate = "c" },
    ca_certificates = { cert = pem.pair("ec", { is_ca = true }) },
    consumer_groups = { name = "g" },
    consumer_group_consumers = { consumer_group = "g", consumer = "u" },
    vaults = { name = "env", prefix = "my-env" },
    key_sets = {},
    keys = { kid = "k", pem = { public_key = public } },
}

local function told(errors)
    local out = {}
    for i, err in ipairs(errors) do
        out[i] = { err.path, err.message }
    end
    return out
end

local function errors_with(kind, changes)
    local value = {}
    for key, given in pairs(MINIMAL[kind]) do
        value[key] = given
    end
    for key, given in pairs(changes) do
        value[key] = given
    end
    local filled, errors = schema.validate(entities.get(kind), value, "")
    local lines = {}
    for i, err in ipairs(errors or {}) do
        lines[i] = err.path .. ": " .. err.message
    end
    return table.concat(lines, "\n"), filled
end

describe("entity schemas", function()
    for kind, fields in pairs(values) do
        for field, cases in pairs(fields) do
            it(("%s.%s"):format(kind, field), function()
                for _, value in ipairs(cases.good) do
                    assert.equal("", (errors_with(kind, { [field] = value })), tostring(value))
                end
                for _, case in ipairs(cases.bad) do
                    local want = (case[3] or field) .. ": " .. case[2]
                    assert.equal(want, (errors_with(kind, { [field] = case[1] })))
                end
            end)
        end
    end

    for kind, value in pairs(MINIMAL) do
        it(kind .. ": the least that is needed is needed", function()
            assert.equal("", (errors_with(kind, {})))
            local optional = { username = true, paths = true, pem = true }
            optional.key = kind == "keyauth_credentials" or kind == "jwt_secrets"
            for field in pairs(value) do
                local less = {}
                for key, given in pairs(value) do
                    less[key] = key ~= field and given or nil
                end
                local filled, errors = schema.validate(entities.get(kind), less, "")
                if not optional[field] then
                    assert.is_nil(filled)
                    assert.same({ { field, "required field missing" } }, told(errors))
                end
            end
        end)
    end

    it("a broken regex says what PCRE says", function()
        local errors = errors_with("routes", { paths = { "~/a(" } })
        assert.matches(
            "^paths%[0%]: invalid regex: '/a%(' %(PCRE returned: .+ at offset 3%)$",
            errors
        )
    end)

    it("a route must match something", function()
        local https = "must set one of 'methods', 'hosts', 'headers', 'paths', 'snis' "
            .. "when 'protocols' is 'https'"
        local http =
            "must set one of 'methods', 'hosts', 'headers', 'paths' when 'protocols' is 'http'"
        local function check(value)
            local _, errors = schema.validate(entities.get("routes"), value, "r")
            return errors and told(errors)
        end
        assert.same({ { "r", https } }, check({}))
        assert.same({ { "r", https } }, check({ paths = {}, hosts = {} }))
        assert.same({ { "r", http } }, check({ protocols = { "http" } }))
        for field, value in pairs({
            hosts = { "a" },
            paths = { "/" },
            methods = { "GET" },
            headers = { a = { "b" } },
        }) do
            assert.is_nil(check({ [field] = value }))
        end
    end)

    it("a consumer has a name or an id of the user's", function()
        local function check(value)
            local _, errors = schema.validate(entities.get("consumers"), value, "c")
            return errors and told(errors)
        end
        local message = "at least one of these fields must be non-empty: 'custom_id', 'username'"
        assert.same({ { "c", message } }, check({}))
        assert.is_nil(check({ custom_id = "1" }))
    end)

    it("url stands for protocol, host, port and path", function()
        for url, want in pairs({
            ["http://a"] = { "http", "a", 80, nil },
            ["https://a"] = { "https", "a", 443, nil },
            ["https://a:8443/b/c"] = { "https", "a", 8443, "/b/c" },
            ["http://[::1]/"] = { "http", "::1", 80, "/" },
            ["http://a:/x"] = { "http", "a", 80, "/x" },
        }) do
            local _, service =
                errors_with("services", { host = "other", path = "/other", url = url })
            assert.same(want, { service.protocol, service.host, service.port, service.path }, url)
            assert.is_nil(service.url)
        end
    end)

    it("targets are written with a port", function()
        for given, want in pairs({
            ["a"] = "a:8000",
            ["a:1"] = "a:1",
            ["10.0.0.1"] = "10.0.0.1:8000",
            ["::1"] = "[::1]:8000",
            ["[::1]:80"] = "[::1]:80",
        }) do
            local _, target = errors_with("targets", { target = given })
            assert.equal(want, target.target)
        end
    end)

    it("fills Kong's defaults", function()
        local _, service = errors_with("services", {})
        assert.same({
            host = "a.example",
            protocol = "http",
            port = 80,
            retries = 5,
            connect_timeout = 60000,
            write_timeout = 60000,
            read_timeout = 60000,
            enabled = true,
        }, service)
        local _, route = errors_with("routes", {})
        assert.same({
            paths = { "/" },
            protocols = { "http", "https" },
            https_redirect_status_code = 426,
            strip_path = true,
            preserve_host = false,
            request_buffering = true,
            response_buffering = true,
            regex_priority = 0,
            path_handling = "v0",
        }, route)
        local _, target = errors_with("targets", {})
        assert.equal(100, target.weight)
        local _, upstream =
            errors_with("upstreams", { healthchecks = { active = { timeout = 3 } } })
        assert.equal(3, upstream.healthchecks.active.timeout)
        assert.equal(10, upstream.healthchecks.active.concurrency)
        assert.same({ 429, 500, 503 }, upstream.healthchecks.passive.unhealthy.http_statuses)
        assert.equal(10000, upstream.slots)
        assert.equal("round-robin", upstream.algorithm)
    end)

    it("every default is valid itself", function()
        for _, kind in ipairs(entities.kinds) do
            local _, filled = errors_with(kind, {})
            local again = schema.validate(entities.get(kind), filled, "")
            assert.same(filled, again)
        end
    end)

    it("has the kinds of plugins before what refers to all", function()
        assert.equal("plugins", entities.kinds[#entities.kinds])
        local count = #entities.kinds
        assert.is_true(entities.add(require("plugins.key-auth.daos")[1]))
        assert.equal(count, #entities.kinds)
        assert.equal("consumer", entities.children("consumers").keyauth_credentials)
        local id = { id = require("gateway.schema.typedefs").uuid }
        local other = { name = "services", primary_key = { "id" }, fields = { id } }
        assert.same({ nil, "the kind 'services' exists already" }, { entities.add(other) })
    end)

    describe("for_plugin", function()
        local plugin = {
            schema = {
                fields = {
                    { consumer = require("gateway.schema.typedefs").no_consumer },
                    {
                        config = {
                            type = "record",
                            required = true,
                            fields = { { n = { type = "integer", default = 1 } } },
                        },
                    },
                },
                entity_checks = { { at_least_one_of = { "config.n", "tags" } } },
            },
        }

        it("puts the plugin's fields over those of every plugin", function()
            local definition = entities.for_plugin(plugin)
            assert.same({ n = 1 }, schema.validate(definition, { name = "p" }, "").config)
            local _, errors =
                schema.validate(definition, { name = "p", consumer = "u", config = { m = 1 } }, "")
            assert.same({
                { "consumer", "value must be null" },
                { "config.m", "unknown field" },
            }, told(errors))
            assert.equal(#entities.get("plugins").fields, #definition.fields)
        end)

        it("is made once", function()
            assert.equal(entities.for_plugin(plugin), entities.for_plugin(plugin))
        end)
    end)
end)
