--- Errors of declarative files: all at once, each with its path and reason.

local config = require("gateway.config")
local support = require("test.unit.support.config")

local UNSUPPORTED = "this collection is not supported by this version, or its plugin is not loaded"
local ID = "3c45ea7d-1e22-587c-ad2f-e4631336c6ba"

-- body of a 3.0 file -> the errors, one a line
local CASES = {
    {
        "the issue's example",
        "services: [{host: a}, {host: b}, {host: c, routes: [{paths: [/ok, bad]}]}]",
        "services[2].routes[0].paths[1]: should start with: / (fixed path) or ~/ (regex path)",
    },
    {
        "many at once",
        "services: [{name: 'a b', prot: x}, {host: h, port: 99999}]\nroutes: [{paths: [/], "
            .. "service: none}]\nfoo: 1",
        "services[0].name: invalid value 'a b': the only accepted ascii characters are "
            .. "alphanumerics or ., -, _, and ~\n"
            .. "services[0].host: required field missing\n"
            .. "services[0].prot: unknown field\n"
            .. "services[1].port: value should be between 0 and 65535\n"
            .. "routes[0].service: invalid reference 'service: none' (no such entry in "
            .. "'services')\nfoo: unknown field",
    },
    {
        "more than one of the same entity",
        "routes: [{name: r, paths: [/]}, {name: r, paths: [bad], service: none}, {name: q, "
            .. "paths: [/], prot: 1, service: {name: x}}, {name: s, paths: [/], service: [1]}]",
        "routes[1].paths[0]: should start with: / (fixed path) or ~/ (regex path)\n"
            .. "routes[2].prot: unknown field\n"
            .. "routes[3].service: expected a reference: a name, an id, { id = ... } or "
            .. "{ name = ... }\n"
            .. "routes[1].service: invalid reference 'service: none' (no such entry in "
            .. "'services')\n"
            .. "routes[1].name: uniqueness violation: 'routes' entity with name set to 'r' already "
            .. "declared (routes[0])\n"
            .. "routes[2].service: invalid reference 'service: x' (no such entry in 'services')",
    },
    {
        "an answer that HTTP does not have",
        "plugins: [{name: rate-limiting, config: {hour: 1, error_code: 101}}]",
        "plugins[0].config.error_code: value should be between 200 and 599",
    },
    {
        "a regex that unfolds",
        "routes: [{paths: ['~/((a{50}){50}){9}', '~/((a{9}){9}){9}']}]",
        "routes[0].paths[0]: invalid regex: '/((a{50}){50}){9}' (PCRE returned: too large once its "
            .. "repetitions are unfolded)",
    },
    {
        "a regex for a header",
        "routes: [{headers: {x: [a, '~*(', '~*^a$', '~b(']}}]",
        "routes[0].headers.x[1]: invalid regex: '~*(' (PCRE returned: missing closing parenthesis "
            .. "at offset 1)",
    },
    {
        "hosts and paths that multiply",
        "routes: [{hosts: [" .. ("a, "):rep(101) .. "], paths: [" .. ("/, "):rep(100) .. "]}]",
        "routes[0]: too many combinations of hosts and paths: 10100, with the routes before it "
            .. "10100; at most 10000 in a file of this size",
    },
    {
        "a limit without an end",
        "plugins: [{name: rate-limiting, config: {hour: .inf}}]",
        "plugins[0].config.hour: expected a number",
    },
    { "a collection that is no array", "services: {host: a}", "services: expected an array" },
    { "a collection that is a text", "consumers: alice", "consumers: expected an array" },
    {
        "a nested collection that is no array",
        "services: [{host: a, routes: x}]",
        "services[0].routes: expected an array",
    },
    {
        "an entity that is a text",
        "services: [a]",
        "services[0]: expected a record, found a string",
    },
    {
        "an entity that is a number",
        "services: [1]",
        "services[0]: expected a record, found a number",
    },
    {
        "an entity without the ':' of its field",
        "services: [name a]",
        "services[0]: expected a record, found a string (is a ':' missing after 'name'?)",
    },
    {
        "an entity without the space after its ':'",
        "consumers: [{username: a, keyauth_credentials: ['key:b']}]",
        "consumers[0].keyauth_credentials[0]: expected a record, found a string (is a space "
            .. "missing after 'key:'?)",
    },
    {
        "an entity that is a text of two words",
        "services: [secret name]",
        "services[0]: expected a record, found a string",
    },
    { "an entity that is an array", "services: [[a]]", "services[0]: expected a record" },
    { "an entity that is null", "services: [~]", "services[0]: required field missing" },
    {
        "a remark of the wrong type",
        "services: [{host: a, _comment: 1}]",
        "services[0]._comment: expected a string",
    },
    {
        "an unknown collection in an entity",
        "routes: [{paths: [/], targets: []}]",
        "routes[0].targets: unknown field",
    },

    {
        "collections of later versions",
        "licenses: [{payload: x}]",
        "licenses: " .. UNSUPPORTED,
    },
    {
        "their credentials",
        "consumers: [{username: a, oauth2_tokens: [{key: x}]}]",
        "consumers[0].oauth2_tokens: " .. UNSUPPORTED,
    },
    {
        "their other credentials",
        "consumers: [{username: a, mtls_auth_credentials: [{}], oauth2_credentials: [{}]}]",
        "consumers[0].mtls_auth_credentials: "
            .. UNSUPPORTED
            .. "\nconsumers[0].oauth2_credentials: "
            .. UNSUPPORTED,
    },
    {
        "a field that is called as one of them",
        "routes: [{paths: [/], snis: [a:1]}]",
        "routes[0].snis[0]: must not have a port",
    },
    {
        "defaults of what makes an entity one of its own",
        "_info: {defaults: {service: {name: a}, target: {target: b}, route: {id: c}}}",
        "_info.defaults.service.name: must not be one of: id, name\n"
            .. "_info.defaults.route.id: must not be one of: id, name\n"
            .. "_info.defaults.target.target: must not be one of: id, target",
    },
    {
        "a part of _plugin_configs that is not there",
        "_plugin_configs: {a: {minute: 1}}\nplugins: [{name: rate-limiting, _config: b}]\n"
            .. "services: [{name: a, host: h, _config: a}]",
        "plugins[0]._config: _plugin_configs has no 'b'\n"
            .. "plugins[0]: at least one of these fields must be non-empty: 'config.second', "
            .. "'config.minute', 'config.hour', 'config.day', 'config.month', 'config.year'\n"
            .. "services[0]._config: unknown field",
    },
    {
        "entities of several workspaces",
        "services: [{name: a, host: h, ws_id: x, routes: [{paths: [/], ws_id: y}]}]",
        "services[0].routes[0].ws_id: the file has entities of several workspaces; use a file for "
            .. "each",
    },
    {
        "a disabled plugin that is wrong",
        "plugins: [{name: rate-limiting, enabled: false, config: {policy: redis, hour: x}}]",
        "plugins[0].config.hour: expected a number\nplugins[0].config.policy: policy 'redis' is "
            .. "not supported by this version, only 'local' is",
    },

    {
        "an unknown plugin",
        "plugins: [{name: nope, config: {a: 1}}]",
        "plugins[0].name: plugin 'nope' not installed",
    },
    {
        "an unknown plugin with other errors",
        "plugins: [{name: nope, x: 1}]",
        "plugins[0].name: plugin 'nope' not installed\nplugins[0].x: unknown field",
    },
    {
        "a plugin without a name",
        "plugins: [{config: {}}]",
        "plugins[0].name: required field missing",
    },
    {
        "a plugin's name that is a number",
        "plugins: [{name: 1}]",
        "plugins[0].name: expected a string",
    },
    {
        "a plugin's unknown field",
        "plugins: [{name: key-auth, config: {keynames: [a]}}]",
        "plugins[0].config.keynames: unknown field",
    },
    {
        "a plugin's wrong field",
        "services: [{host: a, plugins: [{name: key-auth, config: {key_names: [a, 'b c']}}]}]",
        "services[0].plugins[0].config.key_names[1]: bad header name 'b c', allowed characters "
            .. "are A-Z, a-z, 0-9, '_', and '-'",
    },
    {
        "a plugin's scope",
        "consumers: [{username: a, plugins: [{name: key-auth}]}]",
        "consumers[0].plugins[0].consumer: value must be null",
    },
    {
        "a plugin's check",
        "plugins: [{name: rate-limiting}]",
        "plugins[0]: at least one of these fields must be non-empty: 'config.second', "
            .. "'config.minute', 'config.hour', 'config.day', 'config.month', 'config.year'",
    },
    {
        "a plugin's validator",
        "plugins: [{name: rate-limiting, config: {minute: 5, hour: 2}}]",
        "plugins[0].config: The limit for hour(2.0) cannot be lower than the limit for minute(5.0)",
    },

    {
        "a dangling reference by id",
        "routes: [{paths: [/], service: {id: " .. ID .. "}}]",
        "routes[0].service: invalid reference 'service: "
            .. ID
            .. "' (no such entry in 'services')",
    },
    {
        "a reference of a wrong type",
        "routes: [{paths: [/], service: 5}]",
        "routes[0].service: expected a reference: a name, an id, { id = ... } or { name = ... }",
    },
    {
        "a missing reference",
        "targets: [{target: a}]",
        "targets[0].upstream: required field missing",
    },
    {
        "a reference where nesting says it",
        "services: [{name: s, host: a, routes: [{paths: [/], service: t}]}]",
        "services[0].routes[0].service: value must be null: the entity is nested in its service",
    },
    {
        "a reference to an entity with errors: once",
        "services: [{name: s, host: 'a b'}]\nroutes: [{paths: [/], service: s}]",
        "services[0].host: invalid value: a b",
    },
    {
        "entities in an entity with errors: once",
        "services: [{host: 'a b', routes: [{paths: [/], plugins: [{name: key-auth}]}]}]",
        "services[0].host: invalid value: a b",
    },

    {
        "a credential without a key",
        "consumers: [{username: a, keyauth_credentials: [{}]}]",
        "consumers[0].keyauth_credentials[0].key: required field missing: a declarative file "
            .. "must give it",
    },
    {
        "names that stand twice",
        "services: [{name: s, host: a}, {name: s, host: b}]",
        "services[1].name: uniqueness violation: 'services' entity with name set to 's' already "
            .. "declared (services[0])",
    },
    {
        "an id twice, and a plugin of the second one",
        "services: [{name: a, host: h, id: "
            .. ID
            .. "}, {name: b, host: h, id: "
            .. ID
            .. "}]\n"
            .. "plugins: [{name: cors, service: b}]",
        "services[1].id: uniqueness violation: 'services' entity with id set to '"
            .. ID
            .. "' already declared (services[0])",
    },
    {
        "ids that stand twice",
        "services: [{id: " .. ID .. ", host: a}, {id: " .. ID .. ", host: b}]",
        "services[1].id: uniqueness violation: 'services' entity with id set to '"
            .. ID
            .. "' already declared (services[0])",
    },
    {
        "keys that stand twice are not shown",
        "consumers: [{username: a, keyauth_credentials: [{key: secret}]}, {username: b, "
            .. "keyauth_credentials: [{key: secret}]}]",
        "consumers[1].keyauth_credentials[0].key: uniqueness violation: 'keyauth_credentials' "
            .. "entity with key set to '***' already declared "
            .. "(consumers[0].keyauth_credentials[0])",
    },
    {
        "custom ids that stand twice",
        "consumers: [{username: a, custom_id: x}, {username: b, custom_id: x}]",
        "consumers[1].custom_id: uniqueness violation: 'consumers' entity with custom_id set to "
            .. "'x' already declared (consumers[0])",
    },
    {
        "targets that stand twice",
        "upstreams: [{name: u, targets: [{target: a:8000}, {target: a}]}]",
        "upstreams[0].targets[1]: uniqueness violation: 'targets' entity with the same "
            .. "upstream, target already declared (upstreams[0].targets[0])",
    },
    {
        "plugins that stand twice",
        "plugins: [{name: key-auth}, {name: key-auth, instance_name: x}]",
        "plugins[1]: uniqueness violation: 'plugins' entity with the same name, route, service, "
            .. "consumer, consumer_group already declared (plugins[0])",
    },
}

