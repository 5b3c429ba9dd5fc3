--- How a store is opened: where it may be, who may write it, whether it is one and is sound.
-- @module gateway.store.opening

local failure = require("gateway.store.failure")
local files = require("gateway.store.files")
local history = require("gateway.store.history")
local reading = require("gateway.store.reading")
local sqlite = require("gateway.store.sqlite")
local tables = require("gateway.store.tables")

local error = error
local pcall = pcall

local BUSY_TIMEOUT_MS = 5000
-- Of the log that stays after a large import.
local MAX_WAL_BYTES = 64 * 1024 * 1024
local REASONS = {
    ["too new"] = "was written by a newer Sluice, whose store this one cannot read",
    ["not a store"] = "is a database, but no store of Sluice",
    ["read only"] = "cannot be written",
    locked = "another process writes this store",
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
    db:row("PRAGMA journal_size_limit = " .. MAX_WAL_BYTES)
end

local function configure(db, opts, is_new)
    db:busy_timeout(BUSY_TIMEOUT_MS)
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

local function set_up(db, opts)
    local what = tables.recognise(db)
    if what ~= "store" and (what ~= "empty" or opts.read_only) then
        refuse(what == "empty" and "not a store" or what)
    end
    if what == "store" and opts.check ~= false then
        quick_check(db)
    end
    configure(db, opts, what == "empty")
    if opts.read_only then
        return
    elseif db:is_read_only() then
        refuse("read only")
    end
    db:run("BEGIN IMMEDIATE")
    if what == "empty" then
        tables.create(db, files.draw_uuid())
    elseif db:row("SELECT is_backup FROM meta")[1] == 1 then
        db:run("UPDATE meta SET is_backup = 0, uuid = ?", files.draw_uuid())
    end
    tables.adapt(db, opts.layouts, opts.packing)
    history.adapt(db, opts.layouts, (opts.history or 0) > 0)
    if opts.packing then
        tables.note_packing(db, opts.layouts, opts.packing)
    end
    db:run("COMMIT")
end

local function check_revision(db, at_least)
    local now = reading.revision(db)
    if now.uuid == at_least.uuid and now.revision < at_least.revision then
        local reason = "holds revision %d, but revision %d was answered"
        refuse("behind", reason:format(now.revision, at_least.revision))
    end
end

-- The folder, the lock and the file of a writer.
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
    ok, err = files.make_file(path)
    if ok then
        ok, err = files.sync_folder(folder)
    end
    if not ok then
        files.unlock(lock)
        return nil, failure.new(path, "cannot open", err)
    end
    return lock
end

local function open(path, opts)
    local fine, network = files.check(files.folder_of(path))
    if not fine then
        local reason = "is on a network file system (%s), where a store cannot be safe"
        return nil, failure.new(path, "network file system", reason:format(network))
    end
    local lock, err
    if not opts.read_only then
        lock, err = prepare(path)
        if not lock then
            return nil, err
        end
    end
    local db
    local ok, thrown = pcall(function()
        db = sqlite.open(path, opts.read_only)
        set_up(db, opts)
        if opts.at_least then
            check_revision(db, opts.at_least)
        end
        return opts.read_only and tables.present(db, opts.layouts) or opts.layouts
    end)
    if ok then
        return { db = db, lock = lock, layouts = thrown }
    end
    if db then
        db:close()
    end
    if lock then
        files.unlock(lock)
    end
    return nil, failure.told(path, thrown)
end

--- Opens the file of a store, for gateway.store.database.
-- @tparam string path
-- @tparam table opts of its `open`
-- @treturn table|nil `{ db = connection, lock = descriptor, layouts = those that are there }`
-- @treturn nil|table error
_M.open = open

return _M
