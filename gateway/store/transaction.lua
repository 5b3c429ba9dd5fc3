--- The changes of one transaction, made in the savepoint of the caller.
--
-- A transaction is a set: what counts is the state after it. Two entities can swap their names,
-- and a parent can go together with the child that moves elsewhere. Hence the order: what existing
-- entities had that is unique is put aside, then deletions, then upserts; references are looked at
-- last, by SQLite's own count of broken ones.
-- @module gateway.store.transaction

local change_of = require("gateway.store.change")
local entity_text = require("gateway.store.entity_text")
local lists = require("gateway.entities.lists")
local new_rows = require("gateway.store.new_rows")
local reading = require("gateway.store.reading")
local sqlite = require("gateway.store.sqlite")
local tables = require("gateway.store.tables")

local concat = table.concat
local error = error
local find = string.find
local format = string.format
local ipairs = ipairs
local pairs = pairs
local pcall = pcall
local setmetatable = setmetatable
local tostring = tostring
local type = type

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

local function plan_put(change, of, packing)
    local found, err = change_of.described(change, of, packing)
    if not found then
        refuse(err)
    end
    local sequence = change.sequence
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
local function keep_dates(planned)
    local old, undated = planned.old, planned.undated
    local created_at = undated.created_at and old[CREATED_AT] or planned.created_at
    local updated_at = undated.updated_at and old[UPDATED_AT] or planned.updated_at
    local text = entity_text.with_dates(planned.put, created_at, updated_at)
    if text ~= old[OWN] then
        updated_at = planned.updated_at
        text = entity_text.with_dates(planned.put, created_at, updated_at)
    end
    planned.put, planned.created_at, planned.updated_at = text, created_at, updated_at
end

-- Whether place and columns are those that the entity has already.
local function stays(planned)
    local old = planned.old
    if (planned.sequence or old[1]) ~= old[1] then
        return false
    end
    for i = 1, #planned.of.columns do
        if old[OWN + i] ~= planned.values[i] then
            return false
        end
    end
    return true
end

local function is_unchanged(planned)
    return planned.old[OWN] == planned.put and stays(planned)
end

-- The ids of a kind that the changes have named so far.
local function named_of(named, of)
    named[of.kind] = named[of.kind] or {}
    return named[of.kind]
end

-- The name of an entity that is there.
local function name_of(planned)
    for i, column in ipairs(planned.of.columns) do
        if column.is_name then
            return planned.old[OWN + i]
        end
    end
    return nil
end

local function plan(db, by_kind, change, named, packing)
    local of = by_kind[change.kind]
    if not of then
        refuse({ err = "unknown kind", kind = change.kind })
    end
    local planned = change.put and plan_put(change, of, packing) or { of = of, id = change.delete }
    local ids = named_of(named, of)
    if type(planned.id) ~= "string" or ids[planned.id] then
        refuse({ err = "invalid", kind = of.kind, field = "id", value = tostring(planned.id) })
    end
    ids[planned.id] = true
    planned.old = db:row(statements(of).select, planned.id)
    if planned.undated and planned.old then
        keep_dates(planned)
    end
    if not change.put and not planned.old and not change.lenient then
        refuse({ err = "not found", kind = of.kind, field = "id", value = planned.id })
    end
    local is_there = planned.old ~= nil
    planned.is_same = change.put and is_there and (change.lenient or is_unchanged(planned))
        or (not change.put and not is_there)
        or (change.if_unused and is_there and reading.is_used(db, of, name_of(planned)))
    return planned
end

-- Deletes what the changes have not named.
local function plan_deletions(db, layouts, named, list)
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
local function park(db, planned)
    local of, old = planned.of, planned.old
    local is_there = (planned.sequence or old[1]) == old[1]
    local needed = not is_there
    for i, column in ipairs(of.columns) do
        local is_held = column.role == "foreign" or old[OWN + i] ~= planned.values[i]
        needed = needed or (column.role ~= "name" and old[OWN + i] ~= nil and is_held)
    end
    if needed then
        planned.at = is_there and old[1] or -old[1]
        db:run(statements(of).park, planned.at, old[1])
    end
end

-- Which unique value an entity cannot have.
local function find_taken(db, planned)
    local of = planned.of
    for i, column in ipairs(of.columns) do
        local sql = format("SELECT id FROM e_%s WHERE %s = ?", of.kind, column.column)
        local other = column.role == "unique"
            and planned.values[i]
            and db:row(sql, planned.values[i])
        if other and other[1] ~= planned.id then
            return change_of.violation(of, column, planned.put)
        end
    end
    return {
        err = "unique violation",
        kind = of.kind,
        id = planned.id,
        field = "sequence",
        value = tostring(planned.sequence),
    }
end

local function put_tags(db, planned, sequence)
    local of = planned.of
    -- Text that only looks so costs a deletion of nothing.
    if find(planned.old[OWN], '"tags":', 1, true) then
        db:run(format("DELETE FROM t_%s WHERE sequence = ?", of.kind), sequence)
    end
    tables.add_tags(db, of.kind, sequence, planned.tags or {})
end

