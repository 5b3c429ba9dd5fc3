--- References to the environment, and what older and full dumps of Kong hold.

local config = require("gateway.config")
local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local references = require("gateway.config.references")
local schema = require("gateway.schema")
local support = require("test.unit.support.config")
local vault = require("gateway.config.vault")

-- What every process of a test has in its environment.
local PATH = assert(os.getenv("PATH"))

local METHOD = "plugins[0].config.method"

local function look_up(values)
    return function(reference)
        return values[reference], "nothing under " .. reference
    end
end

local function parse(body, values)
    local text = "_format_version: '3.0'\n" .. body
    return config.parse(text, "yaml", support.registry, { vault = look_up(values or {}) })
end

local function http_log(settings)
    return "plugins: [{name: http-log, config: {" .. settings .. "}}]"
end

describe("gateway.config.vault", function()
    local get = vault.new({ "PATH", "SLUICE_TEST_UNSET" })

    it("reads a variable, its name in any case, with dashes", function()
        assert.equal(PATH, get("{vault://env/PATH}"))
        assert.equal(PATH, get("{vault://env/path}"))
        assert.same(
            { nil, "the environment variable 'SLUICE_TEST_UNSET' is not set" },
            { get("{vault://env/sluice-test-unset}") }
        )
    end)

    it("reads only what the setting names", function()
        assert.same({
            nil,
            "the environment variable 'HOME' is not allowed; add it to the setting vault_env",
        }, { get("{vault://env/HOME}") })
    end)

    it("says where there is no member", function()
        assert.same(
            { nil, "the environment variable 'PATH' is not a JSON object with a text 'key'" },
            { get("{vault://env/path/key}") }
        )
    end)

    for _, reference in ipairs({
        "{vault://env/}",
        "{vault://env/a?b=c}",
        "{vault:///a}",
        "{vault://env/../a}",
        "{vault://e.v/a}",
    }) do
        it("refuses " .. reference, function()
            assert.same({
                nil,
                "expected {vault://PREFIX/NAME} or {vault://PREFIX/NAME/KEY}",
            }, { get(reference) })
        end)
    end

    it("puts what a vault's variables begin with before the name", function()
        local function begin_of(prefix)
            return ({ short = "pa", whole = "", other = "HO-" })[prefix]
        end
        assert.equal(PATH, get("{vault://short/th}", begin_of))
        assert.equal(PATH, get("{vault://whole/path}", begin_of))
        assert.same(
            { nil, "there is no vault with the prefix 'aws'" },
            { get("{vault://aws/path}", begin_of) }
        )
        assert.same({
            nil,
            "the environment variable 'HO_ME' of the vault 'other' is not allowed; add it to the "
                .. "setting vault_env",
        }, { get("{vault://other/me}", begin_of) })
    end)

    it("asks no vault for 'env'", function()
        assert.equal(PATH, get("{vault://env/path}", error))
    end)
end)