describe("errors of gateway.config", function()
    for _, case in ipairs(CASES) do
        it(case[1], function()
            assert.equal(case[3], support.errors(case[2]))
        end)
    end

    it("allow what is alike in another place", function()
        assert.equal(
            "",
            support.errors([[
upstreams:
- { name: u, targets: [{ target: a }] }
- { name: v, targets: [{ target: a }] }
services:
- { name: same, host: u, plugins: [{ name: key-auth }] }
routes:
- { name: same, paths: [/], plugins: [{ name: key-auth }] }
plugins:
- { name: key-auth }
]])
        )
    end)

    it("are empty collections of later versions not", function()
        assert.equal(
            "",
            support.errors("keys: []\nlicenses: ~\nconsumers: [{username: a, oauth2_tokens: []}]")
        )
    end)

    for text, message in pairs({
        ["services: []"] = "_format_version: required field missing",
        ["_format_version: 3.0"] = "_format_version: expected a string",
        ["_format_version: '4.0'"] = "_format_version: expected one of: 1.1, 2.1, 3.0",
        ["_format_version: '3.0'\n_transform: maybe"] = "_transform: expected a boolean",
        [""] = "the file is empty",
        ["- 1"] = "expected a mapping at the top, such as `services:`",
    }) do
        it(("%q"):format(text), function()
            local snapshot, errors = config.parse(text, "yaml", support.registry)
            assert.is_nil(snapshot)
            assert.equal(message, support.lines(errors))
        end)
    end

    it("old paths of wrong types are left to the schema", function()
        for body, message in pairs({
            ["routes: [{paths: x}]"] = "routes[0].paths: expected an array",
            ["routes: [{paths: {a: /}}]"] = "routes[0].paths: expected an array",
            ["routes: [{paths: [/, 1]}]"] = "routes[0].paths[1]: expected a string",
            ["routes: [{paths: [b(c)]}]"] = "routes[0].paths[0]: should start with: "
                .. "/ (fixed path) or ~/ (regex path)",
        }) do
            assert.equal(message, support.errors(body, "2.1"))
        end
    end)
end)

