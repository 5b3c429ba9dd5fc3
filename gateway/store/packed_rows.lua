--- Rows as an image needs them: what is packed beside the text, and the slots of what they refer
-- to, visited where SQLite has them.
-- @module gateway.store.packed_rows

local concat = table.concat
local format = string.format

local _M = {}

--- The columns of a row. From REFERENCES on, for each reference in the order of `references`, the
-- other's slot and what is packed of it, both NULL where there is none.
_M.COLUMNS = {
    SEQUENCE = 0,
    SLOT = 1,
    GENERATION = 2,
    REVISION = 3,
    CREATED_AT = 4,
    ID = 5,
    TEXT = 6,
    PACKED = 7,
    REFERENCES = 8,
}

--- The references of a kind.
-- @tparam table of layout
-- @treturn {table,...} columns of the layout
function _M.references(of)
    local found = {}
    for _, column in ipairs(of.columns) do
        found[#found + 1] = column.role == "foreign" and column or nil
    end
    return found
end

-- layout -> the beginning of a query
local written = setmetatable({}, { __mode = "k" })

local function query(of)
    local sql = written[of]
    if sql then
        return sql
    end
    local columns, joins = {}, {}
    for i, column in ipairs(_M.references(of)) do
        columns[i] = format(", r%d.slot, r%d.packed", i, i)
        joins[i] =
            format(" LEFT JOIN e_%s r%d ON r%d.id = e.%s", column.reference, i, i, column.column)
    end
    sql =
        "SELECT e.sequence, e.slot, e.generation, e.revision, e.created_at, e.id, e.text, e.packed"
    sql = format("%s%s FROM e_%s e%s WHERE ", sql, concat(columns), of.kind, concat(joins))
    written[of] = sql
    return sql
end

--- Visits rows of a kind.
-- @tparam table db connection
-- @tparam table of layout
-- @tparam string condition in SQL, with `?` for each value
-- @tparam function visit `(row)` as of `gateway.store.sqlite`'s `each`
-- @param ... values
function _M.each(db, of, condition, visit, ...)
    db:each(query(of) .. condition, visit, ...)
end

--- Whether what has changed since a revision can be told.
-- @tparam table db in a transaction
-- @tparam number revision
-- @tparam table now `{ revision = }` of the store
-- @treturn boolean
function _M.reaches(db, revision, now)
    local compacted = db:row("SELECT compacted FROM meta")[1]
    return revision >= compacted and revision <= now.revision
end

--- Visits what was deleted after a revision.
-- @tparam table db
-- @tparam number revision
-- @tparam function visit `(row)` with kind, slot, generation and revision
function _M.each_gone(db, revision, visit)
    local sql = "SELECT kind, slot, generation, revision FROM gone WHERE revision > ?"
    db:each(sql, visit, revision)
end

return _M
