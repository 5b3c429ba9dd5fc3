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

-- Texts that are kept of what was.
local MAX_BYTES = 64 * 1024 * 1024
local MAX_SIZE = 1000
local MAX_BY = 200
-- Entities of a revision that a page of revisions has.
local MAX_NAMED = 5
-- Bytes of their texts.
local MAX_TEXT = 4096

local NO_REVISION = "there is no revision %d: the history has %d to %d"
local NOT_REACHED = "there is no revision %d to go back to: there are %d to %d"
local NO_ENTITY = "revision %d changed no entity: the history has %d to %d"

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

-- Whether there is one to go on with: one that was forgotten has no reach.
local function has_begun(db)
    return exists(db) and db:row("SELECT 1 FROM history_reach") ~= nil
end

--- Begins to keep a history, goes on with it, or forgets it; in the caller's transaction, once the
-- tables of the kinds are there.
-- @tparam table db connection
-- @tparam {table,...} layouts of gateway.store.layout
-- @tparam number count of revisions to keep; 0 forgets those there are
-- @tparam boolean begins false: one that is there goes on, and none begins
-- @treturn number how many are kept
function _M.adapt(db, layouts, count, begins)
    if count == 0 then
        stop(db)
    elseif begins or has_begun(db) then
        start(db, layouts)
        return count
    end
    return 0
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

-- The first entities of a revision.
local function named(db, revision)
    local list = {}
    local sql = "SELECT kind, id, what, before FROM history_item WHERE revision = ? "
        .. "ORDER BY rowid LIMIT ?"
    for i, row in ipairs(db:rows(sql, revision, MAX_NAMED)) do
        list[i] = { kind = row[1], id = row[2], what = row[3], text = row[4] }
    end
    return list
end

