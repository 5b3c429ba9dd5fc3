--- The writer: it alone changes the store and what is live, and keeps the two together.
--
--   BEGIN; the changes; stage them in the delta, or build a new base; COMMIT; publish
--
-- So nothing is committed that no image can hold, and nothing is live that is not committed. Who
-- dies on the way leaves a delta whose end nobody sees, or files that nobody names; the successor
-- makes a new delta from the store and repairs nothing. docs/control.md has the whole way.
--
-- Every verb blocks. In nginx a thread calls it (gateway.writer.thread), since each thread
-- has a Lua VM of its own through `handle` and `attach`; a command calls it as it is. One call at a
-- time, but for `is_sound`, `merge` and `save`, which change nothing that another call reads.
--
-- Errors are the store's (docs/store.md), and "full" (no room for images, no memory) and
-- "unbuildable" (an entity is over a limit of images: `kind`, `id`, `field` where that is known).
--
-- Long on purpose: the order of what is committed, published and merged.
-- @module gateway.writer

local change_of = require("gateway.store.change")
local checkpoints = require("gateway.store.checkpoints")
local database = require("gateway.store.database")
local disk_space = require("gateway.writer.disk_space")
local evidence = require("gateway.writer.evidence")
local failure = require("gateway.store.failure")
local files = require("gateway.writer.files")
local layout = require("gateway.store.layout")
local lost_files = require("gateway.writer.lost_files")
local packed_rows = require("gateway.store.packed_rows")
local patterns = require("gateway.writer.patterns")
local raising = require("gateway.writer.raising")
local records = require("gateway.image.records")
local rows = require("gateway.image.rows")
local secret_names = require("gateway.writer.secret_names")
local writing = require("gateway.store.writing")

-- Changed entities that a delta is made for; beyond, a new base is cheaper.
local MAX_STAGED = 5000

local _M = {}
local methods = {}
local mt = { __index = methods }

local packing = { version = records.version, write = records.write }

-- Staging and building ----------------------------------------------------------------------------

-- Calls fn with records, whose memory it gives back.
local function with_rows(memory, fn)
    local ok, result = pcall(fn, memory)
    memory:free()
    if not ok then
        error(result, 0)
    end
    return result
end

-- Changes of what is live are checked; what is in the store already is served, whatever it is.
local function count_patterns(self, made, memory)
    local before = made.pattern_bytes
    local bytes, record = patterns.after(memory, before, made.view)
    made.pattern_bytes = bytes
    if made.is_current then
        patterns.check(before, bytes, record, layout.by_kind(self.store.layouts).plugins)
    end
end

-- Brings what was made up to `now`. `kinds` are those with rows that are new, nil: any may have.
-- `on_rows` is called with them. False: it takes a new base.
local function stage(self, db, made, now, kinds, on_rows)
    local memory = rows.changed(db, self.store.layouts, {
        since = tonumber(made.view.revision),
        now = now,
        view = made.view,
        limit = MAX_STAGED,
        kinds = kinds,
    })
    return memory
        and with_rows(memory, function()
            count_patterns(self, made, memory)
            if on_rows then
                on_rows(memory)
            end
            return files.stage(made, memory, now.revision)
        end)
end

-- Bytes of patterns in records of a base, whose memory it gives back where they are too much.
local function checked_patterns(self, memory, before)
    local bytes, record = patterns.after(memory, 0)
    local plugins = layout.by_kind(self.store.layouts).plugins
    local ok, thrown = pcall(patterns.check, before, bytes, record, plugins)
    if not ok then
        memory:free()
        error(thrown, 0)
    end
    return bytes
end

-- Begins a new base of these records: without images to publish the copy for the next start, which
-- shows that they can be built, and that they have room. It is not on the disk when the store is:
-- what a cut of power leaves of it is not sound, and the next start builds another.
local function begin_build(self, memory, now, before)
    local bytes = checked_patterns(self, memory, before)
    local building = { memory = memory, number = self.images and self.images:take_number() }
    building.pattern_bytes = bytes
    self.building = building
    local path = self.images and self.images:base_path(building.number) or self.copy .. ".next"
    local store = rows.uuid_bytes(now.uuid)
    building.path = path
    building.begun = files.begin(path, memory.records, memory.count, store, now.revision)
end

-- Waits for it.
local function finish_build(self)
    local building = self.building
    local ok, bytes = pcall(files.finish, building.begun)
    building.memory:free()
    self.building = nil
    if not ok then
        error(bytes, 0)
    elseif building.number then
        local made = self.images:take_base(building.number)
        made.pattern_bytes = building.pattern_bytes
        return made
    end
    local lack = self.image_dir and disk_space.lacks(self.image_dir, bytes)
    if lack then
        os.remove(building.path)
        local message = self.image_dir .. " " .. lack
        error({ refused = { err = "full", path = self.image_dir, message = message } }, 0)
    end
    return { is_copy = true }
