-- What is valid in a file and probably not meant, of several entities together.
--
-- SEED repeats a run.

local cjson = require("cjson")
local config = require("gateway.config")
local cpu = require("test.unit.support.cpu")
local doubts = require("gateway.config.doubts")
local pem = require("test.unit.support.pem")
local oracle = require("test.unit.support.oracle")
local random_routes = require("test.unit.support.routes")
local support = require("test.unit.support.config")

local ROUNDS, REQUESTS = 400, 30
-- More than ten times what a file of 2,000 upstreams and 2,000 other hosts takes; comparing each
-- with each would take a minute.
local MAX_SECONDS = 4
local seed = require("test.unit.support.seed")("config_doubts")

-- The warnings of a file of format 3.0 in which the gateway lacks nothing, or `lacks`.
local function warned(body, lacks)
    local opts = { doubts = lacks or function() end }
    local source = '_format_version: "3.0"\n' .. body
    local snapshot, errors = config.parse(source, "yaml", support.registry, opts)
    return assert(snapshot, errors and config.format_errors(errors)).warnings
end

describe("routes in each other's place", function()
    it("are told of, and which one gets the requests", function()
        assert.same(
            {
                "line 4: routes[1] \"b\": gets no request: route 'a' (routes[0]) has the same "
                    .. "conditions and comes first",
                "line 5: routes[2] \"c\": gets no request for host 'x.com' and path '/p': route "
                    .. "'a' (routes[0]) has the same conditions and comes first",
                "line 6: routes[3] \"d\": gets no request: other routes, such as 'c' (routes[2]), "
                    .. "have the same conditions",
            },
            warned([[
routes:
- {name: a, hosts: [x.com], paths: [/p, /q]}
- {name: b, hosts: [X.COM], paths: [/q, /p]}
- {name: c, hosts: [x.com], paths: [/r, /p]}
- {name: d, hosts: [x.com], paths: [/r, /q]}
]])
        )
    end)

    it("are preferred by their age", function()
        assert.same(
            {
                "line 3: routes[0] \"new\": gets no request: route 'old' (routes[1]) has the same "
                    .. "conditions and is older",
            },
            warned([[
routes:
- {name: new, methods: [GET, PUT], headers: {X-A: ["1", "2"]}, created_at: 2}
- {name: old, methods: [PUT, GET], headers: {x-a: ["2", "1"]}, created_at: 1}
]])
        )
    end)

    it("are none where something else decides", function()
        assert.same(
            {},
            warned([[
routes:
- {name: a, paths: [/p]}
- {name: a1, paths: [/p], methods: [GET]}
- {name: a2, paths: [/p], hosts: [x.com]}
- {name: a3, paths: [/p], hosts: [x.com, "*.x.com"]}
- {name: a4, paths: [/p], hosts: ["x.com:80"]}
- {name: a5, paths: [/p], headers: {x-a: ["1"]}}
- {name: a6, paths: [/p], headers: {x-a: ["2"]}}
- {name: a7, paths: [/p], snis: [x.com]}
- {name: a8, paths: ["~/p"]}
- {name: a9, paths: ["~/p"], regex_priority: 1}
- {name: a10, paths: [/pp]}
- {name: a11, hosts: [x.com]}
]])
        )
    end)

    it("are twenty by name", function()
        local found = warned("routes:\n" .. ("- {paths: [/p]}\n"):rep(32))
        assert.equal(21, #found)
        assert.equal(
            "line 2: routes: 11 others get no request, or not all: see those above",
            found[1]
        )
    end)

    it("get none in the router", function()
        math.randomseed(seed)
        local dead = 0
        for _ = 1, ROUNDS do
            local routes, items, lost = random_routes.routes(6), {}, {}
            for _ = 1, 3 do
                local again = random_routes.route()
                local like = routes[math.random(#routes)]
                for _, field in ipairs({ "hosts", "paths", "methods", "headers", "snis" }) do
                    again[field] = math.random(8) > 1 and like[field] or again[field]
                end
                again.regex_priority = like.regex_priority
                table.insert(routes, math.random(#routes + 1), again)
            end
            for i, route in ipairs(routes) do
                route.id = tostring(i)
                items[i] = { list = "routes", index = i, kind = "routes", entity = route }
            end
            doubts.of_routes(items, function(path, message)
                local index = tonumber(path:match("%[(%d+)%]")) + 1
                lost[index] = message:find("^gets no request:") ~= nil
                dead = dead + (lost[index] and 1 or 0)
            end)
            for _ = 1, REQUESTS do
                local best = oracle.match(routes, random_routes.request())
                assert(not (best and lost[best.route]), "seed " .. seed)
            end
        end
        assert.is_true(dead > ROUNDS / 4)
    end)
end)

describe("a plugin that has to know the consumer", function()
    local SAID = 'line %d: plugins[%d] "acl": no authentication plugin (basic-auth, hmac-auth, '
        .. "jwt, key-auth) runs before it: every request is answered 401"
    local ENTITIES = [[
services: [{name: s, host: h}, {name: t, host: h}]
routes:
- {name: r, service: s, paths: [/r]}
- {name: q, service: s, paths: [/q]}
- {name: of-t, service: t, paths: [/t]}
plugins:
]]

    local function of(...)
        local lines = {}
        for i, line in ipairs({ ... }) do
            lines[i] = "- {" .. line .. "}\n"
        end
        return warned(ENTITIES .. table.concat(lines))
    end

    it("is warned of where none says who that is", function()
        local acl = "name: acl, config: {allow: [g]}"
        assert.same({ SAID:format(8, 0) }, of(acl))
        assert.same({ SAID:format(8, 0) }, of(acl .. ", route: r", "name: key-auth, route: q"))
        assert.same({ SAID:format(8, 0) }, of(acl .. ", service: s", "name: key-auth, service: t"))
        assert.same({ SAID:format(8, 0) }, of(acl .. ", service: s", "name: key-auth, route: of-t"))
        assert.same({ SAID:format(8, 0) }, of(acl, "name: key-auth, enabled: false"))
        assert.same({ SAID:format(8, 0) }, of(acl, "name: cors"))
    end)

    it("is not where one does, on its way or that of some of its requests", function()
        local acl = "name: acl, config: {allow: [g]}"
        assert.same({}, of(acl .. ", enabled: false"))
        assert.same({}, of(acl, "name: basic-auth"))
        assert.same({}, of(acl .. ", route: r", "name: jwt"))
        assert.same({}, of(acl .. ", route: r", "name: hmac-auth, service: s"))
        assert.same({}, of(acl .. ", route: r", "name: key-auth, route: r"))
        assert.same({}, of(acl .. ", service: s", "name: key-auth, route: q"))
        assert.same({}, of(acl, "name: key-auth, route: of-t"))
    end)
end)

describe("what the gateway lacks for a plugin", function()
    it("is told once, with its place", function()
        local body = "plugins: [{name: cors}, {name: key-auth}]\nroutes: [{paths: [/a], plugins: "
            .. "[{name: cors}]}]"
        assert.same(
            { 'line 3: routes[0].plugins[0] "cors": nothing' },
            warned(body, function(plugin)
                return plugin.name == "cors" and "nothing"
            end)
        )
    end)
end)

describe("patterns that give up", function()
    it("are told of with the place of their route", function()
        local said = warned('routes:\n- {name: r, paths: ["~/(a+)+x$"]}')[1]
        assert.matches('^line 3: routes%[0%] "r": a client can make the pattern', said)
    end)
end)

describe("certificates for other names", function()
    -- The SNIs of a certificate of which a file is warned, and the warnings.
    local function wrong(names, snis)
        local cert, key = pem.pair("ec", { names = names })
        local lines, found = {}, {}
        for i, sni in ipairs(snis) do
            lines[i] = ("    - {name: '%s'}\n"):format(sni)
        end
        local function block(pem_text)
            return "|\n" .. pem_text:gsub("[^\n]+", "      %0")
        end
        local body = ("certificates:\n  - cert: %s    key: %s    snis:\n%s"):format(
            block(cert),
            block(key),
            table.concat(lines)
        )
        local warnings = warned(body)
        for i, line in ipairs(warnings) do
            found[i] = line:match('snis%[%d+%] "(.-)": clients that verify')
        end
        return found, warnings
    end

    it("are told of, by the SNI", function()
        local found, warnings = wrong({ "a.test", "*.b.test" }, {
            "A.test",
            "b.test",
            "x.b.test",
            "*.b.test",
            "x.y.b.test",
            "*.a.test",
            "a.*",
            "x.*",
            "*",
        })
        assert.same({ "b.test", "x.y.b.test", "*.a.test", "x.*" }, found)
        assert.matches(
            '^line %d+: certificates%[0%]%.snis%[1%] "b%.test": clients that verify the '
                .. "certificate refuse it: its cert is for a%.test, %*%.b%.test$",
            warnings[1]
        )
    end)

    it("have the common name if they have no others", function()
        assert.same({ "b.example" }, (wrong(nil, { "a.example", "b.example" })))
        assert.same({ "a.example" }, (wrong({ "b.example" }, { "a.example", "b.example" })))
    end)

    it("show three of their names", function()
        local _, warnings = wrong(
            { "a.test", "b.test", "c.test", "d.test", "e.test" },
            { "f.test" }
        )
        assert.matches("its cert is for a.test, b.test, c.test and 2 more$", warnings[1])
    end)

    it("are looked at in each SNI that names its certificate elsewhere in a file", function()
        local cert, key = pem.pair("ec", { names = { "a.test" } })
        local id = "6f2c1a30-0000-4000-8000-000000000010"
        local file = {
            _format_version = "3.0",
            certificates = { { id = id, cert = cert, key = key } },
            snis = { { name = "b.test", certificate = { id = id } } },
        }
        local opts = { doubts = function() end }
        local snapshot = config.parse(cjson.encode(file), "json", support.registry, opts)
        assert.matches('^snis%[0%] "b.test": clients', snapshot.warnings[1])
    end)
end)

describe("methods of routes", function()
    it("are none of HTTP where they are near one", function()
        assert.same(
            {
                "line 3: routes[0] \"a\".methods[1]: 'GTE' is no method of HTTP; did you mean GET?",
                "line 4: routes[1].methods[0]: 'DELTE' is no method of HTTP; did you mean DELETE?",
                "line 5: routes[2].methods[0]: 'ANY' is no method of HTTP; "
                    .. "without methods, a route takes all of them",
            },
            warned([[
routes:
- {name: a, methods: [GET, GTE]}
- {methods: [DELTE, PROPFIND, MKCOL, LOCK, COPY, MOVE, REPORT, PURGE]}
- {methods: [ANY]}
]])
        )
    end)

    it("are twenty by name", function()
        local routes = {}
        for i = 1, 23 do
            routes[i] = ("- {paths: [/p%d], methods: [GTE]}\n"):format(i)
        end
        local found = warned("routes:\n" .. table.concat(routes))
        assert.equal(21, #found)
        local line = "line 2: routes: 3 others have a method that is none of HTTP"
        assert.equal(line, found[1])
    end)
end)

describe("a path of a route with a query", function()
    it("matches no request", function()
        assert.same({
            "line 2: routes[0].paths[0]: matches no request, as a path has no query; write "
                .. "'/search'",
            "line 2: routes[0].paths[1]: '/colou?r' looks like a regex, but without a leading "
                .. "~ it is a fixed path",
        }, warned("routes: [{paths: ['/search?q=1', '/colou?r', '~/a?b=']}]"))
    end)
end)

describe("upstreams without targets", function()
    local LINE = 'line %d: upstreams[%d] "%s": has no targets: requests are answered 503'

    it("are told of where a service uses them", function()
        assert.same(
            { LINE:format(4, 0, "empty") },
            warned([[
services: [{host: empty}, {host: filled}]
upstreams:
- name: empty
- {name: filled, targets: [{target: "a:80"}]}
- name: of-nobody
]])
        )
    end)

    it("are twenty by name", function()
        local services, upstreams = {}, {}
        for i = 1, 23 do
            services[i] = ("{host: u%d}"):format(i)
            upstreams[i] = ("- name: u%d\n"):format(i)
        end
        local text = "services: [%s]\nupstreams:\n%s"
        local found = warned(text:format(table.concat(services, ", "), table.concat(upstreams)))
        assert.equal(21, #found)
        assert.equal("line 3: upstreams: 3 others have no targets", found[1])
    end)
end)

describe("upstreams without a service", function()
    local LINE = 'line %d: upstreams[%d] "%s": is used by no service; did you mean it in service '
        .. "'%s' (host '%s')?"

    it("are told of where a host is near their name", function()
        local expected = { LINE:format(4, 0, "shop-up", "shop", "shop-ups") }
        assert.same(
            expected,
            warned([[
services: [{name: shop, host: shop-ups}, {name: b, host: pool}]
upstreams:
- name: shop-up
- {name: pool, targets: [{target: "a:80"}]}
]])
        )
    end)

    it("are none where a host has an address, or a number of its own, or an upstream", function()
        assert.same(
            {},
            warned([[
services:
- {host: shop.up}
- {host: web-1}
- {host: pools}
- {host: b}
upstreams:
- {name: pools, targets: [{target: "a:80"}]}
- {name: shop-up}
- {name: web-2}
- {name: pool}
- {name: a}
]])
        )
    end)

    it("are compared with few hosts, and few of them", function()
        local names = { "services: [{host: shop-ups}]\nupstreams:\n" }
        for i = 1, 25 do
            names[#names + 1] = ("- name: unused-and-long-%s\n"):format(i)
        end
        names[#names + 1] = "- name: shop-up\n"
        assert.same({}, warned(table.concat(names)))
        table.remove(names, 2)
        local found = warned(table.concat(names))
        assert.same({ LINE:format(28, 24, "shop-up", "?", "shop-ups") }, {
            (found[1]:gsub("service '[%x-]+'", "service '?'")),
        })
        local text, hosts, upstreams = "services: [%s]\nupstreams: [%s]\n", {}, {}
        for i = 1, 2000 do
            hosts[i] = ("{host: %s-%d}"):format(("h"):rep(50), i)
            upstreams[i] = ("{name: %s-%d}"):format(("u"):rep(50), i)
        end
        text = text:format(table.concat(hosts, ", "), table.concat(upstreams, ", "))
        local seconds = cpu.least(MAX_SECONDS, function()
            assert.same({}, warned(text))
        end)
        assert.is_true(seconds < MAX_SECONDS, seconds .. " s")
    end)
end)

describe("an anonymous consumer", function()
    local LINE = 'line %d: plugins[%d] "%s".config.anonymous: no consumer has this id or username: '
        .. "requests without valid credentials are answered 500; add the consumer, or remove the "
        .. "field"
    local ID = "6f2c1a30-0000-4000-8000-00000000000a"

    it("is told of where the file has none", function()
        assert.same(
            { LINE:format(3, 0, "key-auth"), LINE:format(4, 1, "jwt") },
            warned([[
plugins:
- {name: key-auth, config: {anonymous: ghost}}
- {name: jwt, config: {anonymous: 6f2c1a30-0000-4000-8000-00000000000b}}
- {name: hmac-auth, config: {anonymous: ghost}, enabled: false}
- {name: basic-auth}
]])
        )
        local body = "consumers: [{custom_id: ghost}]\n"
            .. "plugins: [{name: key-auth, config: {anonymous: ghost}}]"
        assert.same({ LINE:format(3, 0, "key-auth") }, warned(body))
    end)

    it("is known by its id and username", function()
        local body = "consumers: [{username: bob, id: %s}, {custom_id: c}]\nplugins:\n"
            .. "- {name: key-auth, config: {anonymous: bob}}\n"
            .. "- {name: jwt, config: {anonymous: %s}}\n"
            .. "- {name: basic-auth, config: {anonymous: %s}}\n"
        assert.same({}, warned(body:format(ID, ID, ID:upper())))
    end)

    it("is told of twenty times", function()
        local routes = {}
        for i = 1, 22 do
            local line = "- {paths: [/p%d], plugins: [{name: key-auth, config: {anonymous: a}}]}\n"
            routes[i] = line:format(i)
        end
        local found = warned("routes:\n" .. table.concat(routes))
        assert.equal(21, #found)
        assert.equal("plugins: 2 others have an `anonymous` that is no consumer", found[1])
    end)
end)