-- The entity that is there, as it is now. Its place, which may be another.
local function update(db, planned, revision, rows)
    local of, values, old = planned.of, planned.values, planned.old
    local sequence = planned.sequence and rows:take_sequence(planned.sequence) or old[1]
    local packed = planned.packed and { bytes = planned.packed }
    local row = { revision, planned.created_at, planned.updated_at, planned.put, packed }
    if not planned.at and stays(planned) then
        row[6] = sequence
        db:run_with(statements(of).touch, row, 6)
    else
        local n = #of.columns
        for i = 1, n do
            row[5 + i] = values[i]
        end
        row[6 + n], row[7 + n] = sequence, planned.at or old[1]
        db:run_with(statements(of).update, row, 7 + n)
    end
    if of.has_tags then
        put_tags(db, planned, sequence)
    end
end

local function put_row(db, planned, revision, rows)
    if planned.old then
        update(db, planned, revision, rows)
    else
        rows:insert(planned.of, planned, revision)
    end
end

local function put(db, planned, revision, rows)
    local ok, failure = pcall(put_row, db, planned, revision, rows)
    if not ok then
        if type(failure) == "table" and sqlite.basic(failure.code or 0) == sqlite.CONSTRAINT then
            refuse(find_taken(db, planned))
        end
        error(failure, 0)
    end
end

-- Which upsert refers to none.
local function check_references(db, planned)
    for i, column in ipairs(planned.of.columns) do
        local id = column.role == "foreign" and planned.values and planned.values[i]
        local sql = id and format("SELECT 1 FROM e_%s WHERE id = ?", column.reference)
        if id and not db:row(sql, id) then
            refuse({
                err = "reference missing",
                kind = planned.of.kind,
                field = column.fields[1],
                value = id,
                id = planned.id,
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
    for _, planned in ipairs(same) do
        if
            planned.put
            and not db:row(format("SELECT 1 FROM e_%s WHERE id = ?", planned.of.kind), planned.id)
        then
            check_references(db, planned)
        end
    end
end

local function check(db, list, revision)
    if not db:has_broken_references() then
        return
    end
    for _, planned in ipairs(list) do
        check_references(db, planned)
    end
    check_gone(db, revision)
    error("a broken reference that nobody has", 0)
end

local function contains(items, id)
    for _, item in ipairs(items) do
        if item == id then
            return true
        end
    end
    return false
end

-- Who has an id in a list. Reads the texts of all entities of the kind, at the speed of memory.
local function find_listed(db, of, list, id)
    local sql = format("SELECT id, text FROM e_%s WHERE instr(text, ?) > 0", of.kind)
    for _, row in ipairs(db:rows(sql, id)) do
        if contains(lists.items(entity_text.decode(row[2]), list), id) then
            return row[1]
        end
    end
    return nil
end

-- SQLite knows nothing of lists in texts: whether an entity that is gone stands in one.
local function check_gone_lists(db, by_kind, revision)
    for _, of in pairs(by_kind) do
        for _, list in ipairs(of.lists or {}) do
            local sql = "SELECT id FROM gone WHERE revision = ? AND kind = ?"
            for _, row in ipairs(db:rows(sql, revision, list.reference)) do
                local by_id = find_listed(db, of, list, row[1])
                if by_id then
                    refuse({
                        err = "referenced",
                        kind = list.reference,
                        field = "id",
                        value = row[1],
                        by = of.kind,
                        by_id = by_id,
                        by_list = list.name,
                    })
                end
            end
        end
    end
end

-- Whether an entity that is put has something in a list that is not there.
local function check_put_lists(db, planned)
    local of = planned.of
    for _, list in ipairs(planned.put and of.lists or {}) do
        local is_given = planned.put:find('"' .. list.keys[#list.keys] .. '":[', 1, true)
        local ids = is_given and lists.items(entity_text.decode(planned.put), list)
        for _, id in ipairs(ids or {}) do
            if not db:row(format("SELECT 1 FROM e_%s WHERE id = ?", list.reference), id) then
                refuse({
                    err = "reference missing",
                    kind = of.kind,
                    field = list.name,
                    value = id,
                    id = planned.id,
                })
            end
        end
    end
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
-- `if_unused` where it is to be made only if nobody has the name
-- @tparam[opt] {table,...} only layouts of kinds whose other entities are all deleted
-- @tparam[opt] table packing of gateway.store.database
-- @treturn number the revision of these changes, or the last one where they change nothing
-- @treturn {table,...} for each change what was planned: `created_at`, `updated_at`
function _M.make(db, by_kind, revision, changes, only, packing)
    local all, list, same, named, has_deletions = {}, {}, {}, {}, false
    for i, change in ipairs(changes) do
        local planned = plan(db, by_kind, change, named, packing)
        all[i] = planned
        local into = planned.is_same and same or list
        into[#into + 1] = planned
    end
    plan_deletions(db, only or {}, named, list)
    if #list == 0 then
        return revision, all
    end
    revision = revision + 1
    db:run("UPDATE meta SET revision = ?", revision)
    for _, planned in ipairs(#list > 1 and list or {}) do
        if planned.put and planned.old then
            park(db, planned)
        end
    end
    for _, planned in ipairs(list) do
        if not planned.put then
            db:run(statements(planned.of).delete, planned.id)
            has_deletions = true
        end
    end
    local rows = new_rows.begin(db)
    for _, planned in ipairs(list) do
        if planned.put then
            put(db, planned, revision, rows)
        end
    end
    rows:finish()
    check(db, list, revision)
    check_same(db, has_deletions and same or {})
    for _, planned in ipairs(list) do
        check_put_lists(db, planned)
    end
    if has_deletions then
        check_gone_lists(db, by_kind, revision)
    end
    return revision, all
end

return _M