describe("a vault of the file", function()
    local VAULTS = "vaults: [{name: env, prefix: my-env, config: {prefix: PA}}, "
        .. "{name: env, prefix: whole}]\n"
    local log = http_log("http_endpoint: 'http://a', headers: {A: '{vault://my-env/th}'}")

    local function parse_with(body)
        local text = "_format_version: '3.0'\n" .. body
        return config.parse(text, "yaml", support.registry, { vault = vault.new({ "PATH" }) })
    end

    it("is looked up, and workers find what it stood for", function()
        for _, body in ipairs({ VAULTS .. log, log .. "\n" .. VAULTS }) do
            local plugin = assert(parse_with(body)).plugins[1]
            assert.equal(PATH, plugin.config.headers.A)
            assert.same({ ["my-env"] = "PA" }, plugin._vaults)
            local text = assert(entity_text.encode(references.put(plugin)))
            assert.is_nil(entity_text.as_file(text):find("_vaults", 1, true))
            local shown = references.put(plugin)
            shown._vaults = nil
            assert.equal(entity_text.encode(shown), entity_text.as_file(text))
            local decoded = entity_text.decode(text)
            local resolved = references.resolve(text, decoded, vault.new({ "PATH" }))
            assert.equal(PATH, resolved.config.headers.A)
        end
    end)

    it("is one that is right, and there", function()
        for body, message in pairs({
            [log] = "there is no vault with the prefix 'my-env'",
            ["vaults: {my-env: 1}\n" .. log] = "there is no vault with the prefix 'my-env'",
            ["vaults: [1, {prefix: 1}, {prefix: my-env, name: env, config: 1}]\n" .. log] = "the "
                .. "environment variable 'TH' of the vault 'my-env' is not allowed; add it to "
                .. "the setting vault_env",
        }) do
            local _, errors = parse_with(body)
            local found = {}
            for _, err in ipairs(errors) do
                found[err.message] = true
            end
            assert.is_true(found[message], support.lines(errors))
        end
    end)

    it("has no prefix that shadows another, and refers to none", function()
        local begin = "vaults: [{name: env, prefix: a1, config: {prefix: '{vault://a1/b}'}}]"
        for body, path in pairs({
            [begin] = "vaults[0].config.prefix",
            ["vaults: [{name: env, prefix: env}]"] = "vaults[0].prefix",
            ["vaults: [{name: env, prefix: Env}]"] = "vaults[0].prefix",
            ["vaults: [{name: env, prefix: env/path}]"] = "vaults[0].prefix",
            ["vaults: [{name: '{vault://a1/b}', prefix: a1}]"] = "vaults[0].name",
            ["vaults: [{name: env, prefix: '{vault://env/path}'}]"] = "vaults[0].prefix",
            ["vaults: [{name: env, prefix: a1}, {name: env, prefix: a1}]"] = "vaults[1].prefix",
            ["plugins: [{name: key-auth, _vaults: {a: B}}]"] = "plugins[0]._vaults",
        }) do
            local _, errors = parse_with(body)
            assert.equal(path, errors and errors[1].path, body)
        end
    end)
end)

