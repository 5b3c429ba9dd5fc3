--- Whether a store is the one that was there, and whole: by what is known of it outside.
--
-- Nothing here writes, nor has SQLite write: whoever is refused finds every file as it was.
-- docs/store.md has which damage each comparison finds.
-- @module gateway.store.damage

local errno = require("posix.errno")
local file = require("sluice.file")
local files = require("gateway.store.files")
local journal = require("gateway.store.journal")
local log_file = require("gateway.store.log_file")
local pages = require("gateway.store.pages")
local reading = require("gateway.store.reading")
local stat = require("posix.sys.stat")
local tables = require("gateway.store.tables")
local unistd = require("posix.unistd")
local witness = require("gateway.store.witness")

local FILES = { "", "-wal", "-shm", "-journal", ".witness", ".lock" }

local _M = {}

--- Words of errors that mean: this is not what was answered.
_M.WORDS = { missing = true, behind = true, foreign = true, corrupt = true, ["not a store"] = true }

local function refuse(word, reason, ...)
    error({ word = word, reason = string.format(reason, ...) }, 0)
end

-- A file that this process cannot use, and why. The reason begins with the store's path.
local function check_file(path, suffix, is_read_only)
    local name, which = path .. suffix, suffix == "" and "" or path .. suffix .. " "
    local found, lack = file.lstat(name)
    if lack == file.MISSING then
        return
    elseif lack then
        refuse("cannot open", "%s%s", which, lack)
    elseif stat.S_ISLNK(found.st_mode) ~= 0 then
        refuse("cannot open", "%sis a symbolic link", which)
    elseif stat.S_ISREG(found.st_mode) == 0 then
        refuse("cannot open", "%sis not a regular file", which)
    elseif not unistd.access(name, "r") then
        refuse("cannot open", "%scannot be read: permission denied", which)
    elseif not is_read_only and not unistd.access(name, "w") then
        refuse("read only", "%scannot be written", which)
    end
end

--- Looks whether a writer can use the files of a store, and its folder. Throws
-- `{ word =, reason = }`.
-- @tparam string path
function _M.check_usable(path)
    local folder = files.folder_of(path)
    local _, _, code = unistd.access(folder, "x")
    for _, suffix in ipairs(code == errno.EACCES and {} or FILES) do
        check_file(path, suffix, false)
    end
    local found = stat.lstat(folder)
    -- One of root's is given to the workers by the start.
    local is_own = found and stat.S_ISDIR(found.st_mode) ~= 0 and found.st_uid ~= 0
    if is_own and not unistd.access(folder, "rwx") then
        refuse("read only", "its folder %s cannot be written", folder)
    end
end

local function size_of(path)
    local found = stat.stat(path)
    return found and found.st_size or 0
end

--- Refuses a store without entities beside what tells that there were some. Throws
-- `{ word = "missing", reason = }`.
-- @tparam string path
-- @tparam table found of `check_files`
-- @tparam table opts `at_least` and `live` of gateway.store.database
function _M.check_empty(path, found, opts)
    local what = found.is_there and "is empty" or "is missing"
    local known, other, live = found.known, opts.at_least, opts.live
    if known and known.revision > 0 then
        local reason = "%s, but revision %d of %s was answered (%s); %s"
        local from = witness.path(path)
        refuse("missing", reason, what, known.revision, known.uuid, from, found.log)
    elseif other then
        local reason = "%s, but %s was made of revision %d of %s; %s"
        local from = other.path or "a copy"
        refuse("missing", reason, what, from, other.revision, other.uuid, found.log)
    elseif live then
        local reason = "%s, but the gateway serves revision %d of %s; %s"
        refuse("missing", reason, what, live.revision, live.uuid, found.log)
    elseif found.is_damaged then
        refuse("missing", "%s, and %s is damaged", what, witness.path(path))
    end
end

-- Whether nothing beside a store tells what it held: neither a witness nor a log. Both are there
-- before its file has what tells that they were.
local function is_alone(path)
    return size_of(path .. "-wal") == 0 and not witness.read(path)
end

--- Refuses a store that was begun and has no entities yet, since its log had them. Throws
-- `{ word = "missing", reason = }`.
-- @tparam table db connection
-- @tparam string path
function _M.check_begun(db, path)
    if db:row("PRAGMA journal_mode")[1] == "wal" and is_alone(path) then
        local reason = "is empty, but was not closed by its last writer, and its log %s-wal is "
            .. "missing or empty: what it had may be lost"
        refuse("missing", reason, path)
    end
end

-- Refuses the file of a store that its last writer did not close, without what that left beside it.
local function check_closed(db, path, found)
    if not found.known and is_alone(path) and tables.is_open(db) then
        local reason = "was not closed by its last writer, and its log %s-wal is missing or empty: "
            .. "changes after revision %d may be lost"
        refuse("behind", reason, path, reading.revision(db).revision)
    end
end