-- The texts that entities had after the revisions that made them: what their next change found, or
-- what they are. One look through the history for all.
local function add_texts(db, by_kind, page)
    local waiting, ids = {}, {}
    for i = #page, 1, -1 do
        for _, each in ipairs(page[i].named) do
            if not each.text then
                waiting[each.id] = waiting[each.id] or {}
                table.insert(waiting[each.id], { each = each, revision = page[i].revision })
                ids[#ids + 1] = each.id
            end
        end
    end
    local sql = "SELECT kind, id, revision, before FROM history_item WHERE before IS NOT NULL "
        .. "AND revision > ? AND id IN (?%s) ORDER BY revision, rowid"
    local rows = #ids > 0
        and db:rows(sql:format((", ?"):rep(#ids - 1)), page[#page].revision, unpack(ids))
    for _, row in ipairs(rows or {}) do
        for _, it in ipairs(waiting[row[2]]) do
            if not it.each.text and it.each.kind == row[1] and it.revision < row[3] then
                it.each.text = row[4]
            end
        end
    end
    for id, list in pairs(waiting) do
        for _, it in ipairs(list) do
            local kind = it.each.kind
            local row = not it.each.text
                and by_kind[kind]
                and db:row(string.format("SELECT text FROM e_%s WHERE id = ?", kind), id)
            it.each.text = row and row[1] or it.each.text
        end
    end
end

-- Texts that are long have no names for people.
local function drop_long_texts(page)
    for _, made in ipairs(page) do
        for _, each in ipairs(made.named) do
            each.text = each.text and #each.text <= MAX_TEXT and each.text or nil
        end
    end
    return page
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
-- @tparam table by_kind kind -> layout
-- @tparam table opts `size` 1 to 1,000 (100); `offset` of the page before
-- @treturn {table,...}|nil `{ revision =, at = seconds, by =, created =, changed =, deleted =
-- numbers of entities, kinds = array of `{ kind =, what =, count = }`, named = the first of them:
-- `{ kind =, id =, what =, text = of the entity } }`
-- @treturn string|nil offset of the next page; after a nil "invalid size" or "invalid offset"
function _M.changes_made(db, by_kind, opts)
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
    local rows = db:rows(sql, before, size + 1)
    for i = 1, math.min(#rows, size) do
        local row = rows[i]
        local made = counts(db, row[1])
        made.revision, made.at, made.by = row[1], row[2], row[3]
        made.named = named(db, row[1])
        page[i] = made
    end
    add_texts(db, by_kind, page)
    return drop_long_texts(page), rows[size + 1] and string.format("%d", page[size].revision)
end

-- Where a deleted entity stood, if nobody stands there.
local function place(db, row)
    local taken = string.format("SELECT 1 FROM e_%s WHERE sequence = ?", row[1])
    return row[3] > 0 and not db:row(taken, row[3]) and row[3] or nil
end

-- The change that makes an entity what it was; nil where it is that.
local function change_of(db, row)
    local now = db:row(string.format("SELECT text FROM e_%s WHERE id = ?", row[1]), row[2])
    if not row[5] then
        return now and { kind = row[1], delete = row[2] } or nil
    elseif not now or now[1] ~= row[5] then
        local sequence = not now and place(db, row) or nil
        return { kind = row[1], put = row[5], sequence = sequence }
    end
end

-- Revisions that a history has: the first and the last that changed entities, nil where none did,
-- and the oldest that can be gone back to; nil where there is no history.
local function range_of(db)
    if not has_begun(db) then
        return nil
    end
    local range = db:row("SELECT min(revision), max(revision) FROM history")
    local reach = db:row("SELECT revision FROM history_reach")[1]
    return { first = range[1], last = range[2], reach = reach }
end

-- Throws why there is no such revision: `form` with its number and those that there are.
local function refuse(word, form, revision, range, first, last)
    local message = "the store keeps no history"
    if range and not range.first then
        message = "no changes yet"
    elseif range then
        message = form:format(revision, first, last)
    end
    local err = { err = word, field = "revision", value = revision, message = message }
    error({ refused = err }, 0)
end

--- What a revision changed: each entity once, before and after. Throws where there is none:
-- "not found".
-- @tparam table db
-- @tparam table by_kind kind -> layout
-- @tparam number revision
-- @treturn {table,...} `{ kind =, before = text, after = text }`, nil where there was none
function _M.changed_in(db, by_kind, revision)
    local range = range_of(db)
    if not range or not db:row("SELECT 1 FROM history WHERE revision = ?", revision) then
        -- What the gateway finds out by itself makes revisions, too.
        local last = db:row("SELECT revision FROM meta")[1]
        local is_hole = range and revision > range.reach and revision <= last
        local form = is_hole and NO_ENTITY or NO_REVISION
        refuse("not found", form, revision, range, range and range.first, range and range.last)
    end
    local list, by_key = {}, {}
    local sql = "SELECT kind, id, before FROM history_item WHERE revision = ? ORDER BY rowid"
    for _, row in ipairs(db:rows(sql, revision)) do
        local key = row[1] .. " " .. row[2]
        if not by_key[key] and by_kind[row[1]] then
            local now = db:row(string.format("SELECT text FROM e_%s WHERE id = ?", row[1]), row[2])
            by_key[key] = { kind = row[1], before = row[3], after = now and now[1] }
            list[#list + 1] = by_key[key]
        end
    end
    -- What the next change of each found is what this one left.
    sql = "SELECT kind, id, before FROM history_item WHERE revision > ? AND id IN "
        .. "(SELECT id FROM history_item WHERE revision = ?) ORDER BY revision, rowid"
    for _, row in ipairs(db:rows(sql, revision, revision)) do
        local key = row[1] .. " " .. row[2]
        if by_key[key] then
            by_key[key].after, by_key[key] = row[3], nil
        end
    end
    return list
end

--- The changes that lead back to a revision. Throws where there are none: "not found", no such
-- revision yet; "too old", the history does not reach back to it.
-- @tparam table db
-- @tparam table by_kind kind -> layout
-- @tparam number revision
-- @treturn {table,...} `{ kind =, put = text, sequence = }` or `{ kind =, delete = id }`
function _M.changes_back(db, by_kind, revision)
    local last = db:row("SELECT revision FROM meta")[1]
    local range = range_of(db)
    if not range or revision < range.reach or revision > last then
        local word = revision > last and "not found" or "too old"
        refuse(word, NOT_REACHED, revision, range, range and range.reach, last)
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
