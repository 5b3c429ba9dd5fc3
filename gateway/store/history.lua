--- What was changed when and by whom, and what each entity was before: for people, and for going
-- back.
--
-- | table | holds |
-- |---|---|
-- | `history` | a row for each revision that changed entities: when, who |
-- | `history_item` | what it changed, with the text that was there before |
-- | `history_reach` | one row: the oldest revision that can be gone back to |
--
-- Triggers write the items, so that none escapes: cascades, replacements. Where the writer keeps no
-- history there are neither triggers nor rows. Internal kinds are in no history.
-- @module gateway.store.history

local triggers = require("gateway.store.triggers")

local format = string.format
local ipairs = ipairs
local os = os
local pairs = pairs
local tonumber = tonumber

-- Texts that are kept of what was.
local MAX_BYTES = 64 * 1024 * 1024
local MAX_SIZE = 1000
local MAX_BY = 200

local _M = {}

local TABLES = {
    [[CREATE TABLE IF NOT EXISTS history (
        revision INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        by TEXT)]],
    [[CREATE TABLE IF NOT EXISTS history_item (
        revision INTEGER NOT NULL,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        sequence INTEGER NOT NULL,
        what TEXT NOT NULL,
        before TEXT)]],
    "CREATE INDEX IF NOT EXISTS i_history ON history_item (revision)",
    [[CREATE TABLE IF NOT EXISTS history_reach (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        revision INTEGER NOT NULL)]],
}

-- `%s` is the kind, which gateway.store.layout has checked.
local TRIGGERS = {
    h_insert_ = [[AFTER INSERT ON e_%s BEGIN
        INSERT INTO history_item (revision, kind, id, sequence, what, before)
        SELECT revision, '%s', NEW.id, NEW.sequence, 'created', NULL FROM meta; END]],
    h_update_ = [[AFTER UPDATE OF text ON e_%s WHEN OLD.text <> NEW.text BEGIN
        INSERT INTO history_item (revision, kind, id, sequence, what, before)
        SELECT revision, '%s', NEW.id, NEW.sequence, 'changed', OLD.text FROM meta; END]],
    h_delete_ = [[AFTER DELETE ON e_%s BEGIN
        INSERT INTO history_item (revision, kind, id, sequence, what, before)
        SELECT revision, '%s', OLD.id, OLD.sequence, 'deleted', OLD.text FROM meta; END]],
}

local TRIGGER_NAMES = "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND name LIKE 'h\\_%' "
    .. "ESCAPE '\\'"

local function exists(db)
    return db:row("SELECT 1 FROM sqlite_schema WHERE name = 'history_reach'") ~= nil
end

local function stop(db)
    for _, row in ipairs(db:rows(TRIGGER_NAMES)) do
        db:run("DROP TRIGGER " .. row[1])
    end
    if exists(db) then
        for _, name in ipairs({ "history", "history_item", "history_reach" }) do
            db:run("DELETE FROM " .. name)
        end
    end
end

local function start(db, layouts)
    for _, sql in ipairs(TABLES) do
        db:run(sql)
    end
    db:run("INSERT OR IGNORE INTO history_reach (one, revision) SELECT 1, revision FROM meta")
    for _, of in ipairs(layouts) do
        for prefix, body in pairs(of.is_internal and {} or TRIGGERS) do
            triggers.put(db, prefix .. of.kind, (body:gsub("%%s", of.kind)))
        end
    end
end

--- Begins to keep a history, goes on with it, or forgets it; in the caller's transaction, once the
-- tables of the kinds are there.
-- @tparam table db connection
-- @tparam {table,...} layouts of gateway.store.layout
-- @tparam boolean is_kept
function _M.adapt(db, layouts, is_kept)
    if is_kept then
        start(db, layouts)
    else
        stop(db)
    end
end

--- Notes who made a revision, in its transaction.
-- @tparam table db
-- @tparam number revision
-- @tparam[opt] string by who, for people: 200 bytes at most are kept
function _M.note(db, revision, by)
    local sql = "INSERT INTO history (revision, at, by) VALUES (?, ?, ?)"
    db:run(sql, revision, os.time(), by and by:sub(1, MAX_BY))
end

