--- The entities of a store that has none: rows first, then the indexes, then the references.
--
-- An index that is made of all rows is sorted once; one that grows by the row is searched for each,
-- and ids come in no order. So it takes a third of the time of a transaction (`transaction.lua`),
-- and refuses what that refuses. An image of the rows is gathered on the way, and built while the
-- indexes are made.
-- @module gateway.store.filling

local change_of = require("gateway.store.change")
local new_rows = require("gateway.store.new_rows")
local sqlite = require("gateway.store.sqlite")

local _M = {}

--- Whether a store has no entities.
-- @tparam table db connection
-- @tparam {table,...} layouts
-- @treturn boolean
function _M.is_empty(db, layouts)
    for _, of in ipairs(layouts) do
        if db:row(string.format("SELECT 1 FROM e_%s LIMIT 1", of.kind)) then
            return false
        end
    end
    return true
end

--- Calls fn while SQLite checks no references: it minds that only outside of transactions.
-- @tparam table db
-- @tparam function fn makes a transaction, to its end
-- @return what it returns; throws what it throws
function _M.without_references(db, fn)
    db:run("PRAGMA foreign_keys = OFF")
    local ok, result = pcall(fn)
    if db:in_transaction() then
        pcall(db.run, db, "ROLLBACK")
    end
    db:run("PRAGMA foreign_keys = ON")
    if not ok then
        error(result, 0)
    end
    return result
end

local function refuse(err)
    error({ refused = err }, 0)
end

local function refuse_id(of, id)
    refuse({ err = "invalid", kind = of.kind, field = "id", value = tostring(id) })
end

local function is_constraint(failure)
    return type(failure) == "table" and sqlite.basic(failure.code or 0) == sqlite.CONSTRAINT
end

-- Takes the indexes of a kind away; what they are made of again.
local function drop_indexes(db, of)
    local sql = "SELECT name, sql FROM sqlite_schema "
        .. "WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL"
    local statements = {}
    for i, row in ipairs(db:rows(sql, "e_" .. of.kind)) do
        db:run("DROP INDEX " .. row[1])
        statements[i] = row[2]
    end
    return statements
end

