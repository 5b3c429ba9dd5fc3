--- The entities of a store that has none: rows first, then the indexes, then the references.
--
-- An index that is made of all rows is sorted once; one that grows by the row is searched for each,
-- and ids come in no order. So it takes a third of the time of a transaction (`transaction.lua`),
-- and refuses what that refuses.
-- @module gateway.store.filling

local change_of = require("gateway.store.change")
local new_rows = require("gateway.store.new_rows")
local sqlite = require("gateway.store.sqlite")

local error = error
local format = string.format
local ipairs = ipairs
local pcall = pcall
local tostring = tostring
local type = type

local _M = {}

--- Whether a store has no entities.
-- @tparam table db connection
-- @tparam {table,...} layouts
-- @treturn boolean
function _M.is_empty(db, layouts)
    for _, of in ipairs(layouts) do
        if db:row(format("SELECT 1 FROM e_%s LIMIT 1", of.kind)) then
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
    return { of = of, statements = statements }
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
            and format(
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
    local ok, failure = pcall(rows.insert, rows, of, change, revision)
    if not ok then
        -- A file of an older version, whose ids are unique without an index that can be dropped.
        if is_constraint(failure) then
            refuse_id(of, change.id)
        end
        error(failure, 0)
    end
end

--- Puts entities into a store that has none. Throws as `transaction.make`.
-- @tparam table db connection, in a transaction, whose references SQLite does not check
-- @tparam table by_kind kind -> layout
-- @tparam {table,...} changes upserts, each with its `sequence`
-- @tparam[opt] table packing of gateway.store.database
-- @treturn number the revision of these changes, or the last one where there are none
function _M.make(db, by_kind, changes, packing)
    local revision = db:row("SELECT revision FROM meta")[1]
    local rows, filled, seen = new_rows.begin(db), {}, {}
    for _, given in ipairs(changes) do
        local of = by_kind[given.kind]
        if not of then
            refuse({ err = "unknown kind", kind = given.kind })
        elseif not seen[of] then
            seen[of] = true
            filled[#filled + 1] = drop_indexes(db, of)
        end
        local change, err = change_of.brief(given, of, packing)
        if not change then
            refuse(err)
        end
        insert(rows, of, change, revision + 1)
    end
    for _, it in ipairs(filled) do
        create_indexes(db, it)
    end
    for _, it in ipairs(filled) do
        check_references(db, it.of)
    end
    if #filled == 0 then
        return revision
    end
    rows:finish()
    db:run("UPDATE meta SET revision = ?", revision + 1)
    return revision + 1
end

return _M
