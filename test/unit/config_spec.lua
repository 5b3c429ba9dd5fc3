--- Declarative files: from text to snapshot.

local config = require("gateway.config")
local entity_schemas = require("gateway.entities")
local files = require("test.house.files")
local identity = require("gateway.config.identity")
local support = require("test.unit.support.config")

local parse = support.parse

local NESTED = [[
services:
- name: orders
  url: http://up:9000/base
  routes:
  - name: r1
    paths: [/a]
    plugins:
    - name: key-auth
  - hosts: [b.example]
  plugins:
  - name: rate-limiting
    config: { minute: 5 }
upstreams:
- name: up
  targets:
  - target: 127.0.0.1:80
  - target: 127.0.0.2:80
    weight: 0
consumers:
- username: alice
  keyauth_credentials:
  - key: k1
  plugins:
  - name: rate-limiting
    config: { minute: 9 }
]]

local FLAT = [[
plugins:
- name: rate-limiting
  service: orders
  config: { minute: 5 }
- name: key-auth
  route: { name: r1 }
- name: rate-limiting
  consumer: { username: alice }
  config: { minute: 9 }
keyauth_credentials:
- key: k1
  consumer: alice
targets:
- target: 127.0.0.1:80
  upstream: { name: up }
- target: 127.0.0.2:80
  upstream: up
  weight: 0
upstreams:
- name: up
consumers:
- username: alice
routes:
- name: r1
  paths: [/a]
  service: orders
- hosts: [b.example]
  service: { id: SERVICE }
services:
- name: orders
  host: up
  port: 9000
  path: /base
]]

local function without_times(snapshot)
    for _, entities in pairs(snapshot) do
        for _, entity in ipairs(type(entities) == "table" and entities or {}) do
            if type(entity) == "table" then
                entity.created_at, entity.updated_at = nil, nil
            end
        end
    end
    return snapshot
end

local function by_id(entities)
    local out = {}
    for _, entity in ipairs(entities) do
        out[entity.id] = entity
    end
    return out
end

