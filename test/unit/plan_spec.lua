-- What changes change, as it is shown: gateway/plan.

local differences = require("gateway.plan.differences")
local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local items = require("gateway.config.items")
local json = require("gateway.schema.json")
local plans = require("gateway.plan")
local sources = require("gateway.plan.sources")
local support = require("test.unit.support.store")

local uuid = support.uuid

local function find(definition, before, after)
    return json.encode(differences.find(definition, before, after))
end

describe("the fields that differ", function()
    local services = entities.get("services")

    it("are named with what they were and are", function()
        local before = { id = "i", host = "a", retries = 5, updated_at = 1, tags = { "x" } }
        local after = { id = "i", host = "b", updated_at = 2, tags = { "x", "y" }, path = "/" }
        assert.equal(
            '[{"field":"host","new":"b","old":"a"},{"field":"path","new":"/","old":null},'
                .. '{"field":"retries","new":null,"old":5},'
                .. '{"field":"tags","new":["x","y"],"old":["x"]}]',
            find(services, before, after)
        )
        assert.equal("{}", find(services, before, before))
    end)

    it("are those within records and maps", function()
        local definition = {
            fields = {
                { config = { type = "record", fields = { { limits = { type = "map" } } } } },
            },
        }
        local before = { config = { limits = { a = 1, b = 2 } } }
        local after = { config = { limits = { b = 3, c = 4 } } }
        assert.equal(
            '[{"field":"config.limits.a","new":null,"old":1},'
                .. '{"field":"config.limits.b","new":3,"old":2},'
                .. '{"field":"config.limits.c","new":4,"old":null}]',
            find(definition, before, after)
        )
        assert.equal(
            '[{"field":"config","new":{},"old":null}]',
            find(definition, {}, { config = {} })
        )
    end)

    it("are shown without secrets", function()
        local text = { type = "string" }
        local definition = {
            fields = {
                { key = { type = "string", encrypted = true } },
                { url = text },
                {
                    headers = { type = "map", values = { type = "string", referenceable = true } },
                },
                {
                    nodes = {
                        type = "array",
                        elements = {
                            type = "record",
                            fields = { { host = text }, { password = text } },
                        },
                    },
                },
            },
        }
        local function entity(secret)
            return {
                key = secret,
                url = "http://user:" .. secret .. "@host/",
                headers = { Authorization = secret, ["X-Api-Key"] = secret, Accept = "a" },
                nodes = { { host = "h", password = secret } },
                access_token = secret,
            }
        end
        local shown = find(definition, entity("SECRET1"), entity("SECRET2"))
        assert.is_nil(shown:find("SECRET", 1, true), shown)
        for _, name in ipairs({ "key", "headers.Authorization", "headers.X-Api-Key" }) do
            assert.is_truthy(shown:find('"field":"' .. name .. '","secret":true', 1, true), name)
        end
        assert.is_nil(find(definition, {}, entity("SECRET")):find("SECRET", 1, true))
    end)
end)

describe("a plan", function()
    local s

    before_each(function()
        s = assert(support.open())
        local put = support.put
        assert(s:transaction({
            put("services", { id = uuid(1), name = "orders" }),
            put("services", { id = uuid(2), name = "stock" }),
            put("routes", { id = uuid(3), name = "web", service = { id = uuid(1) } }),
            put("consumers", { id = uuid(4), username = "alice" }),
            put("plugins", {
                id = uuid(5),
                name = "acl",
                route = { id = uuid(3) },
                consumer = { id = uuid(4) },
            }),
        }))
    end)

    after_each(function()
        s:close()
        support.clean()
    end)

    local function lines(plan)
        local out = {}
        for i, entity in ipairs(plan.entities) do
            local owners = {}
            for o, owner in ipairs(entity.owners) do
                owners[o] = owner.kind .. " " .. owner.name
            end
            out[i] = ("%s %s %s [%s]"):format(
                entity.change,
                entity.kind,
                entity.name,
                table.concat(owners, ", ")
            )
        end
        return out
    end

    it("of a deletion has what goes with it", function()
        local plan =
            assert(sources.deletion(s, support.registry, { { kind = "routes", id = uuid(3) } }))
        assert.same({
            "deleted routes web [services orders]",
            "deleted plugins acl [routes web, consumers alice]",
        }, lines(plan))
        assert.same({ 2, nil, nil }, { plan.deleted, plan.unchanged, plan.blocked })
        plan = assert(sources.deletion(s, support.registry, {
            { kind = "services", id = uuid(1) },
            { kind = "services", id = uuid(9) },
        }))
        assert.equal("web", plan.blocked.by.name)
        plan = assert(sources.deletion(s, support.registry, {
            { kind = "services", id = uuid(1) },
            { kind = "routes", id = uuid(3) },
        }))
        assert.is_nil(plan.blocked)
        assert.equal(3, plan.deleted)
    end)

    local function items_of(text)
        local list = {}
        items.each(assert(support.parse(text)), function(item)
            list[#list + 1] = item
        end)
        return list
    end

    it("of a replacement is what the store makes of it", function()
        local list = items_of([[
services:
- {name: stock, host: a.test, id: "00000000-0000-4000-8000-000000000002"}
- {name: new, host: a.test}
consumers:
- {username: alice, id: "00000000-0000-4000-8000-000000000004"}
]])
        local plan = assert(sources.replacement(s, support.registry, list))
        assert.same({ 1, 2, 3, 0 }, {
            plan.created,
            plan.changed,
            plan.deleted,
            plan.unchanged,
        })
        assert(s:replace(list))
        list = items_of([[
services:
- {name: stock, host: b.test, id: "00000000-0000-4000-8000-000000000002"}
- {name: new, host: a.test}
consumers:
- {username: alice, id: "00000000-0000-4000-8000-000000000004"}
]])
        plan = assert(sources.replacement(s, support.registry, list))
        assert.same({ "changed services stock []" }, lines(plan))
        assert.equal(
            '[{"field":"host","new":"b.test","old":"a.test"}]',
            json.encode(plan.entities[1].fields)
        )
        assert.equal(2, plan.unchanged)
        plan = sources.replacement(sources.EMPTY, support.registry, list)
        assert.equal(3, plan.created)
    end)

    it("makes no texts of what is new: many that look alike may be slow", function()
        local list = items_of("services: [{host: a.test}, {host: a.test}]")
        local encode = entity_text.encode
        finally(function()
            entity_text.encode = encode
        end)
        function entity_text.encode()
            error("a text is made")
        end
        assert.equal(2, sources.replacement(sources.EMPTY, support.registry, list).created)
    end)

    it("counts what it has no room to name", function()
        local plan = plans.new(support.registry, function() end)
        for i = 1, 100001 do
            plan:add("services", nil, { id = uuid(i) })
        end
        assert.same({ 100001, 100000 }, { plan.created, #plan.entities })
    end)

    it("shows references by name", function()
        local plan = plans.new(support.registry, function(kind, id)
            local row = s:get(kind, id)
            return row and entity_text.decode(row.text)
        end)
        plan:add(
            "routes",
            { id = uuid(3), name = "web", service = { id = uuid(1) } },
            { id = uuid(3), name = "web", service = { id = uuid(2) } }
        )
        assert.equal(
            '[{"field":"service","new":"stock","old":"orders"}]',
            json.encode(plan.entities[1].fields)
        )
    end)
end)