end

-- `before`: bytes of patterns that there were.
local function build(self, db, now, before)
    begin_build(self, rows.all(db, self.store.layouts, now), now, before)
    return finish_build(self)
end

-- Bytes of patterns that are live; 0: of a store that nobody serves it is not known.
local function live_patterns(self)
    local live = self.images and self.images:live()
    return live and live.pattern_bytes or 0
end

-- Gathers an image while an empty store is filled, and has it built while that goes on.
local function on_filling(self, since)
    local gathering = rows.gather(since.uuid)
    self.gathering = gathering
    return {
        add = function(_, ...)
            gathering:add(...)
        end,
        finish = function(_, revision)
            gathering:finish(revision)
            self.gathering = nil
            local at = { uuid = since.uuid, revision = revision }
            begin_build(self, gathering.memory, at, live_patterns(self))
        end,
    }
end

-- What was gathered or is built where the filling was broken off.
local function abandon_filling(self)
    if self.gathering then
        self.gathering.memory:free()
        self.gathering = nil
    end
    if self.building then
        local building = self.building
        pcall(files.finish, building.begun)
        building.memory:free()
        os.remove(building.path)
        self.building = nil
    end
end

-- Runs in the transaction of each change, before it is decided.
local function before_commit(self, db, since, now, kinds)
    if self.images and (not kinds or kinds.plugins) then
        secret_names.publish(db, self.store.layouts, since.revision)
    end
    self.raising = raising.new(self.generations)
    if self.building then
        self.raising:note_all()
        self.made = finish_build(self)
        return
    elseif not self.images then
        self.made = build(self, db, now, 0)
        return
    end
    local made = self.images:current()
    kinds = made.view.revision == since.revision and kinds or nil
    local note = self.raising:is_wanted()
            and function(memory)
                self.raising:note(
                    db,
                    self.store.layouts,
                    made.view,
                    { memory = memory, kinds = kinds }
                )
            end
        or nil
    if not stage(self, db, made, now, kinds, note) then
        self.raising:note_all()
        made = build(self, db, now, live_patterns(self))
    end
    self.made = made
end

-- Frees slots: what is live, or begins the next start, has no entity in them that was deleted at or
-- before a revision.
local function release(self, revision)
    local count, err = self.store:release(revision)
    return count ~= nil or nil, err
end

-- What was made for a change of the store, after it was committed or not.
local function settle(self, is_done)
    local made, raised = self.made, self.raising
    self.made, self.raising = nil, nil
    if not made then
        return
    elseif made.is_copy then
        if is_done then
            os.rename(self.copy .. ".next", self.copy)
        else
            os.remove(self.copy .. ".next")
        end
    elseif is_done then
        raised:raise()
        self.images:publish(made)
        raised:raise()
    else
        self.images:drop(made)
    end
end

local function guarded(self, fn, ...)
    local ok, first, second = pcall(fn, ...)
    if ok then
        return first, second
    end
    return nil, failure.of_thrown(self.path, first)
end

-- Opening ----------------------------------------------------------------------------------------

-- A writer without its store, and the options that this is to have.
local function new(opts)
    local self = setmetatable({}, mt)
    opts.packing = packing
    opts.before_commit = function(...)
        before_commit(self, ...)
    end
    opts.on_filling = function(since)
        return on_filling(self, since)
    end
    return self, opts
end

local function set_store(self, store)
    self.store, self.path, self.copy = store, store.path, evidence.copy_of(store.path)
    return self
end

--- Opens the store, and with it the role of the one writer. Publishes nothing yet.
-- @tparam table opts
-- @tparam string opts.store path
-- @tparam {table,...} opts.layouts of gateway.store.layout
-- @tparam[opt] number opts.page where is published what is live, an address; nil where nobody
-- serves: only the copy for the next start is made
-- @tparam[opt] string opts.images folder of images; without a page it has to have room for them
-- @tparam[opt] number opts.generations of keys in caches: an address (gateway.writer.raising)
-- @tparam[opt] number opts.delta_bytes of gateway.writer.files
-- @tparam[opt=0] number opts.history revisions to keep (gateway.store.database)
-- @tparam[opt=true] boolean opts.begins_history of gateway.store.database
-- @tparam[opt] table opts.live `{ uuid =, revision = }` of what is live already
-- @tparam[opt=false] boolean opts.check look at every page of the store first
-- @treturn table|nil writer
-- @treturn nil|table error, "locked" among them
function _M.open(opts)
    local self, store_opts = new({
        layouts = opts.layouts,
        check = opts.check or false,
        alone = not opts.page,
        history = opts.history,
        begins_history = opts.begins_history,
        live = opts.live,
    })
    local store, err = evidence.open(opts.store, store_opts)
    if not store then
        return nil, err
    end
    set_store(self, store).image_dir = opts.images
    self.generations = opts.generations
    evidence.clean(store.path)
    evidence.clean_copies(store.path)
    if opts.page then
        self.images, err = guarded(self, files.open, {
            folder = opts.images,
            page = opts.page,
            delta_bytes = opts.delta_bytes,
        })
        if not self.images then
            store:close()
            return nil, err
        end
    end
    return self
