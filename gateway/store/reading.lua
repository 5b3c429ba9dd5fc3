--- What a store can be asked: one entity, a page of a kind, what has changed.
-- @module gateway.store.reading

local layout = require("gateway.store.layout")
local rules = require("gateway.schema.rules")

local concat = table.concat
local format = string.format

local DEFAULT_SIZE = 100
local MAX_SIZE = 10000
local MAX_TAGS = 50
-- Bytes of a page's texts; a page has one entity at least.
local MAX_BYTES = 8 * 1024 * 1024
-- Where an entity's text stands in a row.
local TEXT = 8
local COLUMNS =
    "e.sequence, e.id, e.slot, e.generation, e.revision, e.created_at, e.updated_at, e.text"

local _M = {}

-- The condition of an entity's `expires_at`, which is text as strftime's is.
local function over(of)
    return format("e.%s <= strftime('%%s', 'now')", of.expiry)
end

-- Leaves out those that have expired.
local function unless_over(of)
    return of.expiry and format(" AND (%s) IS NOT TRUE", over(of)) or ""
end

local function row_of(row)
    return row
        and {
            sequence = row[1],
            id = row[2],
            slot = row[3],
            generation = row[4],
            revision = row[5],
            created_at = row[6],
            updated_at = row[7],
            text = row[8],
        }
end

--- Finds an entity by its name alone, which may be the id of another one.
-- @tparam table db connection
-- @tparam table of layout of its kind
-- @tparam string name
-- @treturn table|nil row
function _M.named(db, of, name)
    local sql = "SELECT %s FROM e_%s e WHERE e.%s = ?%s"
    for _, column in ipairs(of.columns) do
        if column.is_name then
            return row_of(
                db:row(format(sql, COLUMNS, of.kind, column.column, unless_over(of)), name)
            )
        end
    end
    return nil
end

--- Finds an entity by its id, or else by its name.
-- @tparam table db connection
-- @tparam table of layout of its kind
-- @tparam string id_or_name
-- @treturn table|nil row
function _M.get(db, of, id_or_name)
    local sql = format("SELECT %s FROM e_%s e WHERE e.", COLUMNS, of.kind)
    local alive = unless_over(of)
    local row = db:row(sql .. "id = ?" .. alive, rules.normal_id(id_or_name))
    return row_of(row) or _M.named(db, of, id_or_name)
end

--- Finds an entity that has one of an entity's unique values, or else its id.
-- @tparam table db
-- @tparam table of layout of its kind
-- @tparam table values what the entity has in fields that are unique, alone or together
-- @tparam string id
-- @treturn table|nil row
function _M.find(db, of, values, id)
    local sql = format("SELECT %s FROM e_%s e WHERE e.", COLUMNS, of.kind)
    local alive = unless_over(of)
    for _, column in ipairs(of.columns) do
        local value = column.role == "unique" and layout.value(column, values)
        local row = value and db:row(sql .. column.column .. " = ?" .. alive, value)
        if row then
            return row_of(row)
        end
    end
    return row_of(db:row(sql .. "id = ?" .. alive, id))
end

