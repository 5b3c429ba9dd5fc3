--- What a file's routes lack, and what is promised of what would serve them.

local config = require("gateway.config")
local coverage = require("gateway.config.coverage")
local support = require("test.unit.support.config")

local FILES = 200

local function count(text)
    return assert(config.coverage(text, "yaml", support.registry, {}))
end

-- Plugins that are not there; `has` are those that have come, so that the file has them no more.
local function plugins_of(has, scope)
    local out = {}
    for name in pairs(scope) do
        out[#out + 1] = not has[("the plugin '%s'"):format(name)] and ("{name: %s}"):format(name)
            or nil
    end
    return "plugins: [" .. table.concat(out, ", ") .. "]"
end

local function some(names, most)
    local out = {}
    for _ = 1, math.random(0, most) do
        out[names[math.random(#names)]] = true
    end
    return out
end

local NAMES = { "p-one", "p-two", "p-three", "p-four", "p-five" }

-- A file at random, as a function of what has come.
local function file()
    local global, services = math.random() < 0.2 and some(NAMES, 1) or {}, {}
    for i = 1, math.random(1, 6) do
        local routes = {}
        for j = 1, math.random(1, 5) do
            routes[j] = some(NAMES, 2)
        end
        services[i] = { own = some(NAMES, 1), routes = routes }
    end
    return function(has)
        local lines = { '_format_version: "3.0"', plugins_of(has, global), "services:" }
        for i, service in ipairs(services) do
            local own = plugins_of(has, service.own)
            lines[#lines + 1] = ("- {name: s%d, host: h, %s, routes: ["):format(i, own)
            for j, route in ipairs(service.routes) do
                local of_route = plugins_of(has, route)
                lines[#lines + 1] = ("  {paths: [/%d/%d], %s},"):format(i, j, of_route)
            end
            lines[#lines + 1] = "  ]}"
        end
        return table.concat(lines, "\n")
    end
end

describe("gateway.config.coverage", function()
    it("promises what is served once it is there", function()
        math.randomseed(30)
        local promised = 0
        for _ = 1, FILES do
            local text = file()
            local found, has = count(text({})), {}
            for _, step in ipairs(found.steps) do
                has[step.thing] = true
                local then_found = count(text(has))
                assert.equal(step.served, then_found.served)
                assert.equal(found.routes, then_found.routes)
                promised = promised + 1
            end
        end
        assert.is_true(promised > FILES)
    end)

    it("looks at the whole chain, and at no consumer", function()
        local found = count([[
_format_version: "3.0"
services:
- name: a
  host: u
  routes: [{name: r, paths: [/]}, {paths: [/b], protocols: [grpc]}]
- {name: b, host: h, routes: [{paths: [/c]}, {paths: [bad]}]}
- {name: c, host: h, protocol: grpc, routes: [{paths: [/d]}]}
upstreams: [{name: u, algorithm: least-connections, targets: [{target: "h:80"}]}]
consumers: [{username: x, plugins: [{name: none}]}]
plugins:
- {name: rate-limiting, route: r, config: {minute: 1, policy: redis}}
- {name: other, consumer: x}
]])
        assert.equal(
            "of 5 routes, 1 needs no change (20%); with services.protocol 'grpc' 40%, "
                .. "then the other errors fixed 60%; "
                .. "the file is refused until every error above is fixed",
            coverage.format(found)
        )
        assert.same({
            { thing = "services.protocol 'grpc'", served = 2 },
            { thing = "the other errors fixed", served = 3 },
            { thing = "upstreams.algorithm 'least-connections'", served = 3 },
        }, found.steps)
    end)

    it("counts a record of an entity once, and shows values that are texts only", function()
        local found = count([[
_format_version: "3.0"
services: [{name: a, host: u, routes: [{paths: [/], protocols: [http, grpc]}]}]
upstreams:
- name: u
  hash_on: ip
  healthchecks:
    active: {healthy: {interval: 5}, unhealthy: {interval: 5}}
    passive: {unhealthy: {tcp_failures: 1}}
    threshold: 50
]])
        local things = {}
        for i, step in ipairs(found.steps) do
            things[i] = step.thing
        end
        assert.same({
            "routes.protocols 'grpc'",
            "upstreams.hash_on 'ip'",
            "upstreams.healthchecks",
        }, things)
        assert.matches("^the only route needs a change; with ", coverage.format(found))
    end)

    it("says when none needs no change", function()
        local steps = { { thing = "the plugin 'a'", served = 2 } }
        local said = coverage.format({ routes = 4, served = 0, steps = steps })
        assert.matches("^all 4 routes need a change; with the plugin 'a' 50%%; the file is", said)
    end)

    it("says together what serves a route together, and not what serves none", function()
        local steps = {}
        for i, served in ipairs({ 0, 0, 1, 1 }) do
            steps[i] = { thing = ("the plugin '%d'"):format(i), served = served }
        end
        local found = { routes = 4, served = 0, steps = steps }
        local line = "all 4 routes need a change; with the plugin '1', the plugin '2' and the "
            .. "plugin '3' 25%; the file is refused until every error above is fixed"
        assert.equal(line, coverage.format(found))
        found.steps = { steps[1] }
        assert.matches("^all 4 routes need a change; the file is refused", coverage.format(found))
    end)

    it("says when all are served", function()
        assert.equal("no routes", coverage.format({ routes = 0, served = 0 }))
        local found = count('_format_version: "3.0"\nroutes: [{paths: [/]}]')
        assert.equal("the only route is served", coverage.format(found))
        found = count('_format_version: "3.0"\nroutes: [{paths: [/]}, {paths: [/a]}]')
        assert.equal("all 2 routes are served", coverage.format(found))
    end)

    it("does not count routes of a disabled service as served", function()
        local snapshot = assert(support.parse([[
services:
- {host: a, enabled: false, routes: [{paths: [/a]}, {paths: [/b]}]}
- {host: b, routes: [{paths: [/c]}]}
routes: [{paths: [/d]}]
]]))
        local others = " served; those of services with `enabled: false` are not"
        assert.equal("2 of 4 routes are" .. others, coverage.format(coverage.of_snapshot(snapshot)))
        snapshot = assert(support.parse("services: [{host: a, routes: [{paths: [/]}]}]"))
        assert.equal("the only route is served", coverage.format(coverage.of_snapshot(snapshot)))
    end)
end)