end

--- What another Lua VM of this process needs for `attach`: plain data.
function methods:handle()
    return {
        store = self.store:handle(),
        images = self.images and self.images:handle(),
        generations = self.generations,
    }
end

--- The writer behind a handle.
function _M.attach(handle)
    local self, store_opts = new({})
    self.images = handle.images and files.attach(handle.images)
    self.generations = handle.generations
    return set_store(self, database.attach(handle.store, store_opts))
end

--- Where the store's files were when it was opened.
-- @treturn table of gateway.store.places
function methods:places()
    return self.store.places
end

--- Saves what `close` would lose where files have gone (gateway.writer.lost_files). No other call
-- may be under way, but those that change nothing.
-- @treturn boolean|nil
-- @treturn nil|string why not now
function methods:save_lost()
    return lost_files.save(self.store)
end

--- Gives the role up. What is published stays.
-- @tparam[opt=false] boolean is_saved by `save_lost`
-- @treturn boolean|nil
-- @treturn nil|string why changes were lost that stood in a log which is gone
function methods:close(is_saved)
    if self.images then
        self.images:close()
    end
    local saved, err = is_saved or nil, nil
    if not saved then
        saved, err = self:save_lost()
    end
    self.store:close()
    return saved, err
end

-- A base that is there, brought up to the store.
local function find(self, db, now, path)
    local made = self.images:find_base(path, rows.uuid_bytes(now.uuid))
    if not made then
        return nil
    end
    local ok, fits = pcall(function()
        made.pattern_bytes = patterns.count(made.view)
        return packed_rows.reaches(db, tonumber(made.view.revision), now)
            and stage(self, db, made, now)
    end)
    if ok and fits then
        return made
    end
    self.images:drop(made)
    if not ok then
        error(fits, 0)
    end
    return nil
end

--- Publishes what the store holds: on the base that is live, on the copy of the last one, or on one
-- built from every row, whichever is the first that fits.
-- @treturn table|nil `{ from = "live", "copy" or "rows" }`
-- @treturn nil|table error
function methods:begin()
    local from
    local made, err = self.store:read(function(db, now)
        self.images:prepare()
        from = "live"
        local found = find(self, db, now, nil)
        if not found then
            from = "copy"
            found = find(self, db, now, self.copy)
        end
        if not found then
            from = "rows"
            -- It may be of revisions that a restored file does not know, and has made otherwise by
            -- the time that it would seem to fit.
            os.remove(self.copy)
            -- What is in the store is served, however much that is.
            found = build(self, db, now, math.huge)
        end
        -- Those that were live have theirs published.
        local since = from == "live" and found.base_revision or 0
        secret_names.publish(db, self.store.layouts, since)
        return found
    end)
    if not made then
        return nil, err
    end
    local revision = made.base_revision
    -- What the last writer has published, and not raised again, or only committed.
    local raised = raising.new(self.generations)
    raised:note_all()
    raised:raise()
    self.images:publish(made)
    raised:raise()
    local released, why = release(self, revision)
    return released and { from = from } or nil, why
end

-- Changing ---------------------------------------------------------------------------------------

--- Completes a change with what its row has. Pure; some microseconds.
-- @tparam table by_kind kind -> layout, of `gateway.store.layout`
-- @tparam table change `{ kind =, put = entity, sequence = }` or `{ kind =, delete = id }`, both
-- with `if_revision` where the entity has to be what it was at that revision
-- @treturn table|nil for `batch` and `replace`
-- @treturn nil|table error
function _M.complete(by_kind, change)
    if not change.put then
        return change
    end
    local of = by_kind[change.kind]
    if not of then
        return nil, { err = "unknown kind", kind = change.kind }
    end
    return change_of.complete(change, of, packing)
end

local function run(self, verb, ...)
    if self.images and not self.images:live() then
        return nil, { err = "not ready", message = "nothing is published yet" }
    end
    local done, err = self.store[verb](self.store, ...)
    abandon_filling(self)
    settle(self, done ~= nil)
    return done, err
end

--- Makes many transactions with one commit, each for itself, and publishes them.
-- @tparam {table,...} transactions arrays of changes
-- @treturn {table,...}|nil for each `{ uuid =, revision =, origin = }` or the error of its changes
-- @treturn nil|table the error of disk or memory: none was made
function methods:batch(transactions)
    local results, err = run(self, "batch", transactions)
    if results or err.err ~= "unbuildable" then
        return results, err
    end
    -- One of them is to blame; the others are made.
    results = {}
    for i, transaction in ipairs(transactions) do
        local done, why = run(self, "batch", { transaction })
        results[i] = done and done[1] or why
    end
    return results
