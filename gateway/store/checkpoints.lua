--- Checkpoints: the log goes into the file, once the witness knows the pages as they will be.
--
-- SQLite makes none by itself here. The order: the log is on the disk, then the witness with the
-- digest of each page that the log has, then the file. So whoever dies or loses power on the way
-- leaves a file whose pages are as the witness has them, but for those that still stand in the log.
-- Where the witness cannot be written there is no checkpoint, and the log stays.
-- @module gateway.store.checkpoints

local ffi = require("ffi")
local files = require("gateway.store.files")
local log_file = require("gateway.store.log_file")
local pages = require("gateway.store.pages")
local places = require("gateway.store.places")
local reading = require("gateway.store.reading")
local stat = require("posix.sys.stat")
local tables = require("gateway.store.tables")
local witness = require("gateway.store.witness")

-- Pages in the log that a checkpoint is made for.
local DUE_PAGES = 2000
-- Of the log's file, which stays as large as it once was until it is cut.
local MAX_BYTES = 64 * 1024 * 1024
-- How long an orderly end waits for those who read.
local CLOSE_WAIT_MS = 1000
local BUSY_TIMEOUT_MS = 5000

local _M = { BUSY_TIMEOUT_MS = BUSY_TIMEOUT_MS }

--- The size of the log's file.
-- @tparam string path of the store
-- @treturn number bytes
function _M.log_bytes(path)
    local found = stat.stat(path .. "-wal")
    return found and found.st_size or 0
end

--- Whether the log's file is larger than it should stay.
-- @tparam string path of the store
-- @treturn boolean
function _M.is_large(path)
    return _M.log_bytes(path) > MAX_BYTES
end

-- The digests of all pages, those of the log as it has them.
local function digests_of(db, log, known)
    local of_file = known.page_size and known.pages or 0
    local size = log.count > 0 and log.page_size or db:row("PRAGMA page_size")[1]
    local in_file = math.floor(db:file_size() / size)
    local count = log.count > 0 and log.pages or in_file
    local digests = ffi.new("uint64_t[?]", math.max(count, in_file, of_file))
    if of_file > 0 and known.page_size == size then
        ffi.copy(digests, known.digests, 8 * of_file)
    else
        pages.each(db, size, math.min(count, in_file), function(page, digest)
            digests[page - 1] = digest
        end)
    end
    for page in pairs(log.frames) do
        local bytes = page <= count and log:read(page)
        if bytes then
            digests[page - 1] = pages.digest(bytes, page, size)
        end
    end
    return digests, count, size
end

-- Has the witness know what the file will be.
local function update_witness(db, path, log)
    local now, known = reading.revision(db), witness.read(path) or {}
    if log.count == 0 and known.pages and known.pages > 0 then
        return true
    end
    local next = { uuid = now.uuid, revision = now.revision, is_of_file = now.origin ~= nil }
    next.digests, next.pages, next.page_size = digests_of(db, log, known)
    return witness.replace(path, next)
end

local function prepare(db, path)
    local log = log_file.open(path .. "-wal", db:log_frames())
    local ok, is_known, err = pcall(update_witness, db, path, log)
    log:close()
    if not ok then
        error(is_known, 0)
    end
    return is_known, err
end

-- False where somebody reads; with a reason where the witness cannot be written. The next is due
-- after as many pages more in either case: each looks at all of a log that gets longer.
local function run(db, path, opts)
    local ok, is_known, err = pcall(prepare, db, path)
    if not ok or not is_known then
        db:forget_written()
        local thrown = not ok and (type(is_known) == "table" and is_known.message or is_known)
        return false, tostring(thrown or err)
    end
    db:busy_timeout(opts.wait_ms)
    local made, row = pcall(db.row, db, "PRAGMA wal_checkpoint(" .. opts.how .. ")")
    db:busy_timeout(BUSY_TIMEOUT_MS)
    db:forget_written()
    -- Busy: somebody reads what is there. Without a log, as whoever is alone has none: -1.
    return made and row[1] == 0 and (row[2] >= 0 or not opts.needs_log)
end

--- Makes one where enough has been written since the last: the log's file is cut where it is large
-- and nobody reads it. After a commit, which stands whatever comes of this.
-- @tparam table db connection, in no transaction
-- @tparam string path of the store
function _M.make_due(db, path)
    if db:written() >= DUE_PAGES then
        run(db, path, { how = _M.is_large(path) and "TRUNCATE" or "PASSIVE", wait_ms = 0 })
    end
end

--- Has the file say that it is open, as the log does (gateway.store.tables): who finds a copy of it
-- alone sees that the log is missing. Not while somebody reads an older state of it; the next
-- checkpoint brings it.
-- @tparam table db connection, in no transaction
-- @tparam string path of the store
function _M.make_mark(db, path)
    run(db, path, { how = "PASSIVE", wait_ms = 0 })
end

--- Empties the log and cuts its file to nothing, where nobody reads it.
-- @tparam table db
-- @tparam string path
-- @treturn boolean whether it is empty; throws `{ word =, reason = }` where it will not be, however
-- long nobody reads it
function _M.empty(db, path)
    local is_empty, reason = run(db, path, { how = "TRUNCATE", wait_ms = 0 })
    if reason then
        error({ word = "cannot open", reason = reason }, 0)
    end
    return is_empty
end

--- Moves the log into the file at the end, which is whole then without it, and says so. It stays
-- where somebody reads it for more than a second; and where a file is no longer there, since what
-- is there may be another's (gateway.writer.lost_files).
-- @tparam table db
-- @tparam string path
-- @tparam table noted of gateway.store.places
function _M.finish(db, path, noted)
    if db:is_query_only() or places.lost(path, noted) then
        return
    end
    -- On a full disk the mark stays: the witness knows better.
    pcall(tables.set_open, db, false)
    if not run(db, path, { how = "TRUNCATE", wait_ms = CLOSE_WAIT_MS }) then
        return
    end
    -- What was cut off may come back with a cut of power, and would be a log that cannot be there.
    local log = path .. "-wal"
    if not files.exists(log) or files.sync_file(log) then
        witness.close(path)
    end
end

--- Empties it where a commit has failed, and its frames may stand in the log all the same.
-- @treturn boolean false also where there is no log
function _M.settle(db, path)
    return run(db, path, { how = "TRUNCATE", wait_ms = BUSY_TIMEOUT_MS, needs_log = true })
end

return _M
