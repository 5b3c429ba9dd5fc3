--- How changes are written: members of one commit, each made or refused for itself.
-- @module gateway.store.writing

local history = require("gateway.store.history")
local reading = require("gateway.store.reading")
local sqlite = require("gateway.store.sqlite")
local transaction = require("gateway.store.transaction")

local error = error
local ipairs = ipairs
local pcall = pcall
local type = type

local _M = {}

-- A commit that the disk broke may stand in the log all the same, for whoever opens it next. A
-- checkpoint that empties the log decides it; where the disk does not let it, or there is no log
-- (an `alone` store), nothing more is written through this connection.
local function settle(db, thrown)
    if db:in_transaction() then
        pcall(db.run, db, "ROLLBACK")
    end
    if sqlite.basic(thrown.code) ~= sqlite.IOERR then
        return
    end
    local ok, row = pcall(db.row, db, "PRAGMA wal_checkpoint(TRUNCATE)")
    if not ok or row[1] ~= 0 or row[2] < 0 then
        db:run("PRAGMA query_only = ON")
    end
end

--- Commits; throws what gateway.store.sqlite does, and then the transaction was not made.
-- @tparam table db
function _M.commit(db)
    local ok, thrown = pcall(db.run, db, "COMMIT")
    if not ok then
        settle(db, thrown)
        error(thrown, 0)
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

-- `before`: the revision so far.
local function make_changes(self, changes, before)
    if changes.at_revision and changes.at_revision ~= before then
        error({ refused = { err = "changed", field = "revision", value = before } }, 0)
    end
    transaction.check_revisions(self.db, self.by_kind, changes)
    local revision, planned =
        transaction.make(self.db, self.by_kind, before, changes, nil, self.packing)
    if self.history > 0 and revision > before then
        note_history(self, changes, revision)
    end
    local dates, has_dates = {}, false
    for i, it in ipairs(planned) do
        dates[i] = it.undated and { it.created_at or false, it.updated_at or false } or false
        has_dates = has_dates or it.undated ~= nil
    end
    return { revision = revision, dates = has_dates and dates or nil }
end

-- A lone member has no savepoint, whose journal SQLite goes through again with each deletion: where
-- it is refused, so is all that was begun.
local function make_member(self, changes, before, is_lone)
    local db = self.db
    if not is_lone then
        db:run("SAVEPOINT member")
    end
    local ok, made = pcall(make_changes, self, changes, before)
    local is_refused = not ok and type(made) == "table" and made.refused
    if not ok and not is_refused then
        error(made, 0)
    elseif is_lone and is_refused then
        db:run("ROLLBACK")
        db:run("BEGIN IMMEDIATE")
    elseif not is_lone then
        if is_refused then
            db:run("ROLLBACK TO member")
        end
        db:run("RELEASE member")
    end
    return is_refused or made
end

-- What has to hold before anything is decided: `before_commit` sees the changed rows in the same
-- transaction. What it throws undoes all of it, as where the disk refuses.
local function finish(self, since, revision, kinds)
    local now = { uuid = since.uuid, revision = revision }
    if self.before_commit and now.revision > since.revision then
        self.before_commit(self.db, since, now, kinds)
    end
    _M.commit(self.db)
end

-- Notes the kinds of changes: only of these are rows new. What goes by cascade is gone.
local function note_kinds(kinds, changes)
    for _, change in ipairs(changes) do
        kinds[change.kind] = true
    end
end

--- Makes many transactions with one commit (gateway.store.database has what holds). Throws a
-- failure of the disk, or what `before_commit` does; the caller rolls back.
-- @tparam table self store
-- @tparam {table,...} members
-- @treturn {table,...}
function _M.batch(self, members)
    local db, results = self.db, {}
    db:run("BEGIN IMMEDIATE")
    local since = reading.revision(db)
    local revision, origin = since.revision, since.origin
    local kinds = {}
    for i, changes in ipairs(members) do
        local made = make_member(self, changes, revision, #members == 1)
        if made.revision and made.revision > revision then
            revision = made.revision
            note_kinds(kinds, changes)
            origin = not concerns_file(self, changes) and origin or nil
        end
        results[i] = made
    end
    if origin ~= since.origin then
        db:run("UPDATE meta SET origin = NULL")
    end
    for _, made in ipairs(results) do
        made.uuid, made.origin = made.revision and since.uuid, made.revision and origin
    end
    finish(self, since, revision, kinds)
    return results
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
    finish(self, since, revision)
    return {
        revision = revision,
        uuid = since.uuid,
        origin = origin,
        changed = revision > since.revision,
    }
end

return _M