end

--- Makes the store hold these entities and no others.
-- @tparam {table,...} items `{ kind =, put = entity }`, or those of `complete`, in their order
-- @tparam[opt] string origin
-- @tparam[opt] string by who, for the history
-- @treturn table|nil `{ uuid =, revision =, origin =, changed = boolean }`
-- @treturn nil|table error
function methods:replace(items, origin, by)
    return run(self, "replace", items, origin, by)
end

--- Makes the changes that lead from the file that is live to the next one.
-- @tparam table sent of gateway.store.database's `patch`, its upserts those of `complete`
-- @tparam[opt] string by who, for the history
-- @treturn table|nil as `replace`
-- @treturn nil|table error; any that is not of the disk: the whole file is to be replaced
function methods:patch(sent, by)
    return run(self, "patch", sent, by)
end

--- Loads a configuration without nginx.
-- @tparam table opts of `open`, without a page
-- @tparam {table,...} items `{ kind =, put = entity }` of every kind, in their order
-- @tparam[opt] string origin
-- @tparam[opt] string by who, for the history
-- @treturn table|nil `{ uuid =, revision =, changed = }`
-- @treturn nil|table error
function _M.load(opts, items, origin, by)
    local self, err = _M.open(opts)
    if not self then
        return nil, err
    end
    local done
    done, err = self:replace(items, origin, by)
    self:close()
    return done, err
end

-- Merging ----------------------------------------------------------------------------------------

--- What is live.
-- @treturn table|nil what `live` of gateway.writer.files gives; `is_whole`, by the heads of the
-- files: where it is not, `begin` makes it so; `stamp`: another one after somebody has written into
-- a file; `log_bytes`, `is_log_large` of the store's log
function methods:live()
    local live = self.images:live()
    if live then
        -- Before it looks: who writes meanwhile changes the next one.
        live.stamp = self.images:stamp(live)
        live.is_whole = self.images:is_whole(live)
        live.log_bytes = checkpoints.log_bytes(self.path)
        live.is_log_large = checkpoints.is_large(self.path)
    end
    return live
end

--- Whether each byte of the files is as it was written. Other calls may go on meanwhile, and make
-- others live.
-- @tparam table live of `live`
-- @treturn boolean
function methods:is_sound(live)
    return self.images:is_whole(live, true)
end

--- Begins a merge: what is live at this moment, and the number of the base that it becomes.
-- @treturn table plain data for `merge` and `finish_merge`
function methods:start_merge()
    return { from = self.images:live(), number = self.images:take_number() }
end

--- Builds the base of a merge. Other calls may go on meanwhile.
-- @tparam table job of `start_merge`
-- @treturn boolean|nil false: another base came meanwhile, and the files of this one are gone
-- @treturn nil|table error
function methods:merge(job)
    local done, err = guarded(self, function()
        self.images:merge(job.from, job.number)
        return true
    end)
    if not done and self.images:live().base ~= job.from.base then
        return false
    end
    return done, err
end

--- Publishes a merge, with what has changed meanwhile.
-- @tparam table job
-- @treturn boolean|nil false: another base is live already, or too much has changed
-- @treturn nil|table error
function methods:finish_merge(job)
    if self.images:live().base ~= job.from.base then
        self.images:forget_base(job.number)
        return false
    end
    local made, err = self.store:read(function(db, now)
        local found = self.images:take_base(job.number)
        found.pattern_bytes = job.from.pattern_bytes
        local ok, fits = pcall(stage, self, db, found, now)
        if ok and fits then
            return found
        end
        self.images:drop(found)
        if not ok then
            error(fits, 0)
        end
        return false
    end)
    if not made then
        return made, err
    end
    self.images:publish(made)
    return release(self, job.from.revision)
end

--- Copies a base to the disk, for the next start. Other calls may go on meanwhile.
-- @tparam table live of `live`
-- @treturn boolean|nil
-- @treturn nil|table error, "moved" among them: the folder may be another store's by now
function methods:save(live)
    return guarded(self, function()
        writing.check_places(self.store)
        self.images:save(live, self.copy)
        return true
    end)
end

--- Forgets deletions that the saved copy knows already.
-- @tparam number revision of the copy
-- @treturn boolean|nil
-- @treturn nil|table error
function methods:compact(revision)
    return self.store:compact(revision)
end

--- Empties the store's log, whose file is as large as it once was.
-- @treturn boolean|nil false: somebody reads what stands there
-- @treturn nil|table error
function methods:empty_log()
    return self.store:empty_log()
end

return _M
