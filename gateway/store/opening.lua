--- How a store is opened: where it may be, who may write it, whether it is one and is sound.
-- @module gateway.store.opening

local checkpoints = require("gateway.store.checkpoints")
local damage = require("gateway.store.damage")
local failure = require("gateway.store.failure")
local files = require("gateway.store.files")
local history = require("gateway.store.history")
local places = require("gateway.store.places")
local reading = require("gateway.store.reading")
local sqlite = require("gateway.store.sqlite")
local tables = require("gateway.store.tables")
local witness = require("gateway.store.witness")

local REASONS = {
    ["too new"] = "was written by a newer version of Sluice",
    empty = "is empty",
    ["not a store"] = "is a database, but not a store of Sluice",
    ["read only"] = "cannot be written",
    locked = "another process is writing this store",
}

-- Pages in memory, as far as they are needed: an import goes all over the indexes.
local CACHE_KIB = 65536

local _M = {}

local function refuse(word, reason)
    error({ word = word, reason = reason or REASONS[word] }, 0)
end

-- Each change goes into the log first, and from there into the file: of what fills a new file with
-- nobody beside it, that would be everything twice. Who opens it next brings the log.
local function choose_journal(db, opts, is_new)
    if is_new and opts.alone then
        db:run("PRAGMA synchronous = EXTRA")
        return
    end
    db:row("PRAGMA journal_mode = WAL")
    db:run("PRAGMA synchronous = " .. (opts.synchronous == "off" and "OFF" or "FULL"))
    if opts.synchronous ~= "off" then
        db:row("PRAGMA wal_autocheckpoint = 0")
    end
end

local function configure(db, opts, is_new)
    db:run("PRAGMA foreign_keys = ON")
    db:run("PRAGMA trusted_schema = OFF")
    db:run("PRAGMA cell_size_check = ON")
    db:run("PRAGMA temp_store = MEMORY")
    db:run("PRAGMA cache_size = -" .. CACHE_KIB)
    if not opts.read_only then
        choose_journal(db, opts, is_new)
    end
end

local function quick_check(db)
    local found = db:rows("PRAGMA quick_check(1)")
    if found[1][1] ~= "ok" then
        refuse("corrupt", "is damaged: " .. found[1][1])
    end
end

-- Whether it is a store, whole and the one that was there; whether the witness goes on.
local function look(db, path, opts, found)
    local what = tables.recognise(db)
    if what == "empty" and not opts.as_is then
        damage.check_empty(path, found, opts)
        damage.check_begun(db, path)
    end
    if what ~= "store" and (what ~= "empty" or opts.read_only) then
        refuse(what)
    end
    local is_known = false
    if what == "store" then
        -- First: a damaged page may be what hides that others are.
        db:run("BEGIN")
        if opts.as_is then
            damage.check_backup(db)
        else
            is_known = damage.check(db, path, found, opts)
        end
        db:run("COMMIT")
    end
    if what == "store" and opts.check ~= false then
        quick_check(db)
    end
    return what == "empty", is_known
end

-- Before anything is written: the witness knows that the log may have something, or that it knows
-- nothing of this file.
local function prepare_witness(path, found, is_known, uuid)
    local ok, err = true, nil
    if not is_known then
        local nothing = { uuid = uuid, revision = 0, pages = 0, page_size = 0 }
        ok, err = witness.replace(path, nothing)
    elseif found.known.is_closed then
        ok, err = witness.open(path)
    end
    if not ok then
        refuse("cannot open", err)
    end
end

