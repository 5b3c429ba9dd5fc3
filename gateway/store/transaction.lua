--- The changes of one transaction, made in the savepoint of the caller.
--
-- A transaction is a set: what counts is the state after it. Two entities can swap their names,
-- and a parent can go together with the child that moves elsewhere. Hence the order: what existing
-- entities had that is unique is put aside, then deletions, then upserts; references are looked at
-- last, by SQLite's own count of broken ones.
-- @module gateway.store.transaction

local change_of = require("gateway.store.change")
local entity_text = require("gateway.store.entity_text")
local list_checks = require("gateway.store.list_checks")
local new_rows = require("gateway.store.new_rows")
local reading = require("gateway.store.reading")
local sqlite = require("gateway.store.sqlite")
local tables = require("gateway.store.tables")

local concat = table.concat
local format = string.format

-- e_<kind>'s columns before those of the layout
local OWN = 4
local OWN_COLUMNS = "sequence, created_at, updated_at, text"
-- of these
local CREATED_AT, UPDATED_AT = 2, 3
local TOUCH = "UPDATE e_%s SET revision = ?, created_at = ?, updated_at = ?, text = ?, packed = ?"

local _M = {}

local function refuse(err)
    error({ refused = err }, 0)
end

-- Statements of a kind, written once: layout -> { select, touch, update, park, delete }. SQLite
-- writes an index anew that has a column which is set, whatever the value, and all of them where
-- the sequence is: `touch` is for a row whose place and columns stay.
local written = setmetatable({}, { __mode = "k" })

