--- What decK makes of a file, and what Kong's own exports have beside entities.

local config = require("gateway.config")
local support = require("test.unit.support.config")

local function parse(text)
    local snapshot, errors = config.parse(text, "yaml", support.registry)
    return snapshot or error(config.format_errors(errors), 0)
end

describe("a file for decK", function()
    it("has defaults, below what entities give", function()
        local s = parse([[
_format_version: "3.0"
_info:
  defaults:
    service: {retries: 1, port: 9000, tags: [d]}
    route: {protocols: [https], strip_path: false, methods: [GET, PUT]}
    upstream: {slots: 100, healthchecks: {active: {timeout: 9, headers: {a: [b]}}}}
    target: {weight: 7}
services:
- {name: a, host: h, retries: 2}
- name: b
  url: http://b:81
  retries: null
  routes: [{name: r, paths: [/], methods: [GET]}, {name: s, paths: [/s], strip_path: true}]
upstreams:
- name: u
  healthchecks: {active: {concurrency: 3}}
  targets: [{target: "a:1"}, {target: "b:1", weight: 0}]
]])
        local a, b, u = s.services[1], s.services[2], s.upstreams[1]
        assert.same({ 2, 9000, { "d" } }, { a.retries, a.port, a.tags })
        assert.same({ 1, 81, "b" }, { b.retries, b.port, b.host })
        local r, t = s.routes[1], s.routes[2]
        assert.same({ { "https" }, false, { "GET" } }, { r.protocols, r.strip_path, r.methods })
        assert.same({ true, { "GET", "PUT" } }, { t.strip_path, t.methods })
        local active = u.healthchecks.active
        assert.same({ 100, 9, 3 }, { u.slots, active.timeout, active.concurrency })
        assert.same({ a = { "b" } }, active.headers)
        assert.same({ 7, 0 }, { s.targets[1].weight, s.targets[2].weight })
    end)

    it("has parts of plugins' configurations", function()
        local s = parse([[
_format_version: "3.0"
_plugin_configs: {limits: {minute: 5, redis: {host: r, port: 7}}}
plugins:
- {name: rate-limiting, _config: limits}
services:
- name: a
  host: h
  plugins: [{name: rate-limiting, _config: limits, config: {minute: 3, redis: {port: 8}}}]
]])
        local found = {}
        for _, plugin in ipairs(s.plugins) do
            local of = plugin.config
            found[plugin.service and "service" or "all"] =
                { of.minute, of.redis.host, of.redis.port }
        end
        assert.same({ service = { 3, "r", 8 }, all = { 5, "r", 7 } }, found)
    end)

    it("has tags of all entities that have any", function()
        local s = parse([[
_format_version: "3.0"
_info: {select_tags: [team, x]}
services: [{name: a, host: h, tags: [y, x], routes: [{paths: [/]}]}]
consumers: [{username: c, groups: [{name: g}], keyauth_credentials: [{key: k}]}]
consumer_groups: [{name: g}]
plugins: [{name: key-auth}]
]])
        assert.same({ "y", "x", "team" }, s.services[1].tags)
        for _, kind in ipairs({ "routes", "consumers", "keyauth_credentials", "plugins" }) do
            assert.same({ "team", "x" }, s[kind][1].tags)
        end
        assert.is_nil(s.consumer_group_consumers[1].tags)
    end)

    it("has tags that an import is told of", function()
        local s = parse('_format_version: "3.0"\n_info: {select_tags: [team, x]}\n')
        assert.same({ "team", "x" }, s.select_tags)
        assert.is_nil(parse('_format_version: "3.0"\n').select_tags)
    end)

    it("warns of placeholders, which stay what they are", function()
        local s = parse([[
_format_version: "3.0"
consumers:
- username: a
  keyauth_credentials: [{key: '${{ env "DECK_KEY" }}'}]
- username: b
  custom_id: ${ID}
- {username: c, custom_id: "$(headers.x)", tags: ["${x}"]}
]])
        local rest = " is not replaced, the text is the value; replace it before the file is used, "
            .. "as with `deck file render --populate-env-vars` or envsubst"
        assert.same({
            'line 4, column 32: ${{ env "DECK_KEY" }}' .. rest,
            "line 6, column 14: ${ID}" .. rest,
        }, s.warnings)
        assert.equal('${{ env "DECK_KEY" }}', s.keyauth_credentials[1].key)
    end)

    it("looks for placeholders in comments and in large files in little time", function()
        local file = '_format_version: "3.0"\n# ${{ env "DECK_A" }}\n'
        assert.same({}, parse(file).warnings)
        local s = parse(file .. "consumers: [{username: '${{ env \"DECK_B\" }}'}]\n")
        assert.matches('^line 3, column 25: %${{ env "DECK_B" }} is not', s.warnings[1])
        -- Quadratic, these took minutes.
        for _, part in ipairs({ "${{ env ", ': \\"${A', ': ${{ env \\"' }) do
            local text = '{"_format_version": "3.0", "_comment": "' .. part:rep(100000) .. '"}'
            assert.same({}, parse(text).warnings)
        end
    end)

    it("may have passwords that are hashes", function()
        local s = parse([[
_format_version: "3.0"
_info: {skip_hash_for_basic_auth: true}
consumers: [{username: c, basicauth_credentials: [{username: c, password: abc}]}]
]])
        assert.equal("abc", s.basicauth_credentials[1].password)
    end)

    it("has fields without effect, of which it is warned", function()
        local s = parse([[
_format_version: "3.0"
_workspace: team
_konnect: {control_plane_name: cp}
_info: {default_lookup_tags: {services: [t]}}
parameters: [{key: cluster_id, value: 6f2c1a30-0000-4000-8000-000000000010, created_at: 1}]
workspaces: [{id: 6f2c1a30-0000-4000-8000-000000000011, name: default}]
services: [{name: a, host: h, ws_id: 6f2c1a30-0000-4000-8000-000000000011}]
plugins: [{name: key-auth, protocols: [http, ws, wss], ws_id: null}]
]])
        assert.is_nil(s.services[1].ws_id)
        assert.same({ "http", "ws", "wss" }, s.plugins[1].protocols)
        assert.same({
            "line 2: _workspace: no effect: the gateway has no workspaces, so 'team' is all of it",
            "line 3: _konnect: no effect: the gateway has no control plane elsewhere",
            "line 4: _info.default_lookup_tags: no effect",
            "line 5: parameters: no effect",
            "line 6: workspaces: no effect",
            "line 8: plugins[0] \"key-auth\".protocols: 'ws' has no effect: no route has this "
                .. "protocol",
        }, s.warnings)
    end)

    it("does not grow without a bound", function()
        local values = {}
        for i = 1, 1000 do
            values[i] = "a"
        end
        local plugins = ("{name: rate-limiting, _config: c},"):rep(1000)
        local _, errors = config.parse(
            (
                "_format_version: '3.0'\n_plugin_configs: {c: {minute: 1, redis: "
                .. "{cluster_addresses: [%s]}}}\nplugins: [%s]"
            ):format(table.concat(values, ", "), plugins),
            "yaml",
            support.registry
        )
        local found = config.format_errors(errors)
        assert.matches("the file has more than 1000000 values by its defaults", found, 1, true)
    end)
end)