-- What is filled of a kind: how its indexes are made again, and where its rows have references.
local function begin_kind(self, of)
    local filled = { of = of, statements = drop_indexes(self.db, of), references = {} }
    for i, column in ipairs(of.columns) do
        if column.role == "foreign" then
            filled.references[#filled.references + 1] = { value = i, kind = column.reference }
        end
    end
    self.filled[#self.filled + 1] = filled
    return filled
end

-- The second entity, in their order, that has a value of a column.
local function find_double(db, of, column)
    local sql = "SELECT id, text FROM e_%s WHERE %s IN (SELECT %s FROM e_%s WHERE %s IS NOT NULL "
        .. "GROUP BY %s HAVING count(*) > 1 LIMIT 1) ORDER BY sequence LIMIT 1 OFFSET 1"
    return db:row((sql:gsub("e_%%s", "e_" .. of.kind):gsub("%%s", column)))
end

-- Which value that has to be unique is not.
local function refuse_double(db, of)
    local double = find_double(db, of, "id")
    if double then
        refuse_id(of, double[1])
    end
    for _, column in ipairs(of.columns) do
        double = column.role == "unique" and find_double(db, of, column.column)
        if double then
            refuse(change_of.violation(of, column, double[2]))
        end
    end
end

local function create_indexes(db, filled)
    for _, sql in ipairs(filled.statements) do
        local ok, failure = pcall(db.run, db, sql)
        if not ok then
            if is_constraint(failure) then
                refuse_double(db, filled.of)
            end
            error(failure, 0)
        end
    end
end

local function check_references(db, of)
    for _, column in ipairs(of.columns) do
        local sql = column.role == "foreign"
            and string.format(
                "SELECT c.id, c.%s FROM e_%s c LEFT JOIN e_%s p ON p.id = c.%s "
                    .. "WHERE c.%s IS NOT NULL AND p.id IS NULL ORDER BY c.sequence LIMIT 1",
                column.column,
                of.kind,
                column.reference,
                column.column,
                column.column
            )
        local broken = sql and db:row(sql)
        if broken then
            refuse({
                err = "reference missing",
                kind = of.kind,
                field = column.fields[1],
                value = broken[2],
                id = broken[1],
            })
        end
    end
end

local function insert(rows, of, change, revision)
    local ok, slot, generation, sequence = pcall(rows.insert, rows, of, change, revision)
    if not ok then
        -- A file of an older version, whose ids are unique without an index that can be dropped.
        if is_constraint(slot) then
            refuse_id(of, change.id)
        end
        error(slot, 0)
    end
    return slot, generation, sequence
end

-- The slots of what a row refers to, into `place`. Whether all of it has come.
local function find_references(self, filled, values, place)
    for i = 1, #filled.references do
        local reference = filled.references[i]
        local id, slots = values[reference.value], self.slots[reference.kind]
        local slot = id and slots and slots[id] or false
        if id and not slot then
            return false
        end
        place[i] = slot
    end
    return true
end

local function put(self, filled, change, revision)
    local of, place = filled.of, self.place
    local slot, generation, sequence = insert(self.rows, of, change, revision)
    local slots = self.slots[of.kind]
    if slots then
        slots[change.id] = slot
    end
    self.is_sure = self.is_sure and find_references(self, filled, change.values, place.references)
    if self.image and self.is_sure then
        place.slot, place.generation, place.sequence = slot, generation, sequence
        place.revision = revision
        self.image:add(of, change, place)
    end
end

-- kind -> id -> slot, of the kinds that others refer to.
local function referred(by_kind)
    local slots = {}
    for _, of in pairs(by_kind) do
        for _, column in ipairs(of.columns) do
            if column.role == "foreign" then
                slots[column.reference] = slots[column.reference] or {}
            end
        end
    end
    return slots
end

-- The indexes, and the references, unless each was seen to be right.
local function finish(self)
    for _, filled in ipairs(self.filled) do
        create_indexes(self.db, filled)
    end
    for _, filled in ipairs(self.is_sure and {} or self.filled) do
        check_references(self.db, filled.of)
    end
    self.rows:finish()
end

--- Puts entities into a store that has none. Throws as `transaction.make`.
-- @tparam table db connection, in a transaction, whose references SQLite does not check
-- @tparam table by_kind kind -> layout
-- @tparam {table,...} changes upserts, each with its `sequence`
-- @tparam[opt] table opts `packing` of gateway.store.database; `image`, which has `add(layout,
-- change, place)` called for each, as gateway.image.rows has it, and `finish(revision)` before the
-- indexes are made. Where an entity stands before one that it refers to, it is not finished
-- @treturn number the revision of these changes, or the last one where there are none
function _M.make(db, by_kind, changes, opts)
    local revision = db:row("SELECT revision FROM meta")[1]
    local self = {
        db = db,
        image = opts.image,
        rows = new_rows.begin(db),
        filled = {},
        slots = referred(by_kind),
        place = { references = {} },
        is_sure = true,
    }
    if #changes == 0 then
        return revision
    end
    -- First: what writes the history notes it with each row.
    db:run("UPDATE meta SET revision = ?", revision + 1)
    local of_kind = {}
    for _, given in ipairs(changes) do
        local of = by_kind[given.kind]
        if not of then
            refuse({ err = "unknown kind", kind = given.kind })
        end
        of_kind[of] = of_kind[of] or begin_kind(self, of)
        local change, err = change_of.brief(given, of, opts.packing)
        if not change then
            refuse(err)
        end
        put(self, of_kind[of], change, revision + 1)
    end
    if self.image and self.is_sure then
        self.image:finish(revision + 1)
    end
    finish(self)
    return revision + 1
end

return _M
