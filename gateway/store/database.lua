--- The store: entities on the disk, one revision number, what changed since.
--
-- Every verb blocks on the disk: it runs in a thread (`gateway.store.thread`), on the command line
-- or in a test, never in a worker's event loop. An answered change is on the disk.
--
-- Errors are tables `{ err = word, message =, ... }`. Of the disk and the file: the words of
-- `gateway.store.failure`, with `path`. Of changes, with `kind`, `field` and `value`:
-- "unique violation" (of several fields their names and values joined with ", "; of a secret
-- "***"), "reference missing", "referenced" (`by`, `by_id`: who refers to what would be gone;
-- `by_list`: in which list), "not found", "changed", "invalid", "unknown kind".
-- @module gateway.store.database
-- @usage
-- local store = assert(database.open("/var/lib/sluice/store/store.db", { layouts = layouts }))
-- local done, err = store:transaction({
--     { kind = "services", put = entity_text.encode(service) },
--     { kind = "routes", delete = id },
-- })
-- print(done and done.revision or err.err)

local checkpoints = require("gateway.store.checkpoints")
local copies = require("gateway.store.copies")
local failure = require("gateway.store.failure")
local files = require("gateway.store.files")
local history = require("gateway.store.history")
local layout = require("gateway.store.layout")
local opening = require("gateway.store.opening")
local places = require("gateway.store.places")
local reading = require("gateway.store.reading")
local replacing = require("gateway.store.replacing")
local sqlite = require("gateway.store.sqlite")
local writing = require("gateway.store.writing")

local MAX_DETAILS = 10

local _M = {}
local methods = {}
local mt = { __index = methods }

-- Runs a verb: alone on the connection, and no transaction stays open.
local function guarded(self, fn, ...)
    local db = self.db
    db:enter()
    local ok, first, second = pcall(fn, self, ...)
    if db:in_transaction() then
        pcall(db.run, db, "ROLLBACK")
    end
    db:leave()
    if ok then
        return first, second
    end
    return nil, failure.of_thrown(self.path, first)
end

local function wrap(path, parts, opts)
    return setmetatable({
        path = path,
        db = parts.db,
        lock = parts.lock,
        layouts = parts.layouts,
        by_kind = layout.by_kind(parts.layouts),
        history = parts.history or 0,
        is_witnessed = parts.is_witnessed,
        places = parts.places,
        packing = opts.packing,
        before_commit = opts.before_commit,
        on_filling = opts.on_filling,
    }, mt)
end

--- Opens a store; makes it where there is none. One writer at a time, on the whole machine.
-- @tparam string path
-- @tparam table opts
-- @tparam {table,...} opts.layouts of gateway.store.layout
-- @tparam[opt] boolean opts.read_only no lock, nothing is made
-- @tparam[opt="full"] string opts.synchronous "off": for a copy that can be made again
-- @tparam[opt=false] boolean opts.alone nobody reads meanwhile: a new file is filled without a log
-- @tparam[opt=true] boolean opts.check look at every page first; its cost grows with the file
-- @tparam[opt=0] number opts.history revisions that are kept to go back to; 0 forgets those there
-- are
-- @tparam[opt=true] boolean opts.begins_history false: a history that is there goes on, and none
-- begins
-- @tparam[opt] table opts.at_least `{ uuid =, revision =, path = }` that was answered once, and
-- which file says so
-- @tparam[opt] table opts.live `{ uuid =, revision = }` that a running gateway serves
-- @tparam[opt=false] boolean opts.as_is whatever is known of it: for one who reads what is left
-- @tparam[opt=false] boolean opts.verify compare every page with the digests of the last checkpoint
-- @tparam[opt] table opts.packing `version(layout)`; `write(buffer, layout, entity, size)`, which
-- puts the bytes that stand beside a text of that size and says whether there are any, or nil and
-- an error of a change; a kind that was written by another version, or without, is packed anew
-- @tparam[opt] function opts.before_commit `(db, since, now, kinds)`, called once before each
-- commit that changes anything, with the revisions `{ uuid =, revision = }`, and kind -> true of
-- all whose rows may have changed, nil: of any; it may throw `{ refused = error }`
-- @tparam[opt] function opts.on_filling `(since)`, called before a `replace` where there is
-- nothing; gives what is called for each entity (`image` of gateway.store.filling)
-- @treturn table|nil store
-- @treturn nil|table error; also "locked", "network file system", "too new", "missing", "behind",
-- "foreign": nothing was written then
function _M.open(path, opts)
    path = files.plain_path(path)
    local parts, err = opening.open(path, opts)
    if not parts then
        return nil, err
    end
    parts.is_witnessed = not opts.read_only and opts.synchronous ~= "off"
    parts.places = parts.is_witnessed and places.note(path) or nil
    return wrap(path, parts, opts)