describe("a disabled entity", function()
    it("may be of a plugin that is not there", function()
        local s = parse([[
_format_version: "3.0"
plugins:
- {name: rate-limiting-advanced, enabled: false, config: {a: {b: null, c: [1]}, d: null}}
]])
        assert.same({ a = { c = { 1 } } }, s.plugins[1].config)
        assert.same({
            "line 3: plugins[0] \"rate-limiting-advanced\": plugin 'rate-limiting-advanced' not "
                .. "installed; stored, as it is disabled",
        }, s.warnings)
    end)

    it("may have what is not supported", function()
        local s = parse([[
_format_version: "3.0"
plugins:
- name: rate-limiting
  enabled: false
  config: {minute: 5, policy: redis, sync_rate: 1, redis: {host: r}}
services: [{name: a, host: h, protocol: grpc, enabled: false}]
]])
        assert.same({ "redis", 1 }, { s.plugins[1].config.policy, s.plugins[1].config.sync_rate })
        assert.equal("grpc", s.services[1].protocol)
        assert.same({
            "line 5: plugins[0] \"rate-limiting\".config.policy: policy 'redis' is not supported "
                .. "by this version, only 'local' is; stored, as it is disabled",
            "line 6: services[0] \"a\".protocol: 'grpc' is not supported by this version "
                .. "(supported: http, https); stored, as it is disabled",
        }, s.warnings)
    end)
end)