--- Entities that have expired, and when the next one does.
-- @tparam table db connection
-- @tparam {table,...} layouts
-- @tparam number limit
-- @treturn {table,...} `{ kind =, id = }`, so many at most
-- @treturn number|nil seconds since 1970, of one that has not expired yet
function _M.expired(db, layouts, limit)
    local found, next_at = {}, nil
    for _, of in ipairs(layouts) do
        if of.expiry then
            local sql = format("SELECT e.id FROM e_%s e WHERE %s LIMIT ?", of.kind, over(of))
            for _, row in ipairs(db:rows(sql, limit - #found)) do
                found[#found + 1] = { kind = of.kind, id = row[1] }
            end
            sql = "SELECT min(e.%s) FROM e_%s e WHERE e.%s > strftime('%%s', 'now')"
            local at = tonumber(db:row(format(sql, of.expiry, of.kind, of.expiry))[1])
            next_at = at and math.min(at, next_at or at) or next_at
        end
    end
    return found, next_at
end

--- Whether an entity is there and has expired.
-- @tparam table db
-- @tparam table of layout of its kind, which has an `expiry`
-- @tparam string id
-- @treturn boolean
function _M.is_expired(db, of, id)
    local sql = format("SELECT 1 FROM e_%s e WHERE e.id = ? AND %s", of.kind, over(of))
    return db:row(sql, id) ~= nil
end

--- Deletes who has a unique value and has expired, so that another can have it.
-- @tparam table db in a transaction
-- @tparam table of layout of its kind, which has an `expiry`
-- @tparam table values of the other one, as its columns
-- @tparam string id of the other one
function _M.make_way(db, of, values, id)
    for i, column in ipairs(of.columns) do
        if column.role == "unique" and values[i] then
            local sql = "DELETE FROM e_%s AS e WHERE e.%s = ? AND e.id <> ? AND %s"
            db:run(format(sql, of.kind, column.column, over(of)), values[i], id)
        end
    end
end

-- Of users: who is disabled needs none.
local ENABLED = [[instr(text, '"enabled":false') = 0 AND ]]

local function is_used_by(db, user, name, more)
    local sql = format("SELECT 1 FROM e_%s WHERE %s%s", user.kind, more or "", user.column)
    if user.up_to then
        local last = string.char(user.up_to:byte() + 1)
        sql = format("%s >= ? AND %s < ? LIMIT 1", sql, user.column)
        return db:row(sql, name .. user.up_to, name .. last) ~= nil
    end
    return db:row(sql .. " = ? LIMIT 1", name) ~= nil
end

--- Whether entities of other kinds have a name, as the layout of its kind says.
-- @tparam table db connection
-- @tparam table of layout of the name's kind
-- @tparam string name
-- @treturn boolean
function _M.is_used(db, of, name)
    for _, user in ipairs(of.users or {}) do
        if is_used_by(db, user, name) then
            return true
        end
    end
    return false
end

--- Whether entities need a name that they have: not where another kind has it, as a service's host
-- may be an upstream.
-- @tparam table db connection
-- @tparam table by_kind kind -> layout
-- @tparam table of layout of the name's kind
-- @tparam string name
-- @treturn boolean
function _M.needs(db, by_kind, of, name)
    for _, user in ipairs(of.users) do
        local other = by_kind[user.unless]
        local is_other = other and _M.has(db, other, name)
        if not is_other and is_used_by(db, user, name, ENABLED) then
            return true
        end
    end
    return false
end

--- Whether an entity has a name.
-- @tparam table db connection
-- @tparam table of layout of its kind
-- @tparam string name
-- @treturn boolean
function _M.has(db, of, name)
    for _, column in ipairs(of.columns) do
        local sql = column.is_name
            and format("SELECT 1 FROM e_%s WHERE %s = ?", of.kind, column.column)
        if sql and db:row(sql, name) then
            return true
        end
    end
    return false
end

-- "a,b": both tags, "a/b": one of them.
local function split_tags(text)
    local any = text:find("/", 1, true) ~= nil
    if any and text:find(",", 1, true) then
        return nil
    end
    local separator, wanted, seen = any and "/" or ",", {}, {}
    for tag in (text .. separator):gmatch("(.-)" .. separator) do
        if tag == "" or #wanted == MAX_TAGS then
            return nil
        elseif not seen[tag] then
            wanted[#wanted + 1], seen[tag] = tag, true
        end
    end
    return wanted, any
end

local function tag_condition(of, text, from, values)
    local wanted, any = split_tags(text)
    if not wanted then
        return nil
    end
    local one = format("SELECT sequence FROM t_%s WHERE tag = ? AND sequence > ?", of.kind)
    local parts = {}
    for i, tag in ipairs(wanted) do
        parts[i] = one
        values[#values + 1] = tag
        values[#values + 1] = from
    end
    return format(" AND e.sequence IN (%s)", concat(parts, any and " UNION " or " INTERSECT "))
end

local function where_condition(of, where, values)
    local columns, parts = {}, {}
    for _, column in ipairs(of.columns) do
        if #column.fields == 1 then
            columns[column.fields[1]] = column.column
        end
    end
    local names = {}
    for name in pairs(where) do
        names[#names + 1] = name
    end
    table.sort(names)
    for _, name in ipairs(names) do
        if not columns[name] then
            return nil
        end
        parts[#parts + 1] = format(" AND e.%s = ?", columns[name])
        values[#values + 1] = where[name]
    end
    return concat(parts)
end

local function integer(value, most)
    local digits = tostring(value):match("^%d+$")
    local number = digits and #digits < 16 and tonumber(digits)
    return number and number <= most and number or nil
end

-- Rows of a page, and one more where there are more: so many, or as many as have so many bytes.
local function rows_of_page(db, sql, values, size)
    local bytes, is_long = 0, false
    local function is_enough(rows)
        bytes = bytes + #rows[#rows][TEXT]
        is_long = #rows > 1 and bytes > MAX_BYTES
        return is_long
    end
    local rows = db:rows_until(is_enough, sql, unpack(values))
    return rows, is_long and #rows - 1 or math.min(#rows, size)
end

--- A page of a kind, in order of sequence; shorter than asked for where its texts have 8 MiB. What
-- is added or deleted between two pages changes nothing of the others.
-- @tparam table db
-- @tparam table of layout
-- @tparam table opts `size` 1 to 10,000 (100), `offset` of the page before, `tags` "a,b" for both
-- or "a/b" for one of them, `where` field -> value of unique fields, names and references
-- @treturn {table,...}|nil rows
-- @treturn string|nil offset of the next page, nil after the last; after a nil "invalid size",
-- "invalid offset", "invalid tags" or "unknown field"
function _M.list(db, of, opts)
    local size = integer(opts.size or DEFAULT_SIZE, MAX_SIZE)
    if not size or size == 0 then
        return nil, "invalid size"
    end
    local from = integer(opts.offset or 0, 2 ^ 53)
    if not from then
        return nil, "invalid offset"
    end
    local values, condition = { from }, ""
    if opts.where then
        condition = where_condition(of, opts.where, values)
        if not condition then
            return nil, "unknown field"
        end
    end
    if opts.tags then
        local tagged = of.has_tags
            and type(opts.tags) == "string"
            and tag_condition(of, opts.tags, from, values)
        if not tagged then
            return nil, "invalid tags"
        end
        condition = condition .. tagged
    end
    condition = condition .. unless_over(of)
    values[#values + 1] = size + 1
    local sql = "SELECT %s FROM e_%s e WHERE e.sequence > ?%s ORDER BY e.sequence LIMIT ?"
    local rows, count = rows_of_page(db, format(sql, COLUMNS, of.kind, condition), values, size)
    local page = {}
    for i = 1, count do
        page[i] = row_of(rows[i])
    end
    return page, rows[count + 1] and tostring(page[count].sequence) or nil
end

-- The place of a tag among all, as an offset says it.
local function tag_place(offset)
    local kind, sequence, tag = tostring(offset):match("^([%w_]+):(%d+):(.+)$")
    sequence = sequence and integer(sequence, 2 ^ 53)
    return sequence and { kind = kind, sequence = sequence, tag = tag }
end

-- The tags of one kind behind a place, at most so many.
local function tags_of(db, of, tag, from, limit)
    local sql = "SELECT t.tag, e.id, t.sequence FROM t_%s t JOIN e_%s e USING (sequence) "
        .. "WHERE %s%s ORDER BY t.tag, t.sequence LIMIT ?"
    local where, first = "(t.tag, t.sequence) > (?, ?)", from and from.tag or ""
    if tag then
        where, first = "t.tag = ? AND t.sequence > ?", tag
    end
    local found = {}
    local last = from and from.sequence or 0
    sql = format(sql, of.kind, of.kind, where, unless_over(of))
    for i, row in ipairs(db:rows(sql, first, last, limit)) do
        found[i] = { kind = of.kind, tag = row[1], id = row[2], sequence = row[3] }
    end
    return found
end

--- A page of tags and who has them: kind by kind, in each by tag and sequence.
-- @tparam table db
-- @tparam {table,...} layouts
-- @tparam table opts `size` and `offset` as of `list`; `tag`, for those who have this one
-- @treturn {table,...}|nil `{ tag =, kind =, id =, sequence = }`
-- @treturn string|nil offset of the next page, nil after the last; after a nil "invalid size" or
-- "invalid offset"
function _M.tags(db, layouts, opts)
    local size = integer(opts.size or DEFAULT_SIZE, MAX_SIZE)
    if not size or size == 0 then
        return nil, "invalid size"
    end
    local from = opts.offset and tag_place(opts.offset)
    local page, is_behind = {}, not opts.offset
    for _, of in ipairs(layouts) do
        local is_here = from and from.kind == of.kind
        is_behind = is_behind or is_here
        if is_behind and of.has_tags and #page <= size then
            local limit = size + 1 - #page
            for _, row in ipairs(tags_of(db, of, opts.tag, is_here and from, limit)) do
                page[#page + 1] = row
            end
        end
    end
    if not is_behind then
        return nil, "invalid offset"
    elseif #page <= size then
        return page
    end
    page[size + 1] = nil
    local last = page[size]
    return page, format("%s:%d:%s", last.kind, last.sequence, last.tag)
end

--- The last revision.
-- @treturn table `{ uuid =, revision =, origin = }`, that of the last `replace` if nothing of a
-- file's has changed since
function _M.revision(db)
    local row = db:row("SELECT uuid, revision, origin FROM meta")
    return { uuid = row[1], revision = row[2], origin = row[3] }
end

--- What has changed since a revision: the present entities that are newer, the deleted ones.
-- @tparam table db in a transaction, so that all is of one moment
-- @tparam {table,...} layouts
-- @tparam table since `{ uuid =, revision = }`
-- @treturn {table,...}|nil in order of revision: rows with `kind`; a deleted one has `gone`, `id`,
-- `slot`, `generation` and `revision` only
-- @treturn table|string the revision that this leads to; after a nil "too old": the log does not
-- reach back so far, or `since` is another store's
function _M.changes_since(db, layouts, since)
    local now = _M.revision(db)
    local compacted = db:row("SELECT compacted FROM meta")[1]
    if since.uuid ~= now.uuid or since.revision < compacted or since.revision > now.revision then
        return nil, "too old"
    end
    local found = {}
    for _, of in ipairs(layouts) do
        local sql = format("SELECT %s FROM e_%s e WHERE e.revision > ?", COLUMNS, of.kind)
        for _, row in ipairs(db:rows(sql, since.revision)) do
            local changed = row_of(row)
            changed.kind = of.kind
            found[#found + 1] = changed
        end
        sql = "SELECT slot, generation, id, revision FROM gone WHERE revision > ? AND kind = ?"
        for _, row in ipairs(db:rows(sql, since.revision, of.kind)) do
            found[#found + 1] = {
                kind = of.kind,
                gone = true,
                slot = row[1],
                generation = row[2],
                id = row[3],
                revision = row[4],
            }
        end
    end
    for i, change in ipairs(found) do
        change.at = i
    end
    table.sort(found, function(a, b)
        if a.revision ~= b.revision then
            return a.revision < b.revision
        end
        -- deletions first: an id may have been given again
        if a.gone ~= b.gone then
            return a.gone or false
        end
        return a.at < b.at
    end)
    for _, change in ipairs(found) do
        change.at = nil
    end
    return found, now
end

return _M
