--- The tables of a store: made, and brought to the layouts of the Sluice that opens it.
--
-- | table | holds |
-- |---|---|
-- | `meta` | one row: uuid, the last revision, the last sequence, how far the log is compacted,
--           what it was made from, which kinds are packed how; of a backup its digest; whether a
--           writer has it open |
-- | `kind` | each kind's space of slots, and which columns its last writer kept |
-- | `space` | the next slot of each space |
-- | `e_<kind>` | the entities; `sequence` is the key, so that a list is read as it lies; `packed`
--           is what the writer's packing made of the entity |
-- | `t_<kind>` | their tags |
-- | `gone` | deleted entities: the part of the change log that no entity holds |
-- | `free_slot` | slots to be used again, with the generation that they had |
--
-- Migrations only add, so that an older Sluice can come back: it empties the columns of entities
-- that it does not keep, and the newer one fills them again from their texts. A table, a column
-- with a default, or a trigger that a newer Sluice has added elsewhere is left alone: so every
-- statement names its columns.
-- @module gateway.store.tables

local cjson = require("cjson")
local entity_text = require("gateway.store.entity_text")
local layout = require("gateway.store.layout")
local sqlite = require("gateway.store.sqlite")
local string_buffer = require("string.buffer")
local triggers = require("gateway.store.triggers")

local format = string.format

-- "Slui": what the file's head says that it is.
local APPLICATION_ID = 0x536c7569
-- Of the tables as such. What an older Sluice cannot live with raises it; additions do not.
local FORMAT = 1
-- Stands with the columns of each kind: an older Sluice takes it out, and does not tell the witness
-- what it writes.
local WITNESSED = "witness"
-- The same of one that does not take the mark of an open store back when it closes it.
local MARKED = "mark"
-- Rows that a migration reads at a time.
local PIECE = 1000

local _M = { FORMAT = FORMAT }

local COMMON = {
    [[CREATE TABLE meta (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        uuid TEXT NOT NULL,
        revision INTEGER NOT NULL,
        sequence INTEGER NOT NULL,
        compacted INTEGER NOT NULL,
        is_backup INTEGER NOT NULL,
        origin TEXT,
        packed_as TEXT)]],
    [[CREATE TABLE kind (
        name TEXT PRIMARY KEY,
        space TEXT NOT NULL,
        columns TEXT NOT NULL) WITHOUT ROWID]],
    [[CREATE TABLE space (
        name TEXT PRIMARY KEY,
        next_slot INTEGER NOT NULL) WITHOUT ROWID]],
    [[CREATE TABLE gone (
        kind TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        id TEXT NOT NULL,
        revision INTEGER NOT NULL,
        released INTEGER NOT NULL,
        PRIMARY KEY (kind, slot, generation)) WITHOUT ROWID]],
    "CREATE INDEX gone_revision ON gone (revision)",
    [[CREATE TABLE free_slot (
        space TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        PRIMARY KEY (space, slot)) WITHOUT ROWID]],
}

-- `%s` is the kind, which gateway.store.layout has checked.
local OF_KIND = {
    [[CREATE TABLE e_%s (
        sequence INTEGER PRIMARY KEY,
        id TEXT NOT NULL,
        slot INTEGER NOT NULL,
        generation INTEGER NOT NULL,
        revision INTEGER NOT NULL,
        created_at REAL,
        updated_at REAL,
        text TEXT NOT NULL,
        packed BLOB)]],
    "CREATE UNIQUE INDEX i_%s ON e_%s (id)",
    "CREATE UNIQUE INDEX l_%s ON e_%s (slot)",
    "CREATE INDEX r_%s ON e_%s (revision)",
}

local OF_DELETION = [[AFTER DELETE ON e_%s BEGIN
    INSERT INTO gone (kind, slot, generation, id, revision, released)
        SELECT '%s', OLD.slot, OLD.generation, OLD.id, revision, 0 FROM meta;
    END]]

local TAGS = {
    [[CREATE TABLE IF NOT EXISTS t_%s (
        tag TEXT NOT NULL,
        sequence INTEGER NOT NULL
            REFERENCES e_%s (sequence) ON DELETE CASCADE ON UPDATE CASCADE,
        PRIMARY KEY (tag, sequence)) WITHOUT ROWID]],
    "CREATE INDEX IF NOT EXISTS s_%s ON t_%s (sequence)",
}

