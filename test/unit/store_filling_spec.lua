--- What fills an empty store, beside transactions: the same rows, the same refusals.
--- `SEED` repeats a run.

local layout = require("gateway.store.layout")
local sqlite = require("gateway.store.sqlite")
local support = require("test.unit.support.store")

local ROUNDS = 60
local seed = require("test.unit.support.seed")("store_filling")
local ID = { id = { type = "string" } }
local NAME = { name = { type = "string", unique = true } }
local TAGS = { tags = { type = "set" } }
local SCHEMAS = {
    { name = "parents", endpoint_key = "name", fields = { ID, NAME, TAGS } },
    {
        name = "things",
        endpoint_key = "label",
        cache_key = { "parent", "label" },
        fields = {
            ID,
            { parent = { type = "foreign", reference = "parents", on_delete = "cascade" } },
            { label = { type = "string" } },
            { code = { type = "string", unique = true, encrypted = true } },
        },
    },
}
local LAYOUTS = layout.derive(SCHEMAS)
local COLUMNS =
    { "id", "text", "sequence", "slot", "generation", "revision", "created_at", "updated_at" }

local function open(path)
    return assert(support.open(path, { layouts = LAYOUTS }))
end

local function draw_items(random)
    local items = {}
    local function add(kind, entity)
        entity.created_at, entity.updated_at = random(9), random(2) == 1 and random(9) or nil
        items[#items + 1] = { kind = kind, put = entity }
    end
    local parents, things = random(0, 8), random(0, 8)
    for i = 1, parents do
        local tags = random(2) == 1 and { "t" .. random(3), "u" } or nil
        add("parents", { id = "p" .. i, name = random(3) > 1 and "n" .. i or nil, tags = tags })
    end
    for i = 1, things do
        local parent = parents > 0 and random(2) == 1 and support.to("p" .. random(parents)) or nil
        add("things", { id = "t" .. i, parent = parent, label = "l" .. i, code = "c" .. i })
    end
    return items
end

-- One thing that cannot be stored, of the last entity that can have it.
local FAULTS = {
    function(items)
        items[#items].put.id = items[1].kind == items[#items].kind and items[1].put.id or nil
    end,
    function(items)
        items[1].put.name, items[#items].put.name = "same", "same"
    end,
    function(items)
        items[#items].put.parent = support.to("nobody")
    end,
    function(items)
        items[#items - 1].put.code, items[#items].put.code = "secret", "secret"
    end,
    function(items)
        local one, other = items[#items - 1].put, items[#items].put
        one.parent, other.parent, other.label = nil, nil, one.label
    end,
    function(items)
        items[#items].kind = "strangers"
    end,
    function(items)
        items[#items].put.value = 1 / 0
    end,
    function(items)
        items[#items].put.parent = { name = "p1" }
    end,
}

-- By a transaction: the sequences that `replace` counts are told it.
local function transact(s, items)
    local changes, counts = {}, {}
    for i, item in ipairs(items) do
        counts[item.kind] = (counts[item.kind] or 0) + 1
        changes[i] = { kind = item.kind, put = item.put, sequence = counts[item.kind] }
    end
    return s:transaction(changes)
end

local function rows(s)
    local found = {}
    for _, of in ipairs(LAYOUTS) do
        for _, row in ipairs(s:list(of.kind, { size = 100 })) do
            for _, column in ipairs(COLUMNS) do
                found[#found + 1] = tostring(row[column])
            end
        end
    end
    for _, tag in ipairs({ "t1", "t2", "t3", "u" }) do
        found[#found + 1] = support.ids((s:list("parents", { tags = tag, size = 100 })))
    end
    return found
end

describe("the filling of an empty store", function()
    after_each(support.clean)

    it("makes what a transaction makes, and refuses what that refuses", function()
        math.randomseed(seed)
        local refusals = 0
        for round = 1, ROUNDS do
            local items = draw_items(math.random)
            if #items > 2 and math.random(2) == 1 then
                FAULTS[math.random(#FAULTS)](items)
            end
            local filled, other = open(), open()
            local done, err = filled:replace(items)
            local other_done, other_err = transact(other, items)
            local label = ("seed %d, round %d"):format(seed, round)
            assert.same(other_err, err, label)
            assert.same(other_done and other_done.revision, done and done.revision, label)
            assert.same(rows(other), rows(filled), label)
            assert.is_true(filled:check())
            refusals = refusals + (err and 1 or 0)
            filled:close()
            other:close()
        end
        assert.is_true(refusals > 10)
    end)

    it("leaves a store that keeps references and unique names", function()
        local s = open()
        local parent = { kind = "parents", put = { id = "p", name = "n" } }
        assert(
            s:replace({ parent, { kind = "things", put = { id = "t", parent = { id = "p" } } } })
        )
        local _, err = s:transaction({ support.put("parents", { id = "q", name = "n" }) })
        assert.equal("unique violation", err.err)
        _, err = s:transaction({ support.put("things", { id = "u", parent = { id = "x" } }) })
        assert.equal("reference missing", err.err)
        assert(s:transaction({ support.delete("parents", "p") }))
        assert.same({}, (s:list("things")))
        s:close()
    end)

    it("does the same after a refusal", function()
        local s = open()
        local _, err = s:replace({ { kind = "things", put = { id = "t", parent = { id = "p" } } } })
        assert.equal("reference missing", err.err)
        _, err = s:transaction({ support.put("things", { id = "t", parent = { id = "p" } }) })
        assert.equal("reference missing", err.err)
        assert.equal(0, s:revision().revision)
        s:close()
    end)

    it("fills a file of an older version, whose ids are unique by its tables", function()
        local path = support.folder() .. "/store.db"
        open(path):close()
        local db = sqlite.open(path)
        db:run("DROP TABLE e_things")
        db:run([[CREATE TABLE e_things (sequence INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE,
            slot INTEGER NOT NULL UNIQUE, generation INTEGER NOT NULL, revision INTEGER NOT NULL,
            created_at REAL, updated_at REAL, text TEXT NOT NULL, packed BLOB,
            f_parent_cascade TEXT, n_label TEXT, u_code TEXT, k_parent_label TEXT)]])
        db:close()
        os.remove(path .. ".witness")
        local s = open(path)
        local thing = { kind = "things", put = { id = "t" } }
        local _, err = s:replace({ thing, { kind = "things", put = { id = "t", label = "l" } } })
        assert.same({ err = "invalid", kind = "things", field = "id", value = "t" }, err)
        assert(s:replace({ thing }))
        assert.equal("t", support.ids(s:list("things")))
        s:close()
    end)
end)