describe("a reference", function()
    it("is looked up where Kong does, and shown as it stands in the file", function()
        local body =
            http_log("http_endpoint: '{vault://env/u}', headers: {A: '{vault://env/t}', B: b}")
        local snapshot = assert(parse(body, {
            ["{vault://env/u}"] = "http://user:secret@log/in",
            ["{vault://env/t}"] = "token",
        }))
        local plugin = snapshot.plugins[1]
        assert.equal("http://user:secret@log/in", plugin.config.http_endpoint)
        assert.same({ A = "token", B = "b" }, plugin.config.headers)

        local definition = entities.for_plugin(support.registry:get("http-log"))
        local shown = schema.to_json_entity(definition, references.put(plugin))
        assert.equal("{vault://env/u}", shown.config.http_endpoint)
        assert.same({ A = "{vault://env/t}", B = "b" }, shown.config.headers)
        assert.is_nil(shown.__references)

        local text = '{"config":{"a":{"b":"{vault://env/t}"}}}'
        local entity = { config = { a = { b = "{vault://env/t}" } } }
        local values = look_up({ ["{vault://env/t}"] = "token" })
        assert.equal("token", references.resolve(text, entity, values).config.a.b)
        entity = { config = { a = { b = "{vault://env/t}" } } }
        assert.same(
            { nil, "nothing under {vault://env/t}" },
            { references.resolve(text, entity, look_up({})) }
        )
    end)

    it("takes part in the checks of several fields", function()
        local _, errors = parse(
            http_log("http_endpoint: '{vault://env/u}', headers: {Authorization: x}"),
            { ["{vault://env/u}"] = "http://user:secret@log/in" }
        )
        assert.matches("specifying both an 'Authorization' header", errors[1].message, 1, true)
    end)

    it("is refused in every other field", function()
        for body, path in pairs({
            ["services: [{host: '{vault://env/u}'}]"] = "services[0].host",
            ["services: [{host: a, tags: ['{vault://env/u}']}]"] = "services[0].tags[0]",
            ["consumers: [{username: '{vault://env/u}'}]"] = "consumers[0].username",
            [http_log("http_endpoint: 'http://a', method: '{vault://env/u}'")] = METHOD,
        }) do
            local _, errors = parse(body, { ["{vault://env/u}"] = "a" })
            assert.same({ path, "a vault reference is not allowed in this field" }, {
                errors[1].path,
                errors[1].message,
            })
        end
    end)

    it("to nothing is an error that says so", function()
        local _, errors = parse(http_log("http_endpoint: '{vault://env/u}'"))
        assert.same({ "plugins[0].config.http_endpoint", "nothing under {vault://env/u}" }, {
            errors[1].path,
            errors[1].message,
        })
    end)

    it("to what is not right there does not show it", function()
        local wrong = { "s3cret://x", "", "http://s3cret:99999/", "{vault://env/s3cret}" }
        for _, value in ipairs(wrong) do
            local _, errors =
                parse(http_log("http_endpoint: '{vault://env/u}'"), { ["{vault://env/u}"] = value })
            assert.equal(1, #errors)
            assert.equal(
                "what {vault://env/u} refers to is not valid in this field",
                errors[1].message
            )
        end
    end)
end)

-- config of a rate-limiting plugin, as dumps of Kong have it
local DUMPS = {
    ["2.x"] = "second: null, minute: 5, hour: null, day: null, month: null, year: null, "
        .. "limit_by: consumer, header_name: null, path: null, policy: local, "
        .. "fault_tolerant: true, redis_host: null, redis_port: 6379, redis_username: null, "
        .. "redis_password: null, redis_ssl: false, redis_ssl_verify: false, "
        .. "redis_server_name: null, redis_timeout: 2000, redis_database: 0, "
        .. "hide_client_headers: false",
    ["3.4"] = "minute: 5, policy: local, redis_host: redis, redis_password: '', redis_port: 6380, "
        .. "sync_rate: -1, error_code: 429, error_message: API rate limit exceeded",
    ["3.6"] = "minute: 5, policy: local, sync_rate: -1, redis_host: null, redis_port: 6379, "
        .. "redis: {host: null, port: 6379, timeout: 2000, username: null, password: null, "
        .. "database: 0, ssl: false, ssl_verify: false, server_name: null}",
    ["no redis"] = "minute: 5, policy: local, redis: null, sync_rate: null",
    ["Enterprise"] = "minute: 5, policy: local, redis: {cluster_max_redirections: 5, "
        .. "cluster_nodes: null, connect_timeout: 2000, connection_is_proxied: false, "
        .. "keepalive_backlog: null, keepalive_pool_size: 256, read_timeout: 2000, "
        .. "send_timeout: 2000, sentinel_master: null, sentinel_nodes: null, "
        .. "sentinel_password: null, sentinel_role: null, sentinel_username: null}",
    ["a cloud's servers"] = "minute: 5, policy: local, redis: {cloud_authentication: "
        .. "{auth_provider: null, aws_region: null, aws_secret_access_key: '{vault://env/p}'}}",
    ["no cloud's"] = "minute: 5, policy: local, redis: {cloud_authentication: null}",
    ["a secret"] = "minute: 5, policy: local, redis: {host: a, password: '{vault://env/p}'}",
    ["a former secret"] = "minute: 5, policy: local, redis_password: '{vault://env/p}'",
}

describe("a dump of rate-limiting is accepted:", function()
    for name, settings in pairs(DUMPS) do
        it(name, function()
            local snapshot, errors = parse(
                "plugins: [{name: rate-limiting, config: {" .. settings .. "}}]",
                { ["{vault://env/p}"] = "s3cret" }
            )
            assert.equal("", support.lines(errors or {}))
            assert.equal(5, snapshot.plugins[1].config.minute)
            local definition = entities.for_plugin(support.registry:get("rate-limiting"))
            local shown = schema.to_json_entity(definition, references.put(snapshot.plugins[1]))
            assert.is_nil(require("gateway.schema.json").encode(shown):find("s3cret"))
        end)
    end

    it("and its former fields are what they stand for", function()
        local body = "plugins: [{name: rate-limiting, config: {%s}}]"
        local redis = assert(parse(body:format(DUMPS["3.4"]))).plugins[1].config.redis
        assert.same({ "redis", 6380, "" }, { redis.host, redis.port, redis.password })
    end)

    it("but not one of another policy", function()
        for _, policy in ipairs({ "redis", "cluster" }) do
            assert.equal(
                "plugins[0].config.policy: policy '"
                    .. policy
                    .. "' is not supported by this version, only 'local' is",
                support.errors(
                    "plugins: [{name: rate-limiting, config: {minute: 5, redis_host: a, policy: "
                        .. policy
                        .. "}}]"
                )
            )
        end
    end)
end)

describe("a full dump is accepted:", function()
    for name, body in pairs({
        ["a service and a route"] = [[
services:
- {id: null, name: s, created_at: null, retries: null, protocol: http, host: h, port: 80,
   path: null, connect_timeout: null, write_timeout: null, read_timeout: null, tags: null,
   client_certificate: null, tls_verify: null, tls_verify_depth: null, ca_certificates: null,
   enabled: true, routes: [{name: r, protocols: [http, https], methods: null, hosts: null,
   paths: [/], headers: null, https_redirect_status_code: 426, regex_priority: 0,
   strip_path: true, path_handling: v0, preserve_host: false, request_buffering: true,
   response_buffering: true, snis: null, sources: null, destinations: null, tags: null}]}
]],
        ["an upstream"] = [[
upstreams:
- {name: u, algorithm: round-robin, hash_on: none, hash_fallback: none, hash_on_header: null,
   hash_fallback_header: null, hash_on_cookie: null, hash_on_cookie_path: /, slots: 10000,
   healthchecks: null, tags: null, host_header: null, client_certificate: null,
   hash_on_query_arg: null, hash_on_uri_capture: null, use_srv_name: false, targets: null}
]],
        ["key-auth"] = [[
plugins:
- {name: key-auth, instance_name: null, service: null, route: null, consumer: null,
   enabled: true, protocols: [grpc, grpcs, http, https], tags: null, ordering: null,
   config: {key_names: [apikey], hide_credentials: false, anonymous: null, key_in_header: true,
   key_in_query: true, key_in_body: false, run_on_preflight: true, realm: null}}
]],
        ["http-log"] = [[
plugins:
- {name: http-log, config: {http_endpoint: 'http://a', method: POST, timeout: 10000,
   content_type: application/json, keepalive: 60000, retry_count: 10, queue_size: 1,
   flush_timeout: 2, headers: null, custom_fields_by_lua: {}, queue: {max_batch_size: 1,
   max_coalescing_delay: 1, max_entries: 10000, max_bytes: null, max_retry_time: 60,
   initial_retry_delay: 0.01, max_retry_delay: 60, concurrency_limit: 1}}}
]],
    }) do
        it(name, function()
            assert.equal("", support.errors(body))
        end)
    end
end)

describe("references that C looks up", function()
    it("are to the environment, whatever the vault", function()
        local function of(value)
            return references.of_environment(value, { my = "APP_" })
        end
        assert.equal("{vault://env/APP_tls-key}", of("{vault://my/tls-key}"))
        assert.equal("{vault://env/APP_tls/key}", of("{vault://my/tls/key}"))
        for _, value in ipairs({ "{vault://env/tls-key}", "{vault://no/key}", "PEM", "" }) do
            assert.equal(value, of(value))
        end
        assert.equal("{vault://my/a}", references.of_environment("{vault://my/a}", nil))
        assert.is_nil(of(nil))
    end)
end)
