--- The store: look-ups, lists, pages, tags.

local store = require("gateway.store")
local support = require("test.unit.support.config")

local BODY = [[
services:
- name: a
  host: a
  tags: [x, y]
  routes:
  - { name: r1, paths: [/1], tags: [x] }
  - { name: r2, paths: [/2] }
- name: b
  host: b
  tags: [y]
  routes:
  - { name: r3, paths: [/3], tags: [z] }
- host: c
upstreams:
- { name: u, targets: [{ target: "t:1" }, { target: "t:2" }] }
consumers:
- username: alice
  custom_id: "7"
  keyauth_credentials: [{ key: k1 }, { key: k2 }]
]]

local function names(list)
    local out = {}
    for i, entity in ipairs(list) do
        out[i] = entity.name or entity.host or entity.target or entity.key
    end
    return table.concat(out, " ")
end

describe("gateway.store", function()
    local s, snapshot

    before_each(function()
        snapshot = support.parse(BODY)
        s = store.new(snapshot)
    end)

    it("gets by id and by name", function()
        local service = snapshot.services[1]
        assert.equal(service, s:get("services", service.id))
        assert.equal(service, s:get("services", "a"))
        assert.equal(snapshot.consumers[1], s:get("consumers", "alice"))
        assert.equal(snapshot.keyauth_credentials[2], s:get("keyauth_credentials", "k2"))
        assert.equal(snapshot.targets[1], s:get("targets", snapshot.targets[1].id))
        assert.is_nil(s:get("targets", "t:1"))
        assert.is_nil(s:get("services", "alice"))
        assert.is_nil(s:get("nothing", "a"))
    end)

    it("lends the table of a unique field", function()
        assert.equal(snapshot.consumers[1], s:index("consumers", "custom_id")["7"])
        assert.equal(snapshot.keyauth_credentials[1], s:index("keyauth_credentials", "key").k1)
        assert.is_nil(s:index("services", "host"))
        assert.is_nil(s:index("nothing", "id"))
    end)

    it("finds children in the order of the file", function()
        assert.equal("r1 r2", names(s:children("routes", "service", snapshot.services[1].id)))
        assert.equal("t:1 t:2", names(s:children("targets", "upstream", snapshot.upstreams[1].id)))
        assert.same({}, s:children("routes", "service", snapshot.services[3].id))
        assert.same({}, s:children("routes", "nothing", "x"))
        assert.same({}, s:children("nothing", "x", "x"))
    end)

    it("lists a page at a time, each entity once", function()
        local offset
        local pages = {}
        repeat
            local page
            page, offset = s:list("services", { size = 2, offset = offset })
            pages[#pages + 1] = names(page)
        until not offset
        assert.same({ "a b", "c" }, pages)
        local all, more = s:list("services", { size = 3 })
        assert.equal("a b c", names(all))
        assert.is_nil(more)
        assert.same({}, (s:list("plugins")))
        assert.equal("a b c", names(s:list("services")))
    end)

    it("pages through what a filter keeps", function()
        local page, offset = s:list("services", { size = 1, tags = "y" })
        assert.equal("a", names(page))
        page, offset = s:list("services", { size = 1, tags = "y", offset = offset })
        assert.equal("b", names(page))
        assert.is_nil(offset)
    end)

    for tags, want in pairs({
        ["y"] = "a b",
        ["x,y"] = "a",
        ["x/y"] = "a b",
        ["x/none"] = "a",
        ["x,none"] = "",
        ["none"] = "",
    }) do
        it("filters by tags " .. tags, function()
            assert.equal(want, names(s:list("services", { tags = tags })))
        end)
    end

    it("filters by fields and references", function()
        local id = snapshot.services[1].id
        assert.equal("r1 r2", names(s:list("routes", { where = { service = id } })))
        assert.equal("r2", names(s:list("routes", { where = { service = id, name = "r2" } })))
        assert.equal("r1", names(s:list("routes", { where = { service = id }, tags = "x" })))
        assert.equal("b", names(s:list("services", { where = { host = "b" } })))
        assert.same({}, (s:list("routes", { where = { service = "none" } })))
    end)

    it("refuses bad questions with a word", function()
        assert.same({ nil, "unknown entity" }, { s:list("nothing") })
        for _, offset in ipairs({ "x", "-1", "1.5", "" }) do
            assert.same({ nil, "invalid offset" }, { s:list("services", { offset = offset }) })
        end
        for _, tags in ipairs({ "a,b/c", "", "a,", "/a" }) do
            assert.same({ nil, "invalid tags" }, { s:list("services", { tags = tags }) })
        end
        assert.same({}, (s:list("services", { offset = "99" })))
    end)

    it("takes an empty snapshot", function()
        local empty = store.new({})
        assert.is_nil(empty:get("services", "a"))
        assert.same({}, (empty:list("services")))
    end)
end)