local function run_all(db, statements, kind)
    for _, sql in ipairs(statements) do
        db:run((sql:gsub("%%s", kind or "")))
    end
end

local function create_kind(db, of)
    run_all(db, OF_KIND, of.kind)
    db:run("INSERT INTO kind (name, space, columns) VALUES (?, ?, '[]')", of.kind, of.space)
    db:run("INSERT OR IGNORE INTO space (name, next_slot) VALUES (?, 0)", of.space)
end

local function number(db, sql)
    return db:row(sql)[1]
end

--- Whether a file is a store that this Sluice can read.
-- @tparam table db connection; throws what SQLite says of a file that is no database
-- @treturn string "store", "empty", "too new" or "not a store"
function _M.recognise(db)
    local id = number(db, "PRAGMA application_id")
    if id == APPLICATION_ID then
        return number(db, "PRAGMA user_version") > FORMAT and "too new" or "store"
    end
    local is_empty = id == 0 and number(db, "SELECT count(*) FROM sqlite_schema") == 0
    return is_empty and "empty" or "not a store"
end

--- Makes the tables of a new store, in the caller's transaction.
-- @tparam table db
-- @tparam string uuid
function _M.create(db, uuid)
    db:run("PRAGMA application_id = " .. APPLICATION_ID)
    db:run("PRAGMA user_version = " .. FORMAT)
    run_all(db, COMMON)
    db:run(
        "INSERT INTO meta (one, uuid, revision, sequence, compacted, is_backup) "
            .. "VALUES (1, ?, 0, 0, 0, 0)",
        uuid
    )
end

-- Some columns of `meta` came later than the others.
local function has_column(db, name)
    return db:row("SELECT 1 FROM pragma_table_info('meta') WHERE name = ?", name) ~= nil
end

--- The digest of a backup, and the uuid of the store that it was made of.
-- @tparam table db
-- @treturn string|nil nil: it is none, or an older Sluice made it
-- @treturn string|nil
function _M.digest(db)
    local text = has_column(db, "digest") and db:row("SELECT digest FROM meta")[1] or ""
    local digest, uuid = text:match("^(%S*) (.*)$")
    return digest or (text ~= "" and text) or nil, uuid
end

--- Notes the digest of a backup; nil: it is none.
-- @tparam table db
-- @tparam string|nil digest
function _M.set_digest(db, digest)
    if not has_column(db, "digest") then
        db:run("ALTER TABLE meta ADD COLUMN digest TEXT")
    end
    db:run("UPDATE meta SET digest = ? || ' ' || uuid", digest)
end