-- Makes a connection ready; the number of revisions that the history keeps.
local function set_up(db, path, opts, found)
    local is_new, is_known = look(db, path, opts, found)
    local is_witnessed = not opts.read_only and opts.synchronous ~= "off"
    if is_new and is_witnessed then
        -- Before SQLite writes: what it writes first, without a witness, is a copy.
        prepare_witness(path, found, false, "")
    end
    configure(db, opts, is_new)
    if opts.read_only then
        return 0
    elseif db:is_read_only() then
        refuse("read only")
    end
    db:run("BEGIN IMMEDIATE")
    if is_new then
        tables.create(db, files.draw_uuid())
    elseif db:row("SELECT is_backup FROM meta")[1] == 1 then
        db:run("UPDATE meta SET is_backup = 0, uuid = ?", files.draw_uuid())
        tables.set_digest(db, nil)
    end
    if is_witnessed then
        prepare_witness(path, found, is_known, reading.revision(db).uuid)
        tables.set_open(db, true)
    end
    tables.adapt(db, opts.layouts, opts.packing)
    local kept = history.adapt(db, opts.layouts, opts.history or 0, opts.begins_history ~= false)
    if opts.packing then
        tables.note_packing(db, opts.layouts, opts.packing)
    end
    local now = reading.revision(db)
    db:run("COMMIT")
    -- A commit whose writer died before its sync stands in the log all the same.
    local log = path .. "-wal"
    if is_witnessed and (not files.exists(log) or files.sync_file(log)) then
        witness.note(path, now)
    end
    if is_witnessed and not is_new then
        -- A new file is empty until its first checkpoint, which tells as much.
        checkpoints.make_mark(db, path)
    end
    return kept
end

-- The folder and the lock of a writer.
local function prepare(path)
    local folder = files.folder_of(path)
    local ok, err = files.make_folder(folder)
    if not ok then
        return nil, failure.new(path, "cannot open", err)
    end
    local lock, lock_err = files.lock(path .. ".lock")
    if not lock then
        local word = lock_err == "locked" and "locked" or "cannot open"
        return nil, failure.new(path, word, REASONS[lock_err] or lock_err)
    end
    return lock
end

-- The file of a writer.
local function make_file(path)
    local ok, err = files.make_file(path)
    if ok then
        ok, err = files.sync_folder(files.folder_of(path))
    end
    if not ok then
        refuse("cannot open", err)
    end
end

-- Whoever looks at what a gateway has lost makes neither folder nor lock, which would stand in the
-- place where a volume is mounted.
local function look_first(path, opts)
    local ok, thrown = pcall(damage.check_files, path, opts)
    return ok or nil, not ok and failure.of_thrown(path, thrown) or nil
end

local function open(path, opts)
    local fine, network = files.check(files.folder_of(path))
    if not fine then
        local reason = "is on a network file system (%s), which is not safe for a store"
        return nil, failure.new(path, "network file system", reason:format(network))
    end
    local lock, err
    if opts.live and not opts.read_only then
        local is_there, lack = look_first(path, opts)
        if not is_there then
            return nil, lack
        end
    end
    if not opts.read_only then
        lock, err = prepare(path)
        if not lock then
            return nil, err
        end
    end
    local db, kept
    local ok, thrown = pcall(function()
        local found = damage.check_files(path, opts)
        if not opts.read_only then
            make_file(path)
        end
        local place = places.place_of(path)
        db = sqlite.open(path, opts.read_only)
        -- Before the first look: who has just opened it too may still read the log of changes.
        db:busy_timeout(checkpoints.BUSY_TIMEOUT_MS)
        kept = set_up(db, path, opts, found)
        if places.place_of(path) ~= place then
            refuse("moved", "was replaced while it was opened")
        end
        return opts.read_only and tables.present(db, opts.layouts) or opts.layouts
    end)
    if ok then
        return { db = db, lock = lock, layouts = thrown, history = kept }
    end
    if db then
        db:close()
    end
    if lock then
        files.unlock(lock)
    end
    return nil, failure.of_thrown(path, thrown)
end

--- Opens the file of a store, for gateway.store.database.
-- @tparam string path
-- @tparam table opts of its `open`
-- @treturn table|nil `{ db = connection, lock = descriptor, layouts = those that are there,
-- history = revisions that are kept }`
-- @treturn nil|table error
_M.open = open

return _M
