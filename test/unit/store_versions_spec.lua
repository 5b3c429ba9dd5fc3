--- Stores that another version of Sluice has written: an older one's is taken up, and in a newer
--- one's what nobody here knows is left alone.

local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local files = require("test.house.files")
local layout = require("gateway.store.layout")
local sqlite = require("gateway.store.sqlite")
local support = require("test.unit.support.store")
local writers = require("test.unit.support.writer")

local put, delete = support.put, support.delete

local OLDER = "test/unit/stores/older.sql"

-- What a newer Sluice may add (docs/store.md): to each table a column with a default, tables, and a
-- trigger of its own.
local function additions(db)
    local found = {}
    for _, row in ipairs(db:rows("SELECT name FROM sqlite_schema WHERE type = 'table'")) do
        found[#found + 1] = ("ALTER TABLE %s ADD COLUMN newer TEXT NOT NULL DEFAULT 'new'"):format(
            row[1]
        )
    end
    found[#found + 1] = "CREATE TABLE newer (id TEXT, note TEXT NOT NULL)"
    found[#found + 1] = "INSERT INTO newer VALUES ('x', 'kept')"
    found[#found + 1] = [[INSERT INTO kind (name, space, columns) VALUES ('newer', 'newer', '[]')]]
    found[#found + 1] = [[CREATE TRIGGER newer_services AFTER INSERT ON e_services BEGIN
        INSERT INTO newer VALUES (NEW.id, 'seen'); END]]
    return found
end

-- The statements of a dump: a trigger has some within.
local function statements(path)
    local found, lines, in_trigger = {}, {}, false
    local dump = files
        .read(path)
        :gsub("%-%- Each kind: ([^\n]+)\n(.-)%-%- End\n", function(kinds, text)
            return (
                kinds:gsub(" ?([%w_]+)", function(kind)
                    return (text:gsub("@", kind))
                end)
            )
        end)
    for line in dump:gmatch("[^\n]+") do
        in_trigger = in_trigger or line:find("^CREATE TRIGGER") ~= nil
        lines[#lines + 1] = line
        local is_end = in_trigger and line:find("END;$") or not in_trigger and line:find(";$")
        if is_end then
            found[#found + 1] = table.concat(lines, "\n")
            lines, in_trigger = {}, false
        end
    end
    return found
end

describe("a store of another version", function()
    local place

    before_each(function()
        place = writers.place({
            layouts = layout.derive(entities.stored(), entities.of_plugins()),
            history = 100,
        })
    end)

    after_each(support.clean)

    local function by_sql(list)
        local db = sqlite.open(place.store)
        for _, sql in ipairs(type(list) == "function" and list(db) or list) do
            db:run(sql)
        end
        db:close()
    end

    local function opened(fn)
        local s, err = support.open(place.store, { history = 100 })
        assert.is_truthy(s, err and err.message)
        fn(s)
        assert.is_true(s:check())
        s:close()
    end

    -- A writer opens it, and makes an image of what it holds.
    local function is_live()
        local writer = writers.open(place)
        writer:close()
    end

    local function older()
        os.execute("mkdir -p " .. place.store:match("^(.*)/"))
        io.open(place.store, "w"):close()
        by_sql(statements(OLDER))
    end

    it("is an older one's: what it holds is taken up, and lived with", function()
        older()
        is_live()
        opened(function(s)
            local route = entity_text.decode(assert(s:get("routes", "orders")).text)
            assert.same({ "/orders" }, route.paths)
            assert(s:get("keyauth_credentials", "alices-key"))
            assert.equal(1, #assert(s:list("services", { tags = "a" })))
            assert.equal(2, #assert(s:list("plugins", {})))
            local before = s:revision().revision
            assert(s:transaction({
                put("consumer_groups", { id = support.uuid(1), name = "g" }),
                delete("plugins", assert(s:list("plugins", {}))[1].id),
            }))
            assert.equal(before + 1, assert(s:changes_made({ size = 1 }))[1].revision)
            assert(s:transaction(assert(s:changes_back(before))))
            assert.equal(2, #assert(s:list("plugins", {})))
        end)
        is_live()
    end)

    it("is a newer one's: what nobody here knows stays as it is", function()
        older()
        is_live()
        by_sql(additions)
        is_live()
        local backup = place.store .. ".copy"
        opened(function(s)
            local service = assert(s:get("services", "shop"))
            local text = service.text:gsub("^{", '{"newer_field":{"a":1},')
            local other = entity_text.decode(service.text)
            other.id, other.name, other.tags = support.uuid(2), "other", { "t" }
            assert(s:transaction({ { kind = "services", put = text } }))
            assert(s:transaction({
                put("services", other),
                put("consumer_groups", { id = support.uuid(3), name = "g", tags = { "t" } }),
            }))
            local now = s:revision().revision
            assert(s:transaction({ delete("services", support.uuid(2)) }))
            assert(s:release(now + 1))
            assert(s:compact(now + 1))
            assert(s:transaction(assert(s:changes_back(now))))
            assert.equal("other", entity_text.decode(s:get("services", "other").text).name)
            assert(s:backup(backup))
        end)
        by_sql(function(db)
            assert.equal("kept", db:row("SELECT note FROM newer WHERE id = 'x'")[1])
            -- the service came twice: at first, and back
            local sql = "SELECT count(*) FROM newer WHERE id = ?"
            assert.equal(2, db:row(sql, support.uuid(2))[1])
            assert.equal("new", db:row("SELECT newer FROM e_services LIMIT 1")[1])
            assert.equal("new", db:row("SELECT newer FROM meta")[1])
            local text = db:row("SELECT text FROM e_services WHERE u_name = 'shop'")[1]
            assert.truthy(text:find('"newer_field"', 1, true))
            return {}
        end)
        place.store = backup
        is_live()
    end)
end)