local function statements(of)
    local sql = written[of]
    if sql then
        return sql
    end
    local names, sets, parked = {}, {}, { "sequence = ?" }
    for i, column in ipairs(of.columns) do
        names[i] = ", " .. column.column
        sets[i] = ", " .. column.column .. " = ?"
        if column.role ~= "name" then
            parked[#parked + 1] = column.column .. " = NULL"
        end
    end
    local columns = concat(names)
    sql = {
        select = format("SELECT %s%s FROM e_%s WHERE id = ?", OWN_COLUMNS, columns, of.kind),
        touch = format(TOUCH .. " WHERE sequence = ?", of.kind),
        update = format(TOUCH .. "%s, sequence = ? WHERE sequence = ?", of.kind, concat(sets)),
        park = format("UPDATE e_%s SET %s WHERE sequence = ?", of.kind, concat(parked, ", ")),
        delete = format("DELETE FROM e_%s WHERE id = ?", of.kind),
    }
    written[of] = sql
    return sql
end

local function prepare_put(given, of, packing)
    local found, err = change_of.complete(given, of, packing)
    if not found then
        refuse(err)
    end
    local sequence = given.sequence
    if sequence and (type(sequence) ~= "number" or sequence < 1 or sequence % 1 ~= 0) then
        local value = tostring(sequence)
        refuse({ err = "invalid", kind = of.kind, field = "sequence", value = value })
    end
    return {
        of = of,
        id = found.id,
        put = found.put,
        values = found.values,
        tags = found.tags,
        created_at = found.created_at,
        updated_at = found.updated_at,
        undated = found.undated,
        packed = found.packed,
        sequence = sequence,
    }
end

-- Dates that nobody gave are those of the entity that is there: when it was made, and when it was
-- changed unless it is now.
local function keep_dates(change)
    local old, undated = change.old, change.undated
    local created_at = undated.created_at and old[CREATED_AT] or change.created_at
    local updated_at = undated.updated_at and old[UPDATED_AT] or change.updated_at
    local text = entity_text.with_dates(change.put, created_at, updated_at)
    if text ~= old[OWN] then
        updated_at = change.updated_at
        text = entity_text.with_dates(change.put, created_at, updated_at)
    end
    change.put, change.created_at, change.updated_at = text, created_at, updated_at
end

-- Whether place and columns are those that the entity has already.
local function stays(change)
    local old = change.old
    if (change.sequence or old[1]) ~= old[1] then
        return false
    end
    for i = 1, #change.of.columns do
        if old[OWN + i] ~= change.values[i] then
            return false
        end
    end
    return true
end

local function is_unchanged(change)
    return change.old[OWN] == change.put and stays(change)
end

-- The ids of a kind that the changes have named so far.
local function named_of(named, of)
    named[of.kind] = named[of.kind] or {}
    return named[of.kind]
end

-- The name of an entity that is there.
local function name_of(change)
    for i, column in ipairs(change.of.columns) do
        if column.is_name then
            return change.old[OWN + i]
        end
    end
    return nil
end

-- What a given change comes to: `of`, its kind's layout; `id`; `old`, the row that is there; and
-- what the new one has, where it is put.
local function prepare(db, by_kind, given, named, packing)
    local of = by_kind[given.kind]
    if not of then
        refuse({ err = "unknown kind", kind = given.kind })
    end
    local change = given.put and prepare_put(given, of, packing) or { of = of, id = given.delete }
    local ids = named_of(named, of)
    if type(change.id) ~= "string" or ids[change.id] then
        refuse({ err = "invalid", kind = of.kind, field = "id", value = tostring(change.id) })
    end
    ids[change.id] = true
    change.old = db:row(statements(of).select, change.id)
    if change.undated and change.old then
        keep_dates(change)
    end
    if not given.put and not change.old and not given.lenient then
        refuse({ err = "not found", kind = of.kind, field = "id", value = change.id })
    end
    local is_there = change.old ~= nil
    change.is_same = given.put and is_there and (given.lenient or is_unchanged(change))
        or (not given.put and not is_there)
        or (given.if_unused and is_there and reading.is_used(db, of, name_of(change)))
        or (given.if_expired and is_there and not reading.is_expired(db, of, change.id))
    return change
end

-- Deletes what the changes have not named.
local function prepare_deletions(db, layouts, named, list)
    for _, of in ipairs(layouts) do
        local ids = named_of(named, of)
        for _, row in ipairs(db:rows(format("SELECT id FROM e_%s", of.kind))) do
            if not ids[row[1]] then
                list[#list + 1] = { of = of, id = row[1] }
            end
        end
    end
end

-- Puts aside what an entity must not have while others are changed: unique values, its place, and
-- references, so that it does not go with what it refers to. It gets its new ones with the rest.
local function park(db, change)
    local of, old = change.of, change.old
    local is_there = (change.sequence or old[1]) == old[1]
    local needed = not is_there
    for i, column in ipairs(of.columns) do
        local is_held = column.role == "foreign" or old[OWN + i] ~= change.values[i]
        needed = needed or (column.role ~= "name" and old[OWN + i] ~= nil and is_held)
    end
    if needed then
        change.at = is_there and old[1] or -old[1]
        db:run(statements(of).park, change.at, old[1])
    end
end

-- Which unique value an entity cannot have.
local function find_taken(db, change)
    local of = change.of
    for i, column in ipairs(of.columns) do
        local sql = format("SELECT id FROM e_%s WHERE %s = ?", of.kind, column.column)
        local other = column.role == "unique" and change.values[i] and db:row(sql, change.values[i])
        if other and other[1] ~= change.id then
            return change_of.violation(of, column, change.put)
        end
    end
    return {
        err = "unique violation",
        kind = of.kind,
        id = change.id,
        field = "sequence",
        value = tostring(change.sequence),
    }
end

local function put_tags(db, change, sequence)
    local of = change.of
    -- Text that only looks so costs a deletion of nothing.
    if string.find(change.old[OWN], '"tags":', 1, true) then
        db:run(format("DELETE FROM t_%s WHERE sequence = ?", of.kind), sequence)
    end
    tables.add_tags(db, of.kind, sequence, change.tags or {})
end

-- The entity that is there, as it is now. Its place, which may be another.
local function update(db, change, revision, rows)
    local of, values, old = change.of, change.values, change.old
    local sequence = change.sequence and rows:take_sequence(change.sequence) or old[1]
    local packed = change.packed and { bytes = change.packed }
    local row = { revision, change.created_at, change.updated_at, change.put, packed }
    if not change.at and stays(change) then
        row[6] = sequence
        db:run_with(statements(of).touch, row, 6)
    else
        local n = #of.columns
        for i = 1, n do
            row[5 + i] = values[i]
        end
        row[6 + n], row[7 + n] = sequence, change.at or old[1]
        db:run_with(statements(of).update, row, 7 + n)
    end
    if of.has_tags then
        put_tags(db, change, sequence)
    end
end

local function put_row(db, change, revision, rows)
    if change.old then
        update(db, change, revision, rows)
    else
        rows:insert(change.of, change, revision)
    end
end

local function put(db, change, revision, rows)
    local ok, failure = pcall(put_row, db, change, revision, rows)
    if not ok then
        if type(failure) == "table" and sqlite.basic(failure.code or 0) == sqlite.CONSTRAINT then
            refuse(find_taken(db, change))
        end
        error(failure, 0)
    end
end

-- Takes a reference away from an entity.
local function clear_reference(db, of, name, row, to)
    local entity = entity_text.decode(row[2])
    entity[name] = nil
    local change = prepare_put({ kind = of.kind, put = entity_text.encode(entity) }, of, to.packing)
    change.old = db:row(statements(of).select, row[1])
    put(db, change, to.revision, to.rows)
end

-- Takes references to what is gone away, where their kind wants that (`on_delete = "null"`); not
-- from what is put, which refers to what is not there. How many these are.
local function clear_references(db, of, column, id, to)
    local sql = format("SELECT id, text FROM e_%s WHERE %s = ?", of.kind, column.column)
    local is_put, count = named_of(to.named, of), 0
    for _, row in ipairs(db:rows(sql, id)) do
        if not is_put[row[1]] then
            clear_reference(db, of, column.fields[1], row, to)
            count = count + 1
        end
    end
    return count
end

-- How many these are of all kinds. `to`: `revision`, `rows`, `packing`, and what the changes have
-- `named`.
local function clear_all(db, by_kind, to)
    local gone, count = nil, 0
    for _, of in pairs(by_kind) do
        for _, column in ipairs(of.columns) do
            local is_cleared = column.role == "foreign" and column.on_delete == "null"
            gone = gone or is_cleared and _M.gone(db, to.revision)
            for _, other in ipairs(is_cleared and gone or {}) do
                if other.kind == column.reference then
                    count = count + clear_references(db, of, column, other.id, to)
                end
            end
        end
    end
    return count
end

-- Which upsert refers to none.
local function check_references(db, change)
    for i, column in ipairs(change.of.columns) do
        local id = column.role == "foreign" and change.values and change.values[i]
        local sql = id and format("SELECT 1 FROM e_%s WHERE id = ?", column.reference)
        if id and not db:row(sql, id) then
            refuse({
                err = "reference missing",
                kind = change.of.kind,
                field = column.fields[1],
                value = id,
                id = change.id,
            })
        end
    end
end

-- Which entity that is gone, cascades among them, others still refer to.
local function check_gone(db, revision)
    for _, row in ipairs(db:rows("SELECT kind, id FROM gone WHERE revision = ?", revision)) do
        for _, referrer in ipairs(tables.referrers(db, row[1])) do
            local sql = "SELECT id FROM e_%s WHERE %s = ? LIMIT 1"
            local child = db:row(format(sql, referrer.kind, referrer.column), row[2])
            if child then
                refuse({
                    err = "referenced",
                    kind = row[1],
                    field = "id",
                    value = row[2],
                    by = referrer.kind,
                    by_id = child[1],
                })
            end
        end
    end
end

-- Of entities that are to stay as they are: whether one went with what it refers to.
local function check_same(db, same)
    for _, change in ipairs(same) do
        if
            change.put
            and not db:row(format("SELECT 1 FROM e_%s WHERE id = ?", change.of.kind), change.id)
        then
            check_references(db, change)
        end
    end
end

local function check(db, list, revision)
    if not db:has_broken_references() then
        return
    end
    for _, change in ipairs(list) do
        check_references(db, change)
    end
    check_gone(db, revision)
    error("a broken reference that nobody has", 0)
end

--- What a revision deleted, what went by cascade among it.
-- @tparam table db
-- @tparam number revision
-- @treturn {table,...} `{ kind =, id = }`
function _M.gone(db, revision)
    local list = {}
    for i, row in ipairs(db:rows("SELECT kind, id FROM gone WHERE revision = ?", revision)) do
        list[i] = { kind = row[1], id = row[2] }
    end
    return list
end

--- Checks that entities are still what was read, or that there is still none (`if_revision` 0).
-- Throws as `make`.
-- @tparam table db
-- @tparam table by_kind
-- @tparam {table,...} changes
function _M.check_revisions(db, by_kind, changes)
    for _, change in ipairs(changes) do
        local of = change.if_revision and by_kind[change.kind]
        if of then
            local id = change.delete or change.id
            local row = reading.get(db, of, id)
            local revision = row and row.id == id and row.revision or 0
            if revision ~= change.if_revision then
                refuse({ err = "changed", kind = change.kind, field = "id", value = id })
            end
        end
    end
end

--- Makes the changes. Throws `{ refused = err }` where they cannot be made, a failure of
-- gateway.store.sqlite where the disk does not do its part; the caller rolls back.
-- @tparam table db connection, in a savepoint
-- @tparam table by_kind kind -> layout
-- @tparam number revision that the store has so far
-- @tparam {table,...} changes `{ kind =, put = text, sequence = }` or `{ kind =, delete = id }`,
-- both with `lenient` where it is no error that there is one already, or none; a deletion with
-- `if_unused` where it is to be made only if nobody has the name, or `if_expired`
-- @tparam[opt] {table,...} only layouts of kinds whose other entities are all deleted
-- @tparam[opt] table packing of gateway.store.database
-- @treturn number the revision of these changes, or the last one where they change nothing
-- @treturn {table,...} for each change what it came to: `undated`, `created_at`, `updated_at`
-- @treturn number|nil how many references were taken away with what they led to
function _M.make(db, by_kind, revision, changes, only, packing)
    local all, list, same, named, has_deletions = {}, {}, {}, {}, false
    for i, given in ipairs(changes) do
        local change = prepare(db, by_kind, given, named, packing)
        all[i] = change
        local into = change.is_same and same or list
        into[#into + 1] = change
    end
    prepare_deletions(db, only or {}, named, list)
    if #list == 0 then
        return revision, all
    end
    revision = revision + 1
    db:run("UPDATE meta SET revision = ?", revision)
    for _, change in ipairs(#list > 1 and list or {}) do
        if change.put and change.old then
            park(db, change)
        end
    end
    for _, change in ipairs(list) do
        if not change.put then
            db:run(statements(change.of).delete, change.id)
            has_deletions = true
        end
    end
    local rows = new_rows.begin(db)
    for _, change in ipairs(list) do
        if change.put and change.of.expiry then
            reading.make_way(db, change.of, change.values, change.id)
        end
        if change.put then
            put(db, change, revision, rows)
        end
    end
    local to = { revision = revision, rows = rows, packing = packing, named = named }
    local cleared = has_deletions and clear_all(db, by_kind, to) or 0
    rows:finish()
    check(db, list, revision)
    check_same(db, has_deletions and same or {})
    for _, change in ipairs(list) do
        list_checks.check_put(db, change)
    end
    if has_deletions then
        list_checks.check_gone(db, by_kind, revision)
    end
    return revision, all, cleared
end

return _M