--- Forgets the oldest beyond so many revisions, or 64 MiB of texts. In the caller's transaction.
-- @tparam table db
-- @tparam number count of revisions to keep
function _M.trim(db, count)
    if not exists(db) then
        return
    end
    local last =
        db:row("SELECT revision FROM history ORDER BY revision DESC LIMIT 1 OFFSET ?", count)
    last = last and last[1] or 0
    local bytes = 0
    local sql = "SELECT revision, total(length(before)) FROM history_item WHERE revision > ? "
        .. "GROUP BY revision ORDER BY revision DESC"
    for _, row in ipairs(db:rows(sql, last)) do
        bytes = bytes + row[2]
        if bytes > MAX_BYTES then
            last = row[1]
            break
        end
    end
    if last > 0 then
        db:run("DELETE FROM history WHERE revision <= ?", last)
        db:run("DELETE FROM history_item WHERE revision <= ?", last)
        db:run("UPDATE history_reach SET revision = max(revision, ?)", last)
    end
end

local function counts(db, revision)
    local found = { created = 0, changed = 0, deleted = 0 }
    local kinds = {}
    local sql = "SELECT kind, what, count(*) FROM history_item WHERE revision = ? "
        .. "GROUP BY kind, what"
    for _, row in ipairs(db:rows(sql, revision)) do
        found[row[2]] = found[row[2]] + row[3]
        kinds[#kinds + 1] = { kind = row[1], what = row[2], count = row[3] }
    end
    found.kinds = kinds
    return found
end

--- A page of the revisions that changed entities, the newest first.
-- @tparam table db
-- @tparam table opts `size` 1 to 1,000 (100); `offset` of the page before
-- @treturn {table,...}|nil `{ revision =, at = seconds, by =, created =, changed =, deleted =
-- numbers of entities, kinds = array of `{ kind =, what =, count = }` }`
-- @treturn string|nil offset of the next page; after a nil "invalid size" or "invalid offset"
function _M.changes_made(db, opts)
    local size = tonumber(opts.size or 100)
    if not size or size < 1 or size > MAX_SIZE or size % 1 ~= 0 then
        return nil, "invalid size"
    end
    local before = tonumber(opts.offset or 2 ^ 53)
    if not before or before < 0 or before > 2 ^ 53 or before % 1 ~= 0 then
        return nil, "invalid offset"
    end
    local page = {}
    if not exists(db) then
        return page
    end
    local sql = "SELECT revision, at, by FROM history WHERE revision < ? ORDER BY revision DESC "
        .. "LIMIT ?"
    for i, row in ipairs(db:rows(sql, before, size + 1)) do
        if i > size then
            return page, format("%d", page[size].revision)
        end
        local entry = counts(db, row[1])
        entry.revision, entry.at, entry.by = row[1], row[2], row[3]
        page[i] = entry
    end
    return page
end

-- Where a deleted entity stood, if nobody stands there.
local function place(db, row)
    local taken = format("SELECT 1 FROM e_%s WHERE sequence = ?", row[1])
    return row[3] > 0 and not db:row(taken, row[3]) and row[3] or nil
end

-- The change that makes an entity what it was; nil where it is that.
local function change_of(db, row)
    local now = db:row(format("SELECT text FROM e_%s WHERE id = ?", row[1]), row[2])
    if not row[5] then
        return now and { kind = row[1], delete = row[2] } or nil
    elseif not now or now[1] ~= row[5] then
        local sequence = not now and place(db, row) or nil
        return { kind = row[1], put = row[5], sequence = sequence }
    end
end

--- The changes that lead back to a revision.
-- @tparam table db
-- @tparam table by_kind kind -> layout
-- @tparam number revision
-- @treturn {table,...}|nil `{ kind =, put = text, sequence = }` or `{ kind =, delete = id }`
-- @treturn string|nil after a nil "not found": no such revision yet; "too old": the history does
-- not reach back to it
function _M.changes_back(db, by_kind, revision)
    if revision > db:row("SELECT revision FROM meta")[1] then
        return nil, "not found"
    end
    local reach = exists(db) and db:row("SELECT revision FROM history_reach")
    if not reach or revision < reach[1] then
        return nil, "too old"
    end
    local seen, changes = {}, {}
    local sql = "SELECT kind, id, sequence, what, before FROM history_item WHERE revision > ? "
        .. "ORDER BY revision, rowid"
    for _, row in ipairs(db:rows(sql, revision)) do
        local key = row[1] .. " " .. row[2]
        -- What it was first is what it was then.
        if not seen[key] and by_kind[row[1]] then
            seen[key] = true
            changes[#changes + 1] = change_of(db, row)
        end
    end
    return changes
end

return _M