-- The columns that a layout keeps, as `kind` notes them, and which packing filled `packed`.
local function kept(of, packing)
    local names = {}
    for i, column in ipairs(of.columns) do
        names[i] = column.column
    end
    names[#names + 1] = of.has_tags and "tags" or nil
    names[#names + 1] = packing and "packed " .. packing.version(of) or nil
    names[#names + 1] = WITNESSED
    names[#names + 1] = MARKED
    return names
end

local function set_of(list)
    local set = {}
    for _, name in ipairs(list) do
        set[name] = true
    end
    return set
end

local function existing_columns(db, kind)
    local found = {}
    for _, row in ipairs(db:rows("SELECT name FROM pragma_table_info(?)", "e_" .. kind)) do
        found[#found + 1] = row[1]:find("^[ufnk]_") and row[1] or nil
    end
    return found
end

local function add_column(db, kind, column)
    local sql = format("ALTER TABLE e_%s ADD COLUMN %s TEXT", kind, column.column)
    if column.role == "foreign" then
        sql = sql
            .. format(" REFERENCES e_%s (id)", column.reference)
            .. (column.on_delete == "cascade" and " ON DELETE CASCADE" or "")
            .. " DEFERRABLE INITIALLY DEFERRED"
    end
    db:run(sql)
end

local function add_index(db, kind, column)
    db:run(
        format(
            "CREATE %sINDEX IF NOT EXISTS x_%s_%s ON e_%s (%s)",
            column.role == "unique" and "UNIQUE " or "",
            kind,
            column.column,
            kind,
            column.column
        )
    )
end

--- Writes the tags of an entity that has none in the table yet.
function _M.add_tags(db, kind, sequence, tags)
    for _, tag in ipairs(tags) do
        db:run(
            format("INSERT OR IGNORE INTO t_%s (tag, sequence) VALUES (?, ?)", kind),
            tag,
            sequence
        )
    end
end

local buffer = string_buffer.new()

-- What is packed of an entity; good until the next call.
local function packed(packing, of, entity, text)
    buffer:reset()
    local is_packed, err = packing.write(buffer, of, entity, #text)
    if err then
        error({ refused = err }, 0)
    end
    return is_packed and { bytes = buffer } or nil
end

-- Fills columns, tags and what is packed, as far as they are missing, of all rows from their texts.
local function fill(db, of, missing)
    local kind, columns, packing = of.kind, missing.columns, missing.packing
    local sets = {}
    for i, column in ipairs(columns) do
        sets[i] = column.column .. " = ?"
    end
    sets[#sets + 1] = packing and "packed = ?" or nil
    local update = format("UPDATE e_%s SET %s WHERE sequence = ?", kind, table.concat(sets, ", "))
    local page = format(
        "SELECT sequence, text FROM e_%s WHERE sequence > ? ORDER BY sequence LIMIT %d",
        kind,
        PIECE
    )
    local rows = db:rows(page, 0)
    while #rows > 0 do
        for _, row in ipairs(rows) do
            local entity, values = entity_text.decode(row[2]) or {}, {}
            for i, column in ipairs(columns) do
                values[i] = layout.value(column, entity)
            end
            if packing then
                values[#sets] = packed(packing, of, entity, row[2])
            end
            if #sets > 0 then
                values[#sets + 1] = row[1]
                db:run(update, unpack(values, 1, #sets + 1))
            end
            if missing.tags and type(entity.tags) == "table" then
                _M.add_tags(db, kind, row[1], entity.tags)
            end
        end
        rows = db:rows(page, rows[#rows][1])
    end
end

local function empty(db, kind, columns)
    for _, column in ipairs(columns) do
        db:run(format("UPDATE e_%s SET %s = NULL WHERE %s IS NOT NULL", kind, column, column))
    end
end

local function migrate(db, of, before, packing)
    local kind, was_kept, missing = of.kind, set_of(before), { columns = {} }
    local ours = set_of(kept(of, packing))
    local there = existing_columns(db, kind)
    local is_there, unkept = set_of(there), {}
    for _, column in ipairs(there) do
        unkept[#unkept + 1] = not (ours[column] and was_kept[column]) and column or nil
    end
    empty(db, kind, unkept)
    for _, column in ipairs(of.columns) do
        if not is_there[column.column] then
            add_column(db, kind, column)
        end
        if not was_kept[column.column] then
            missing.columns[#missing.columns + 1] = column
        end
    end
    missing.tags = of.has_tags and not was_kept.tags
    if missing.tags then
        run_all(db, TAGS, kind)
        db:run(format("DELETE FROM t_%s", kind))
    end
    if packing and not was_kept["packed " .. packing.version(of)] then
        missing.packing = packing
    end
    if #missing.columns > 0 or missing.tags or missing.packing then
        fill(db, of, missing)
    end
    for _, column in ipairs(of.columns) do
        local ok, failure = pcall(add_index, db, kind, column)
        if not ok then
            failure.message = format(
                "%s of '%s' cannot be made unique: %s",
                table.concat(column.fields, ", "),
                kind,
                failure.message
            )
            error(failure, 0)
        end
    end
end

local function recorded(db)
    local found = {}
    for _, row in ipairs(db:rows("SELECT name, columns FROM kind")) do
        found[row[1]] = cjson.decode(row[2])
    end
    return found
end

-- Whether all who have written to the store since it was made know a word.
local function is_known(db, word)
    for _, columns in pairs(recorded(db)) do
        if not set_of(columns)[word] then
            return false
        end
    end
    return true
end

--- Whether all who have written to the store since it was made tell its witness.
-- @tparam table db
-- @treturn boolean
function _M.is_witnessed(db)
    return is_known(db, WITNESSED)
end

--- Whether a writer has the store open, or has ended without closing it.
-- @tparam table db
-- @treturn boolean
function _M.is_open(db)
    return is_known(db, MARKED)
        and has_column(db, "is_open")
        and db:row("SELECT is_open FROM meta")[1] == 1
end

--- Marks a store as open, or takes the mark back.
-- @tparam table db
-- @tparam boolean is_open
function _M.set_open(db, is_open)
    if not has_column(db, "is_open") then
        db:run("ALTER TABLE meta ADD COLUMN is_open INTEGER")
    end
    db:run("UPDATE meta SET is_open = ?", is_open and 1 or 0)
end

local function is_same(a, b)
    return table.concat(a, ",") == table.concat(b, ",")
end

--- Brings the tables to these layouts, in the caller's transaction. Quick when they are.
-- @tparam table db
-- @tparam {table,...} layouts of gateway.store.layout
-- @tparam[opt] table packing of gateway.store.database
function _M.adapt(db, layouts, packing)
    local before = recorded(db)
    for _, of in ipairs(layouts) do
        if not before[of.kind] then
            create_kind(db, of)
        end
        triggers.put(db, "g_" .. of.kind, (OF_DELETION:gsub("%%s", of.kind)))
    end
    for _, of in ipairs(layouts) do
        local columns = kept(of, packing)
        if not is_same(before[of.kind] or {}, columns) then
            migrate(db, of, before[of.kind] or {}, packing)
            db:run(
                "UPDATE kind SET columns = ? WHERE name = ?",
                #columns > 0 and cjson.encode(columns) or "[]",
                of.kind
            )
        end
    end
    if db:has_broken_references() then
        error({ code = sqlite.CONSTRAINT, errno = 0, message = "an entity refers to none" }, 0)
    end
end

--- Notes which kinds are packed, and how, in the caller's transaction. Where that is not as before,
-- the log of changes begins anew: what was made of the rows once cannot be brought up to them.
-- @tparam table db
-- @tparam {table,...} layouts
-- @tparam table packing of gateway.store.database
function _M.note_packing(db, layouts, packing)
    local parts = {}
    for i, of in ipairs(layouts) do
        parts[i] = of.kind .. " " .. packing.version(of)
    end
    local now = table.concat(parts, " ")
    local before = db:row("SELECT packed_as FROM meta")[1]
    if before ~= now then
        local bump = before and ", revision = revision + 1, compacted = revision + 1" or ""
        db:run("UPDATE meta SET packed_as = ?" .. bump, now)
    end
end

--- Those who refer to a kind, as the database has it: of kinds that are unknown here, too.
-- @tparam table db
-- @tparam string kind
-- @treturn {table,...} `{ kind =, column = }` whose reference refuses the deletion
function _M.referrers(db, kind)
    local found = {}
    for _, row in
        ipairs(
            db:rows(
                [[SELECT t.name, f."from" FROM sqlite_schema t, pragma_foreign_key_list(t.name) f
            WHERE t.type = 'table' AND f."table" = ? AND f."to" = 'id'
            AND f.on_delete <> 'CASCADE']],
                "e_" .. kind
            )
        )
    do
        found[#found + 1] = { kind = row[1]:sub(3), column = row[2] }
    end
    return found
end

--- Which of these kinds a store has, for one that is opened for reading only.
-- @tparam table db
-- @tparam {table,...} layouts
-- @treturn {table,...} the layouts of those, with the columns that are kept
function _M.present(db, layouts)
    local before, found = recorded(db), {}
    for _, of in ipairs(layouts) do
        local was_kept = before[of.kind] and set_of(before[of.kind])
        if was_kept then
            local columns = {}
            for _, column in pairs(of.columns) do
                columns[#columns + 1] = was_kept[column.column] and column or nil
            end
            found[#found + 1] = {
                kind = of.kind,
                columns = columns,
                has_tags = was_kept.tags or false,
                expiry = was_kept[of.expiry] and of.expiry,
                is_internal = of.is_internal,
                no_export = of.no_export,
                users = of.users,
            }
        end
    end
    return found
end

return _M