end

--- What another Lua VM of this process needs to use an open store: plain data.
-- @treturn table
function methods:handle()
    return {
        address = self.db:address(),
        path = self.path,
        lock = self.lock,
        layouts = self.layouts,
        history = self.history,
        is_witnessed = self.is_witnessed,
        places = self.places,
    }
end

--- The store behind a handle. It is closed once, by whoever closes it last.
-- @tparam table handle
-- @tparam[opt] table opts those of `open` that are no plain data: `packing`, `before_commit`,
-- `on_filling`
-- @treturn table store
function _M.attach(handle, opts)
    return wrap(handle.path, {
        db = sqlite.attach(handle.address),
        lock = handle.lock,
        layouts = handle.layouts,
        history = handle.history,
        is_witnessed = handle.is_witnessed,
        places = handle.places,
    }, opts or {})
end

--- Gives back what this VM has of the store, which stays open, and the pages that a large change
-- has left in memory.
function methods:detach()
    pcall(self.db.run, self.db, "PRAGMA shrink_memory")
    self.db:forget()
end

--- Empties the log, where nobody reads it: its file is as large as it once was.
-- @treturn boolean whether it is empty
-- @treturn nil|table error
function methods:empty_log()
    return guarded(self, function()
        writing.check_places(self)
        return checkpoints.empty(self.db, self.path)
    end)
end

--- Closes the store and gives its lock back. In order: its file is whole then without its log.
function methods:close()
    if self.is_witnessed then
        guarded(self, function()
            checkpoints.finish(self.db, self.path, self.places)
        end)
    end
    self.db:close()
    if self.lock then
        files.unlock(self.lock)
    end
end

local function layout_of(self, kind)
    local of = self.by_kind[kind]
    if not of then
        error({ refused = { err = "unknown kind", kind = kind } }, 0)
    end
    return of
end

local function not_found(kind, value)
    error(
        { refused = { err = "not found", kind = kind, field = "id", value = tostring(value) } },
        0
    )
end

--- Finds an entity by its id or its name.
-- @tparam string kind
-- @tparam string id_or_name
-- @treturn table|nil `{ id, text, sequence, slot, generation, revision, created_at, updated_at }`
-- @treturn nil|table error, "not found" among them
function methods:get(kind, id_or_name)
    return guarded(self, function()
        local row = reading.get(self.db, layout_of(self, kind), id_or_name)
        return row or not_found(kind, id_or_name)
    end)
end

--- Finds an entity by its name alone, which may be the id of another one.
-- @tparam string kind
-- @tparam string name
-- @treturn table|nil as `get`
-- @treturn nil|table error: "not found"
function methods:named(kind, name)
    return guarded(self, function()
        return reading.named(self.db, layout_of(self, kind), name) or not_found(kind, name)
    end)
end

--- Finds the entity that one would be, by what is unique.
-- @tparam string kind
-- @tparam table values of fields, and
-- @tparam string id, as gateway.store.reading's `find` has them
-- @treturn table|nil as `get`
-- @treturn nil|table error: "not found"
function methods:find(kind, values, id)
    return guarded(self, function()
        return reading.find(self.db, layout_of(self, kind), values, id) or not_found(kind, id)
    end)
end

local function page_of(kind, page, next_offset)
    return page or error({ refused = { err = next_offset, kind = kind } }, 0), next_offset
end

--- Entities that have expired.
-- @tparam number limit
-- @return as `expired` of gateway.store.reading
-- @treturn nil|table after a nil the error
function methods:expired(limit)
    return guarded(self, function()
        return reading.expired(self.db, self.layouts, limit)
    end)
end

