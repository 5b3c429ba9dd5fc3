--- What is saved of a store whose files were removed or replaced while it was open, before it is
-- closed: with the last descriptor of a removed log its changes would be gone.
--
-- - The log is put back as it was, byte for byte: the index of it, the transactions of other
--   processes and the next writer go on with it. What stands in its place is kept under another
--   name.
-- - Without the index no other process sees who reads, so the log is emptied first, by the one that
--   still knows.
-- - Where another process has the lock, the files are that one's.
-- @module gateway.writer.lost_files

local checkpoints = require("gateway.store.checkpoints")
local dirent = require("posix.dirent")
local fcntl = require("posix.fcntl")
local file = require("sluice.file")
local files = require("gateway.store.files")
local places = require("gateway.store.places")
local unistd = require("posix.unistd")

local DESCRIPTORS = "/proc/self/fd"
local PRIVATE_MODE = tonumber("600", 8)

local _M = {}

-- A descriptor of our own of a file that this process has open, whatever its name is by now.
local function open_again(place)
    for name in dirent.files(DESCRIPTORS) do
        local path = DESCRIPTORS .. "/" .. name
        if places.place_of(path) == place then
            return fcntl.open(path, fcntl.O_RDONLY + fcntl.O_CLOEXEC)
        end
    end
    return nil, "no descriptor has the log"
end

-- Puts a log back that SQLite has open.
local function put_back(path, place)
    local log, fd, err = path .. "-wal", open_again(place)
    if not fd then
        return nil, err
    end
    local temporary = log .. ".new"
    os.remove(temporary)
    local done
    done, err = file.copy(fd, temporary, PRIVATE_MODE)
    unistd.close(fd)
    if done and files.exists(log) then
        done, err = os.rename(log, log .. ".replaced")
    end
    if done then
        done, err = os.rename(temporary, log)
    end
    if done then
        return files.sync_folder(files.folder_of(path))
    end
    os.remove(temporary)
    return nil, err
end

local function empty(store)
    store.db:enter()
    local ok, is_empty = pcall(checkpoints.empty, store.db, store.path)
    store.db:leave()
    if ok and is_empty then
        return true
    end
    local thrown = type(is_empty) == "table" and (is_empty.reason or is_empty.message)
    return nil, thrown or (ok and "another process reads the store" or tostring(is_empty))
end

local function save(store, lost)
    if lost["-wal"] then
        return put_back(store.path, store.places["-wal"])
    elseif lost["-shm"] then
        return empty(store)
    end
    return true
end

--- Saves what closing the store would lose. Blocks on the disk. Nobody may write meanwhile.
-- @tparam table store of gateway.store.database
-- @treturn boolean|nil true: the store can be closed
-- @treturn nil|string why not now
function _M.save(store)
    local lost = store.places and places.lost(store.path, store.places)
    -- Of another store nothing is known here.
    if not lost or lost[""] then
        return true
    end
    local lock = lost[".lock"] and files.lock(store.path .. ".lock")
    if lost[".lock"] and not lock then
        return true
    end
    local done, err = save(store, lost)
    if lock then
        files.unlock(lock)
    end
    return done, err
end

return _M
