--- How changes are written: transactions of one commit, each made or refused for itself.
-- @module gateway.store.writing

local checkpoints = require("gateway.store.checkpoints")
local history = require("gateway.store.history")
local places = require("gateway.store.places")
local reading = require("gateway.store.reading")
local sqlite = require("gateway.store.sqlite")
local transaction = require("gateway.store.transaction")
local witness = require("gateway.store.witness")

local _M = {}

-- A commit that the disk broke may stand in the log all the same, for whoever opens it next. A
-- checkpoint that empties the log decides it; where the disk does not let it, or there is no log
-- (an `alone` store), nothing more is written through this connection.
local function settle(self, thrown)
    local db = self.db
    if db:in_transaction() then
        pcall(db.run, db, "ROLLBACK")
    end
    if sqlite.basic(thrown.code) ~= sqlite.IOERR then
        return
    end
    if not checkpoints.settle(db, self.path) then
        db:run("PRAGMA query_only = ON")
    end
end

--- Looks whether the store's files are where they were opened.
-- Throws `{ word = "moved", reason = }`.
-- @tparam table self store
function _M.check_places(self)
    local lost, reason = nil, nil
    if self.places then
        lost, reason = places.lost(self.path, self.places)
    end
    if lost then
        error({ word = "moved", reason = reason .. " while the store was open" }, 0)
    end
end

--- Commits; throws what gateway.store.sqlite does, or `check_places`, and then the transaction was
-- not made.
-- @tparam table self store
-- @tparam[opt] table now `{ uuid =, revision =, origin = }` where that is another than before
function _M.commit(self, now)
    _M.check_places(self)
    local ok, thrown = pcall(self.db.run, self.db, "COMMIT")
    if not ok then
        settle(self, thrown)
        error(thrown, 0)
    elseif self.is_witnessed then
        if now then
            witness.note(self.path, now)
        end
        checkpoints.make_due(self.db, self.path)
    end
end

-- Whether changes concern more than what the gateway has found out itself.
local function concerns_file(self, changes)
    for _, change in ipairs(changes) do
        if not self.by_kind[change.kind].is_internal then
            return true
        end
    end
    return false
end

local function note_history(self, changes, revision)
    if concerns_file(self, changes) then
        history.note(self.db, revision, changes.by)
    end
end

local function refusal_of(thrown)
    return type(thrown) == "table" and thrown.refused
end

-- Makes a transaction, or throws. `before`: the revision so far.
local function make_changes(self, changes, before)
    if changes.at_revision and changes.at_revision ~= before then
        error({ refused = { err = "changed", field = "revision", value = before } }, 0)
    end
    transaction.check_revisions(self.db, self.by_kind, changes)
    local revision, made =
        transaction.make(self.db, self.by_kind, before, changes, nil, self.packing)
    if changes.is_dry_run then
        local gone = revision > before and transaction.gone(self.db, revision) or {}
        error({ refused = { err = "dry run", gone = gone } }, 0)
    end
    if self.history > 0 and revision > before then
        note_history(self, changes, revision)
    end
    local dates, has_dates = {}, false
    for i, it in ipairs(made) do
        dates[i] = it.undated and { it.created_at or false, it.updated_at or false } or false
        has_dates = has_dates or it.undated ~= nil
    end
    return { revision = revision, dates = has_dates and dates or nil }
end

-- Makes a transaction, or tells why it is refused: then it leaves nothing.
local function make_guarded(self, changes, before)
    local db = self.db
    db:run("SAVEPOINT changes")
    local ok, made = pcall(make_changes, self, changes, before)
    if not ok then
        if not refusal_of(made) then
            error(made, 0)
        end
        db:run("ROLLBACK TO changes")
    end
    db:run("RELEASE changes")
    return ok and made or refusal_of(made)
end

-- Whether a deletion takes references of a kind away.
local function loses_references(of)
    for _, column in ipairs(of.columns) do
        if column.on_delete == "null" then
            return true
        end
    end
    return false
end

-- Notes the kinds of changes: only of these are rows new, and of those that a deletion takes
-- references from. What goes by cascade is gone.
local function note_kinds(self, kinds, changes)
    local has_deletions = false
    for _, change in ipairs(changes) do
        kinds[change.kind] = true
        has_deletions = has_deletions or change.delete ~= nil
    end
    for kind, of in pairs(has_deletions and self.by_kind or {}) do
        kinds[kind] = kinds[kind] or loses_references(of) or nil
    end
end

-- Makes transactions one after the other; `make` is one of the two above. Throws what that throws.
local function make_all(self, transactions, since, make)
    local all = { results = {}, kinds = {}, revision = since.revision, origin = since.origin }
    for i, changes in ipairs(transactions) do
        local made = make(self, changes, all.revision)
        if made.revision and made.revision > all.revision then
            all.revision = made.revision
            note_kinds(self, all.kinds, changes)
            local is_files = not changes.keeps_origin and concerns_file(self, changes)
            all.origin = not is_files and all.origin or nil
        end
        all.results[i] = made
    end
    return all
end

-- Savepoints have SQLite copy each page that one changes, and go through all copies with each
-- deletion: they are for transactions of which one is known to be refused.
local function make_batch(self, transactions, since)
    local ok, made = pcall(make_all, self, transactions, since, make_changes)
    if ok then
        return made
    end
    local refusal = refusal_of(made)
    if not refusal then
        error(made, 0)
    end
    self.db:run("ROLLBACK")
    self.db:run("BEGIN IMMEDIATE")
    if #transactions > 1 then
        return make_all(self, transactions, since, make_guarded)
    end
    return make_all(self, transactions, since, function()
        return refusal
    end)
end

-- What has to hold before anything is decided: `before_commit` sees the changed rows in the same
-- transaction. What it throws undoes all of it, as where the disk refuses.
local function finish(self, since, now, kinds)
    local has_changed = now.revision > since.revision
    if self.before_commit and has_changed then
        self.before_commit(self.db, since, now, kinds)
    end
    _M.commit(self, (has_changed or now.origin ~= since.origin) and now or nil)
end

--- Makes many transactions with one commit (gateway.store.database has what holds). Throws a
-- failure of the disk, or what `before_commit` does; the caller rolls back.
-- @tparam table self store
-- @tparam {table,...} transactions
-- @treturn {table,...}
function _M.batch(self, transactions)
    local db = self.db
    db:run("BEGIN IMMEDIATE")
    local since = reading.revision(db)
    local made = make_batch(self, transactions, since)
    if made.origin ~= since.origin then
        db:run("UPDATE meta SET origin = NULL")
    end
    for _, result in ipairs(made.results) do
        result.uuid, result.origin = result.revision and since.uuid, result.revision and made.origin
    end
    local now = { uuid = since.uuid, revision = made.revision, origin = made.origin }
    finish(self, since, now, made.kinds)
    return made.results
end

--- Replaces what is there in a transaction. Throws as `batch`.
-- @tparam table self store
-- @tparam string|nil origin
-- @tparam string|nil by who, for the history
-- @tparam function make `(since)` makes the changes; the revision that they have
-- @treturn table `{ uuid =, revision =, origin =, changed = }`
function _M.replace(self, origin, by, make)
    local db = self.db
    db:run("BEGIN IMMEDIATE")
    local since = reading.revision(db)
    local revision = make(since)
    db:run("UPDATE meta SET origin = ?", origin)
    if self.history > 0 and revision > since.revision then
        history.note(db, revision, by)
    end
    local now = { uuid = since.uuid, revision = revision, origin = origin }
    finish(self, since, now)
    now.changed = revision > since.revision
    return now
end

return _M
