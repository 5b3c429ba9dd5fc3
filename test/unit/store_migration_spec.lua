--- Stores whose schemas change: a newer Sluice, an older one that comes back, a plugin that comes
--- and goes.

local database = require("gateway.store.database")
local layout = require("gateway.store.layout")
local support = require("test.unit.support.store")

local put, delete, to = support.put, support.delete, support.to

local ID = { id = { type = "string" } }

local function schema(name, ...)
    return { name = name, endpoint_key = "name", fields = { ID, ... } }
end

local NAME = { name = { type = "string", unique = true } }
local CODE = { code = { type = "string", unique = true } }
local TAGS = { tags = { type = "set" } }
local PARENT = { parent = { type = "foreign", reference = "parents" } }
local PARENT_CASCADE =
    { parent = { type = "foreign", reference = "parents", on_delete = "cascade" } }

describe("a store of other schemas", function()
    local path

    before_each(function()
        path = support.folder() .. "/store/store.db"
    end)

    after_each(support.clean)

    local function with(schemas, fn)
        local s, err = database.open(path, { layouts = layout.derive(schemas) })
        assert.is_truthy(s, err and err.message)
        fn(s)
        assert.is_true(s:check())
        s:close()
    end

    local old = { schema("parents", NAME), schema("things", NAME) }
    local new = {
        schema("parents", NAME),
        schema("things", NAME, CODE, TAGS, PARENT_CASCADE),
        schema("others", PARENT),
    }

    it("fills new columns, tags and references from what is there", function()
        with(old, function(s)
            assert(s:transaction({
                put("parents", { id = "p" }),
                put("things", { id = "a", code = "1", tags = { "x" }, parent = to("p") }),
                put("things", { id = "b", code = "2" }),
            }))
        end)
        with(new, function(s)
            assert.equal("a", support.ids(s:list("things", { tags = "x" })))
            assert.equal("a", support.ids(s:list("things", { where = { parent = "p" } })))
            local _, err = s:transaction({ put("things", { id = "c", code = "2" }) })
            assert.equal("unique violation", err.err)
            assert(s:transaction({ delete("parents", "p") }))
            assert.equal("b", support.ids(s:list("things")))
        end)
    end)

    it("lets an older one work, and takes up what that did", function()
        with(new, function(s)
            assert(s:transaction({
                put("parents", { id = "p" }),
                put("parents", { id = "q" }),
                put("things", { id = "a", code = "1", tags = { "x" }, parent = to("p") }),
                put("things", { id = "b", code = "2", parent = to("q") }),
                put("others", { id = "o", parent = to("q") }),
            }))
        end)
        with(old, function(s)
            assert(s:transaction({
                put("things", { id = "a", code = "2", tags = { "y" } }),
                put("things", { id = "b", code = "1" }),
                delete("parents", "p"),
            }))
            -- of a kind that it does not know
            local _, err = s:transaction({ delete("parents", "q") })
            assert.equal("referenced", err.err)
            assert.equal("others", err.by)
        end)
        with(new, function(s)
            assert.equal("a", support.ids(s:list("things", { tags = "y" })))
            assert.equal("", support.ids(s:list("things", { tags = "x" })))
            assert.equal("", support.ids(s:list("things", { where = { parent = "p" } })))
            assert.equal("b", support.ids(s:list("things", { where = { code = "1" } })))
            assert.equal("o", support.ids(s:list("others")))
        end)
    end)

    it("changes what a deletion does", function()
        with({ schema("parents", NAME), schema("things", PARENT) }, function(s)
            assert(s:transaction({
                put("parents", { id = "p" }),
                put("things", { id = "a", parent = to("p") }),
            }))
            assert.equal("referenced", select(2, s:transaction({ delete("parents", "p") })).err)
        end)
        with({ schema("parents", NAME), schema("things", PARENT_CASCADE) }, function(s)
            assert(s:transaction({ delete("parents", "p") }))
            assert.equal("", support.ids(s:list("things")))
        end)
    end)

    it("refuses schemas that the entities do not fit, and changes nothing", function()
        with(old, function(s)
            assert(s:transaction({
                put("things", { id = "a", code = "1", parent = to("none") }),
                put("things", { id = "b", code = "1" }),
            }))
        end)
        for reason, schemas in pairs({
            ["code of 'things' cannot be made unique"] = { schema("things", NAME, CODE) },
            ["an entity refers to none"] = { schema("parents"), schema("things", PARENT) },
        }) do
            local s, err = database.open(path, { layouts = layout.derive(schemas) })
            assert.is_nil(s)
            assert.equal("schema", err.err)
            assert.truthy(err.message:find(reason, 1, true), err.message)
        end
        with(old, function(s)
            assert.equal("a b", support.ids(s:list("things")))
        end)
    end)

    it("reads what is there where it only reads", function()
        with(old, function(s)
            assert(s:transaction({ put("things", { id = "a", code = "1", name = "n" }) }))
        end)
        local s = assert(database.open(path, { layouts = layout.derive(new), read_only = true }))
        assert.equal("a", s:get("things", "n").id)
        assert.equal("unknown kind", select(2, s:list("others")).err)
        assert.equal("unknown field", select(2, s:list("things", { where = { code = "1" } })).err)
        s:close()
    end)
end)