describe("gateway.config", function()
    it("flattens nested entities in the order of the file", function()
        local s = parse(NESTED)
        assert.same({ 1, 2, 1, 2, 1, 1, 3 }, {
            #s.services,
            #s.routes,
            #s.upstreams,
            #s.targets,
            #s.consumers,
            #s.keyauth_credentials,
            #s.plugins,
        })
        assert.equal("r1", s.routes[1].name)
        assert.same({ "b.example" }, s.routes[2].hosts)
        assert.same({ id = s.services[1].id }, s.routes[2].service)
        assert.same({ id = s.upstreams[1].id }, s.targets[1].upstream)
        assert.same({ 100, 0 }, { s.targets[1].weight, s.targets[2].weight })
        assert.same({ id = s.consumers[1].id }, s.keyauth_credentials[1].consumer)
        assert.equal("3.0", s.format_version)
        assert.same({}, s.warnings)
    end)

    it("gives the same entities, ids too, for the nested and the flat form", function()
        local nested = without_times(parse(NESTED))
        local flat = without_times(parse((FLAT:gsub("SERVICE", nested.services[1].id))))
        for _, kind in ipairs({
            "services",
            "routes",
            "upstreams",
            "targets",
            "consumers",
            "plugins",
        }) do
            assert.same(by_id(nested[kind]), by_id(flat[kind]))
        end
        assert.same(nested.keyauth_credentials, flat.keyauth_credentials)
    end)

    it("makes no id of a secret", function()
        local function ids(first, second)
            local text = [[
consumers: [{ username: a, keyauth_credentials: [{ key: %s }, { key: %s }] },
            { username: b, keyauth_credentials: [{ key: third }] }]
]]
            local found = {}
            for i, credential in ipairs(parse(text:format(first, second)).keyauth_credentials) do
                found[i] = credential.id
            end
            return found
        end
        local made = ids("one", "two")
        assert.same(made, ids("one", "two"))
        assert.same(made, ids("other", "another"))
        assert.are_not.equal(made[1], made[2])
        assert.are_not.equal(made[1], made[3])
    end)

    it("makes no key of an entity of a field that is a secret", function()
        for _, kind in ipairs(entity_schemas.kinds) do
            local schema = entity_schemas.get(kind)
            for _, entry in ipairs(schema.fields) do
                local name, field = next(entry)
                if field.encrypted then
                    local one = { consumer = { id = "1" }, [name] = "one" }
                    local other = { consumer = { id = "1" }, [name] = "other" }
                    assert.equal(identity.key(schema, one), identity.key(schema, other))
                end
            end
        end
    end)

    it("puts what is nested before what stands at the top", function()
        local s = parse([[
routes: [{ name: top, paths: [/] }]
services: [{ host: a, routes: [{ name: nested, paths: [/] }] }]
]])
        assert.same({ "nested", "top" }, { s.routes[1].name, s.routes[2].name })
        assert.is_nil(s.routes[2].service)
    end)

    it("validates plugins by their own schema and fills their defaults", function()
        local s = parse(NESTED)
        local found = {}
        for _, plugin in ipairs(s.plugins) do
            found[plugin.name .. (plugin.consumer and "/consumer" or "")] = plugin
        end
        assert.same({ "apikey" }, found["key-auth"].config.key_names)
        assert.is_true(found["key-auth"].enabled)
        assert.equal(5, found["rate-limiting"].config.minute)
        assert.equal(9, found["rate-limiting/consumer"].config.minute)
        assert.equal("local", found["rate-limiting"].config.policy)
    end)

    it("takes JSON, explicit nulls and remarks", function()
        local text = [[{"_format_version":"3.0","_transform":true,"_comment":"x","_ignore":[1],
            "_info":{"select_tags":["t"],"defaults":{}},"consumers":null,"certificates":[],
            "services":[{"name":"a","host":"h","path":null,"routes":null,
            "_comment":"y","_ignore":[]}]}]]
        local s = assert(config.parse(text, nil, support.registry))
        assert.equal("a", s.services[1].name)
        assert.is_nil(s.services[1].path)
        assert.is_nil(s.services[1]._comment)
        assert.same({}, s.consumers)
        assert.same({ "t" }, s.services[1].tags)
        assert.same({}, s.warnings)
    end)

    it("leaves unset fields nil, not null", function()
        for _, entities in pairs(parse(NESTED)) do
            for _, entity in ipairs(type(entities) == "table" and entities or {}) do
                for field, value in pairs(entity) do
                    assert.not_equal("userdata", type(value), field)
                end
            end
        end
    end)

    it("hashes the text", function()
        local a, b, c = parse("services: []"), parse("services: []"), parse("routes: []")
        assert.matches("^%x+$", a.hash)
        assert.equal(32, #a.hash)
        assert.equal(a.hash, b.hash)
        assert.not_equal(a.hash, c.hash)
    end)

    it("sets times to the load's, unless the file gives them", function()
        local before = os.time()
        local s = parse("services: [{ host: a, created_at: 5 }, { host: b, updated_at: 7 }]")
        assert.equal(5, s.services[1].created_at)
        assert.equal(7, s.services[2].updated_at)
        for _, time in ipairs({ s.services[1].updated_at, s.services[2].created_at }) do
            assert.is_true(time >= before and time <= os.time())
        end
    end)

    describe("ids", function()
        local UUID = "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-5%x%x%x%-[89ab]%x%x%x%-%x%x%x%x%x%x%x%x%x%x%x%x$"

        it("are version 5 UUIDs, unique, and the same at each load", function()
            local first, second, seen = parse(NESTED), parse(NESTED), {}
            for kind, entities in pairs(first) do
                for i, entity in ipairs(type(entities) == "table" and entities or {}) do
                    assert.matches(UUID, entity.id)
                    assert.is_nil(seen[entity.id])
                    seen[entity.id] = true
                    assert.equal(entity.id, second[kind][i].id)
                end
            end
        end)

        it("follow RFC 4122 over Kong's namespace", function()
            -- python3: u = uuid.uuid5; ns = UUID("fd02801f-0957-4a15-a55a-c8d9606f30b5")
            -- u(u(ns, "services"), "orders")
            -- u(u(ns, "targets"), "targets:*:" + up + ":127.0.0.1:80")
            local s = parse(NESTED)
            assert.equal("580c8aca-d632-5804-b307-a24326e1e2d5", s.services[1].id)
            assert.equal("0661d4d8-6e61-5c85-a53f-f010fc4f5c5a", s.targets[1].id)
        end)

        it("do not depend on position, nor on other entities", function()
            local one = parse("services: [{ host: a, routes: [{ paths: [/x] }] }]")
            local two = parse(
                "services: [{ host: b }, { host: a, routes: [{ paths: [/y] }, { paths: [/x] }] }]"
            )
            assert.equal(one.services[1].id, two.services[2].id)
            assert.equal(one.routes[1].id, two.routes[2].id)
        end)

        it("stay apart for unnamed twins", function()
            local s = parse(
                "services: [{ host: a }, { host: a }]\nroutes: [{ paths: [/] }, { paths: [/] }]"
            )
            assert.not_equal(s.services[1].id, s.services[2].id)
            assert.not_equal(s.routes[1].id, s.routes[2].id)
        end)

        it("are kept when given", function()
            local id = "3c45ea7d-1e22-587c-ad2f-e4631336c6ba"
            local s = parse(
                ("services: [{ id: %s, host: a }]\nroutes: [{ paths: [/], service: %s }]"):format(
                    id,
                    id
                )
            )
            assert.equal(id, s.services[1].id)
            assert.equal(id, s.routes[1].service.id)
        end)
    end)

    describe("formats before 3.0", function()
        local function migrated(path, version)
            local body = ("services: [{ host: a, routes: [{ paths: ['%s'] }] }]"):format(path)
            return parse(body, version).routes[1].paths[1]
        end

        for path, want in pairs({
            ["/plain/a-b_c.d~1"] = "/plain/a-b_c.d~1",
            ["/a/../b"] = "/b",
            ["/%7ea"] = "/~a",
            ["/a%2fb"] = "/a%2Fb",
            ["/users/\\d+$"] = "~/users/\\d+$",
            ["/a(b|c)"] = "~/a(b|c)",
            ["/a%2e(b)"] = "~/a\\.(b)",
            ["/a%2f(b)"] = "~/a%2F(b)",
            ["/a%41(b)"] = "~/aA(b)",
            ["~/kept(x)"] = "~/kept(x)",
        }) do
            it("take " .. path .. " for " .. want, function()
                assert.equal(want, migrated(path, "2.1"))
                assert.equal(want, migrated(path, "1.1"))
            end)
        end

        it("migrate routes at the top, too, and warn of nothing", function()
            local s = parse("routes: [{ paths: ['/a+', /b] }]", "2.1")
            assert.same({ "~/a+", "/b" }, s.routes[1].paths)
            assert.same({}, s.warnings)
        end)

        it("leave the present format alone, but warn", function()
            local s = parse("routes: [{ paths: [/a, '/a(b|c)'] }]")
            assert.same({ "/a", "/a(b|c)" }, s.routes[1].paths)
            assert.same({
                "line 2: routes[0].paths[1]: '/a(b|c)' looks like a regex, "
                    .. "but without a leading ~ it is a fixed path",
            }, s.warnings)
        end)
    end)

    describe("load", function()
        local function with_file(name, text, check)
            local path = os.tmpname() .. name
            files.write(path, text)
            check(path)
            os.remove(path)
        end

        it("tells the format by the extension", function()
            with_file(".json", '{"_format_version": "3.0"}', function(path)
                assert.is_table(config.load(path, support.registry))
            end)
            with_file(".yaml", "_format_version: '3.0'", function(path)
                assert.is_table(config.load(path, support.registry))
            end)
            with_file(".json", "_format_version: '3.0'", function(path)
                local snapshot, errors = config.load(path, support.registry)
                assert.is_nil(snapshot)
                assert.equal(
                    "line 1, column 1: expected a value, found an invalid token\n"
                        .. "1 | _format_version: '3.0'\n  | ^",
                    config.format_errors(errors)
                )
            end)
        end)

        it("names the line and the column", function()
            with_file(".yml", "a: 1\nb: [\n", function(path)
                local _, errors = config.load(path, support.registry)
                assert.equal(1, #errors)
                assert.equal("", errors[1].path)
                assert.same({ 3, 1 }, { errors[1].line, errors[1].column })
            end)
        end)

        it("says why a file cannot be read", function()
            local _, errors = config.load("/nonexistent/x.yaml", support.registry)
            assert.equal(
                "/nonexistent/x.yaml: No such file or directory",
                config.format_errors(errors)
            )
            _, errors = config.load("/", support.registry)
            assert.equal("/: Is a directory", config.format_errors(errors))
        end)
    end)
end)