--- Which of some names nobody has.
-- @tparam string kind that the names are of
-- @tparam {string,...} names
-- @treturn {string,...}|nil
-- @treturn nil|table error
function methods:unused(kind, names)
    return guarded(self, function()
        local of, found = layout_of(self, kind), {}
        for _, name in ipairs(names) do
            if not reading.is_used(self.db, of, name) then
                found[#found + 1] = name
            end
        end
        return found
    end)
end

--- Lists a kind a page at a time, in order of sequence.
-- @tparam string kind
-- @tparam[opt] table opts `size`, `offset`, `tags`, `where` of gateway.store.reading
-- @treturn {table,...}|nil rows as `get` has them
-- @treturn string|nil|table offset of the next page; after a nil the error, whose words are also
-- "invalid size", "invalid offset", "invalid tags" and "unknown field"
function methods:list(kind, opts)
    return guarded(self, function()
        return page_of(kind, reading.list(self.db, layout_of(self, kind), opts or {}))
    end)
end

--- Lists tags and who has them a page at a time.
-- @tparam table opts of gateway.store.reading
-- @treturn {table,...}|nil `{ tag =, kind =, id =, sequence = }`
-- @treturn string|nil|table as `list`
function methods:tags(opts)
    return guarded(self, function()
        return page_of(nil, reading.tags(self.db, self.layouts, opts))
    end)
end

--- Who changed what when, the newest first, a page at a time.
-- @tparam[opt] table opts `size`, `offset` of gateway.store.history
-- @treturn {table,...}|nil of gateway.store.history
-- @treturn string|nil|table as `list`
function methods:changes_made(opts)
    return guarded(self, function()
        return page_of(nil, history.changes_made(self.db, self.by_kind, opts or {}))
    end)
end

--- What a revision changed, as of one moment.
-- @tparam number revision
-- @treturn {table,...}|nil of gateway.store.history
-- @treturn nil|table error: "not found"
function methods:changed_in(revision)
    return guarded(self, function()
        self.db:run("BEGIN")
        return history.changed_in(self.db, self.by_kind, revision)
    end)
end

--- The changes that lead back to a revision, as of one moment.
-- @tparam number revision
-- @treturn {table,...}|nil changes whose `put` is a text
-- @treturn table the revision that they are for; after a nil the error: "not found", "too old"
function methods:changes_back(revision)
    return guarded(self, function()
        self.db:run("BEGIN")
        return history.changes_back(self.db, self.by_kind, revision), reading.revision(self.db)
    end)
end

--- The last revision.
-- @treturn table|nil `{ uuid =, revision =, origin = }`
function methods:revision()
    return guarded(self, function()
        return reading.revision(self.db)
    end)
end

--- What has changed since a revision, in order of revision, as of one moment.
-- @tparam table since `{ uuid =, revision = }`
-- @treturn {table,...}|nil rows with `kind`; deleted ones have `gone` and no text
-- @treturn table the revision that it leads to; after a nil the error: "too old" asks for all
function methods:changes_since(since)
    return guarded(self, function()
        self.db:run("BEGIN")
        local found, now = reading.changes_since(self.db, self.layouts, since)
        if not found then
            error({ refused = { err = now, field = "revision", value = since.revision } }, 0)
        end
        return found, now
    end)
end

--- Reads as of one moment.
-- @tparam function fn `(db, now)` with the connection and `{ uuid =, revision = }`; what it throws
-- is an error as in the other verbs
-- @return what it returns
function methods:read(fn)
    return guarded(self, function()
        self.db:run("BEGIN")
        return fn(self.db, reading.revision(self.db))
    end)
end

--- Makes many transactions with one commit, each for itself: one that is refused leaves the others
-- alone.
-- @tparam {table,...} transactions array of arrays of changes, as for `transaction`; with `by`
-- (who, for the history), and `at_revision` where they are only for that revision of the store
-- ("changed"), or `is_dry_run`: one that can be made has the error "dry run", with what is `gone`
-- @treturn {table,...}|nil for each `{ revision =, uuid =, origin =, dates = }` (the origin after
-- all of them), or an error of its changes. `dates`, where a change has left dates to the store,
-- has for each such change `{ created_at, updated_at }`, false where the kind has none; and false
-- for other changes
-- @treturn nil|table the error of the disk: none of them was made
function methods:batch(transactions)
    return guarded(self, writing.batch, transactions)
end

--- Makes changes, all or none. What counts is the state after all of them: two entities may swap
-- names. An entity that is there keeps its place and its slot. One that is the same is no change.
-- @tparam {table,...} changes `{ kind =, put = entity with its id, or its text, sequence = }` (the
-- sequence only where its place among equals is told by a file) or `{ kind =, delete = id }`; each
-- entity once. What refers to a deleted one by cascade goes with it. With `if_revision` an upsert
-- that is complete, or a deletion, is made only where the entity still has this revision (0:
-- where there is none), else all are refused: "changed". A `lenient` upsert leaves an entity that
-- is there as it is, a lenient deletion needs none. A deletion with `if_unused` leaves one alone
-- whose name others have before the changes. After changes of what a file can hold, the store has
-- no origin.
-- @treturn table|nil `{ uuid =, revision =, origin =, dates = }`
-- @treturn nil|table error
function methods:transaction(changes)
    local results, err = self:batch({ changes })
    if not results then
        return nil, err
    elseif not results[1].revision then
        return nil, results[1]
    end
    return results[1]
end

--- Makes the store hold these entities and no others, their places as in the list. Ids that stay
-- keep their slots.
-- @tparam {table,...} items `{ kind =, put = }`, which get their `sequence`
-- @tparam[opt] string origin what they were made from, for `revision` to tell
-- @tparam[opt] string by who, for the history
-- @treturn table|nil `{ uuid =, revision =, origin =, changed = whether anything has }`
-- @treturn nil|table error
function methods:replace(items, origin, by)
    return guarded(self, replacing.run, items, origin, by)
end

--- Makes the changes that lead from the file that the store's entities were made from to the next.
-- @tparam table sent `before`, `revision`, `origin` and `changes` as gateway.store.replacing has
-- them for its `patch`
-- @tparam[opt] string by who, for the history
-- @treturn table|nil as `replace`
-- @treturn nil|table error; any that is not of the disk: the whole file is to be replaced
function methods:patch(sent, by)
    return guarded(self, replacing.patch, sent, by)
end

--- Lets the slots of what was deleted at or before a revision be used again, each with its next
-- generation: no image that is live knows the entities that had them. How many there are depends on
-- the changes since the last time, so none of them passes through Lua.
-- @tparam number revision
-- @treturn number|nil how many there were
-- @treturn nil|table error
function methods:release(revision)
    return guarded(self, function()
        local db = self.db
        local which = " WHERE revision <= ? AND released = 0"
        local count = db:row("SELECT count(*) FROM gone" .. which, revision)[1]
        if count == 0 then
            return 0
        end
        db:run("BEGIN IMMEDIATE")
        db:run(
            "INSERT INTO free_slot (space, slot, generation) SELECT space, slot, generation "
                .. "FROM gone JOIN kind ON kind.name = gone.kind"
                .. which,
            revision
        )
        db:run("UPDATE gone SET released = 1" .. which, revision)
        writing.commit(self)
        return count
    end)
end

--- Forgets deletions at or before a revision, as far as their slots are released. `changes_since`
-- reaches back to there no more.
-- @tparam number revision
-- @treturn boolean|nil
function methods:compact(revision)
    return guarded(self, function()
        local db = self.db
        db:run("BEGIN IMMEDIATE")
        local which = " FROM gone WHERE released = 1 AND revision <= ?"
        local last = db:row("SELECT max(revision)" .. which, revision)[1]
        if last then
            db:run("DELETE" .. which, revision)
            db:run("UPDATE meta SET compacted = max(compacted, ?)", last)
        end
        history.trim(db, self.history)
        writing.commit(self)
        return true
    end)
end

--- Reads every page and index, and follows every reference.
-- @treturn boolean|nil
-- @treturn nil|table error "corrupt" with `details`, at most ten lines
function methods:check()
    return guarded(self, function()
        local found = self.db:rows(string.format("PRAGMA integrity_check(%d)", MAX_DETAILS))
        local details = {}
        for _, row in ipairs(found) do
            details[#details + 1] = row[1] ~= "ok" and row[1] or nil
        end
        local broken = self.db:rows("PRAGMA foreign_key_check")
        for i = 1, math.min(#broken, MAX_DETAILS - #details) do
            details[#details + 1] =
                string.format("%s refers to none in %s", broken[i][1], broken[i][3])
        end
        if #details > 0 then
            local err = failure.new(self.path, "corrupt", "is damaged: " .. details[1])
            err.details = details
            return nil, err
        end
        return true
    end)
end

--- Copies the store as it is now into a new file, which is a store. Opened for writing, that gets
-- a uuid of its own: its revisions are not these.
-- @tparam string path of the new file
-- @treturn boolean|nil
-- @treturn nil|table error, also "exists"
function methods:backup(path)
    return guarded(self, function()
        return copies.backup(self.db, files.plain_path(path))
    end)
end

--- Writes all entities into a new file, as a declarative configuration in JSON.
-- @tparam string path of the new file
-- @treturn boolean|nil
-- @treturn nil|table error, also "exists"
function methods:export(path)
    return guarded(self, function()
        self.db:run("BEGIN")
        return copies.export(self.db, self.layouts, files.plain_path(path))
    end)
end

return _M