--- Looks at the files of a store before SQLite does: of an empty one that would remove the log.
-- Throws `{ word =, reason = }`.
-- @tparam string path
-- @tparam table opts `read_only`, `as_is`, `at_least` and `live` of gateway.store.database
-- @treturn table for `check` and `check_empty`: what the witness says, nil where it is not there or
-- damaged; what is there
function _M.check_files(path, opts)
    local folder = files.folder_of(path)
    if opts.live and stat.lstat(folder) and not unistd.access(folder, "x") then
        -- What cannot be seen there is not missing.
        refuse("read only", "its folder %s cannot be searched: permission denied", folder)
    end
    for _, suffix in ipairs(FILES) do
        check_file(path, suffix, opts.read_only)
    end
    local known, lack = witness.read(path)
    if not journal.is_ours(path, known) then
        local reason = "has a journal of another store or time, which would change it: %s-journal"
        refuse("foreign", reason, path)
    end
    local log = stat.stat(path .. "-wal")
    local what = log and string.format("has %d bytes", log.st_size) or "is missing"
    local found = {
        known = known,
        is_damaged = lack ~= nil,
        is_there = stat.stat(path) ~= nil,
        log = string.format("its log %s-wal %s", path, what),
    }
    if opts.live and opts.read_only and found.is_there and not log then
        refuse("cannot open", "%s-wal is missing, which the gateway has open", path)
    elseif size_of(path) == 0 and not opts.as_is then
        _M.check_empty(path, found, opts)
        if log and log.st_size > 0 then
            refuse(
                "missing",
                "%s, but %s",
                found.is_there and "is empty" or "is missing",
                found.log
            )
        end
    end
    return found
end

-- What the store has to hold: as the witness and whoever opens it say.
local function check_revision(path, now, found, at_least)
    local known = found.known
    if known and known.revision > 0 and known.uuid ~= now.uuid then
        local reason = "is store %s, but %s is of %s, whose revision %d was answered"
        refuse("foreign", reason, now.uuid, witness.path(path), known.uuid, known.revision)
    elseif known and known.revision > now.revision then
        local reason = "holds revision %d, but revision %d was answered (%s); %s"
        refuse("behind", reason, now.revision, known.revision, witness.path(path), found.log)
    elseif not at_least then
        return
    end
    local from = at_least.path and string.format("%s was made of it", at_least.path)
        or "it was answered"
    if at_least.uuid == now.uuid and at_least.revision > now.revision then
        local reason = "holds revision %d, not %d: %s; %s"
        refuse("behind", reason, now.revision, at_least.revision, from, found.log)
    elseif at_least.uuid ~= now.uuid and at_least.path and not known then
        local reason = "is store %s, but %s was made of %s"
        refuse("foreign", reason, now.uuid, at_least.path, at_least.uuid)
    end
end

-- What a running gateway serves is of this store, and no newer.
local function check_live(now, found, live)
    if live.uuid ~= now.uuid then
        local reason = "is store %s, but the gateway serves revision %d of %s"
        refuse("foreign", reason, now.uuid, live.revision, live.uuid)
    elseif live.revision > now.revision then
        local reason = "holds revision %d, but the gateway serves revision %d; %s"
        refuse("behind", reason, now.revision, live.revision, found.log)
    end
end

-- A log where there cannot be one. Somebody may open the store at this moment.
local function check_log(path)
    local log = path .. "-wal"
    if size_of(log) > 0 then
        local known = witness.read(path)
        if known and known.is_closed then
            refuse("foreign", "was closed with an empty log, but %s is not empty", log)
        end
    end
end

local function check_pages(db, path)
    -- In this order: a checkpoint may come between.
    local known = witness.read(path)
    local log = log_file.open(path .. "-wal")
    if log.lost > 1 then
        -- Of a log that is being written one frame may have been half there, and others not yet.
        log:close()
        log = log_file.open(path .. "-wal")
    end
    local count, first = 0, nil
    if known and known.pages > 0 then
        count, first = pages.compare(db, known, log)
    end
    log:close()
    if log.lost > 1 then
        local reason = "%s-wal is damaged: %d commits follow a damaged part"
        refuse("corrupt", reason, path, log.lost)
    elseif count > 0 then
        local reason = "is damaged: %d of %d pages differ from what was written, the first is "
            .. "page %d"
        refuse("corrupt", reason, count, known.pages, first)
    end
end

--- Refuses a backup that is not as it was written. Throws `{ word = "corrupt", reason = }`.
-- @tparam table db connection, in a transaction
function _M.check_backup(db)
    local digest, uuid = tables.digest(db)
    local row = db:row("SELECT is_backup, uuid FROM meta")
    -- An older Sluice copies the digest of the backup that its store once was: then the uuid is
    -- another one at both ends, which a flipped bit does not make it.
    local of = row[2]
    local is_other = uuid and uuid:sub(1, 8) ~= of:sub(1, 8) and uuid:sub(-8) ~= of:sub(-8)
    if row[1] ~= 1 or is_other then
        return
    elseif digest and digest ~= pages.total(db) then
        refuse("corrupt", "is damaged: it differs from what was written when the backup was made")
    end
end

--- Compares a store with what is known of it. Throws `{ word =, reason = }`.
-- @tparam table db connection, in a transaction
-- @tparam string path
-- @tparam table found of `check_files`, from before the transaction began
-- @tparam table opts `at_least`, `live`, `verify`: every page, too
-- @treturn boolean whether the witness goes on: else it knows nothing of this file
function _M.check(db, path, found, opts)
    local known = found.known
    if db:row("SELECT is_backup FROM meta")[1] == 1 then
        -- One that was opened before, and ended before that was committed, has answered nothing.
        if (known and known.revision > 0) or opts.at_least or opts.live then
            refuse("foreign", "is a backup that was copied over the store")
        end
        if opts.verify then
            _M.check_backup(db)
        end
        return false
    end
    local now = reading.revision(db)
    check_revision(path, now, found, opts.at_least)
    check_closed(db, path, found)
    if opts.live then
        check_live(now, found, opts.live)
    end
    -- An older Sluice writes no witness.
    if not known or not tables.is_witnessed(db) then
        return false
    end
    if known.is_closed then
        check_log(path)
    end
    if opts.verify then
        check_pages(db, path)
    end
    return true
end

return _M