describe("warnings", function()
    local BESIDE = "services: [{host: y, port: 9000, path: /, url: 'http://x'}, "
        .. "{port: 80, url: 'http://x'}, {host: x, port: 9000}]"

    it("are about what a url overrides", function()
        local snapshot = assert(support.parse(BESIDE))
        assert.same({
            "line 2: services[0].host: ignored: url already sets it",
            "line 2: services[0].port: ignored: url already sets it",
            "line 2: services[0].path: ignored: url already sets it",
        }, snapshot.warnings)
        assert.same({ "x", 80 }, { snapshot.services[1].host, snapshot.services[1].port })
    end)

    it("are there beside errors", function()
        local text = '_format_version: "3.0"\n' .. BESIDE .. "\nroutes: [{paths: [a]}]\n"
        local _, errors = config.parse(text, "yaml", support.registry)
        assert.equal(1, #errors)
        assert.equal(3, #errors.warnings)
    end)

    it("name the line and the entity, in the order of lines, however they are written", function()
        local json = '{"_format_version": "3.0",\n"routes": [\n{"name": "r", "paths": ["/a+"]}],\n'
            .. '"services": [\n{"name": "s",\n"port": 1,\n"url": "https://x"}]}'
        local snapshot = assert(config.parse(json, "json", support.registry))
        local regex = "'/a+' looks like a regex, but without a leading ~ it is a fixed path"
        local unverified = "the certificate of the upstream is not verified"
        assert.same({
            'line 3: routes[0] "r".paths[0]: ' .. regex,
            'line 5: services[0] "s".tls_verify: ' .. unverified,
            'line 6: services[0] "s".port: ignored: url already sets it',
        }, snapshot.warnings)
        local one_line = assert(config.parse(json:gsub("\n", ""), "json", support.registry))
        assert.same('routes[0] "r".paths[0]: ' .. regex, one_line.warnings[2])
    end)

    it("are of the first entity where others are like it", function()
        local function warned(count)
            local lines = ("- {url: 'https://x'}\n"):rep(count)
            return support.parse("services:\n" .. lines).warnings
        end
        local said =
            "line 3: services[0].tls_verify: the certificate of the upstream is not verified"
        assert.same({ said }, warned(1))
        assert.same({ said .. "; the same for 1 other" }, warned(2))
        assert.same({ said .. "; the same for 2 others" }, warned(3))
    end)

    it("have no lines where that takes too long: a large text in the gateway", function()
        local text = "routes: [{paths: [/a+]}]\n" .. ("# comment\n"):rep(420000)
        local source = '_format_version: "3.0"\n' .. text
        local function first(pause)
            local opts = { pause = pause }
            return config.parse(source, "yaml", support.registry, opts).warnings[1]
        end
        assert.matches("^line 2: routes%[0%]%.paths", first(nil))
        assert.matches("^routes%[0%]%.paths", first(function() end))
    end)
end)
