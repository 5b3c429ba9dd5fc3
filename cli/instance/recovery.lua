--- The ways on from a store that is not what it was: what a refusal says, another store in its
-- place. What was there is kept, in a folder beside.

local damage = require("gateway.store.damage")
local database = require("gateway.store.database")
local entities = require("gateway.entities")
local failure = require("gateway.store.failure")
local file = require("sluice.file")
local files = require("gateway.store.files")
local layout = require("gateway.store.layout")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")

local worker_user = require("cli.instance.worker_user")

local _M = {}

local FOLDER_MODE = tonumber("700", 8)
-- Of one second.
local MAX_FOLDERS = 100
-- All that belongs to a store, and nothing without it.
local PARTS = { "store.db", "store.db-wal", "store.db-shm", "store.db-journal" }
local WITNESSES = { "store.db.witness", "base" }
-- The copy that is given, and the store that is made of it.
local GIVEN, RESTORED = "/restore.given", "/restore.new"

--- What a refusal says.
-- @tparam table instance cli.instance
-- @tparam table err of the store
-- @tparam string reason
-- @tparam[opt] boolean is_served a gateway runs, and serves what the store had
-- @treturn {string,...} the reason, and below it the ways on where there are some
function _M.lines(instance, err, reason, is_served)
    if not damage.WORDS[err.err] then
        return { reason }
    end
    local lines = {
        reason,
        "  nothing was changed; restore the missing or damaged files, or run "
            .. (is_served and "`sluice stop` and then one of:" or "one of:"),
        ("  sluice restore BACKUP --prefix %s: a copy of `sluice backup`"):format(instance.prefix),
    }
    local can_be_read = err.err ~= "missing" and err.err ~= "not a store"
    if can_be_read then
        lines[4] = ("  sluice restore %s --prefix %s: the current contents of the store"):format(
            instance.store,
            instance.prefix
        )
    end
    lines[#lines + 1] = ("  mv %s %s.old: start with an empty store"):format(
        instance.store_folder,
        instance.store_folder
    )
    return lines
end

-- A new folder, named by the time; by a number too where there was one in this second.
local function make_folder(instance)
    local path = instance.store_folder .. os.date("/before-%Y%m%d-%H%M%S")
    local folder, number = path, 1
    while stat.lstat(folder) and number < MAX_FOLDERS do
        number = number + 1
        folder = ("%s-%d"):format(path, number)
    end
    local made, err = stat.mkdir(folder, FOLDER_MODE)
    return made and folder, err
end

-- Moves those of some files that are there into a folder, on the disk when it returns.
local function move(instance, names, folder)
    local moved, err = true, nil
    for _, name in ipairs(names) do
        local path = instance.store_folder .. "/" .. name
        local _, lack = file.lstat(path)
        if moved and lack ~= file.MISSING then
            moved, err = os.rename(path, folder .. "/" .. name)
        end
    end
    if moved then
        moved, err = files.sync_folder(instance.store_folder)
    end
    return moved and true, err
end

-- Moves a store aside, and puts another file in its place, if there is one. What says that there
-- was a store goes last: whoever dies on the way leaves what a start refuses.
local function exchange(instance, new)
    local folder, err = make_folder(instance)
    local done = folder
    if done then
        done, err = move(instance, PARTS, folder)
    end
    if done and new then
        done, err = os.rename(new, instance.store)
    end
    if done then
        done, err = move(instance, WITNESSES, folder)
    end
    if not done then
        local reason = folder and ("%s; the moved files are in %s"):format(err, folder) or err
        return nil, { err = "cannot open", message = reason }
    end
    -- Where nothing was there it is empty.
    return { kept = unistd.rmdir(folder) ~= 0 and folder }
end

-- Calls a function that changes the files of a store which nobody writes.
local function alone(instance, fn, ...)
    local lock, err = files.lock(instance.store .. ".lock")
    if not lock then
        local reason = err == "locked" and "another process is writing it" or err
        return nil, failure.new(instance.store, "locked", reason)
    end
    local done, reason = fn(instance, ...)
    files.unlock(lock)
    return done, reason
end

--- Moves the files of a store aside.
-- @tparam table settings resolved settings
-- @tparam table instance cli.instance
-- @treturn string|nil the folder that has them
-- @treturn nil|string the reason
function _M.put_aside(settings, instance)
    local done, err = worker_user.run(settings.user, function()
        return alone(instance, exchange)
    end)
    return done and done.kept, err and "store: " .. err.message
end

-- What is said of a file that nobody knows is said of the one that he gave.
local function named(text, from, to)
    local first, last = text:find(from, 1, true)
    return first and text:sub(1, first - 1) .. to .. text:sub(last + 1) or text
end

-- Reads all of a store into a new one, whatever is known of it.
local function read_into(from, new)
    local store, err = database.open(from, {
        layouts = layout.derive(entities.stored()),
        read_only = true,
        as_is = true,
    })
    if not store then
        return nil, err
    end
    local now = store:revision()
    local right
    right, err = store:check()
    if right then
        right, err = store:backup(new)
    end
    store:close()
    return right and now, err
end

-- What a restore makes on the way, and another one that was killed has left.
local function clean(instance)
    for _, suffix in ipairs({ "", "-wal", "-shm" }) do
        os.remove(instance.store_folder .. GIVEN .. suffix)
    end
    for _, suffix in ipairs({ "", ".new" }) do
        os.remove(instance.store_folder .. RESTORED .. suffix)
    end
end

-- `sources`: descriptors of a store and its log; `path` of it for whoever gave it.
local function replace(instance, sources, path)
    local from, new = instance.store_folder .. GIVEN, instance.store_folder .. RESTORED
    clean(instance)
    local now, done, err = true, nil, nil
    for suffix, fd in pairs(sources) do
        local copied, reason = file.copy(fd, from .. suffix)
        if not copied then
            now, err = nil, { err = "cannot open", message = reason }
        end
    end
    if now then
        now, err = read_into(from, new)
        err = err and { err = err.err, message = named(err.message or err.err, from, path) }
    end
    if now then
        done, err = exchange(instance, new)
    end
    clean(instance)
    if done then
        done.revision = now.revision
    end
    return done, err
end

-- Opens a store and its log as whoever runs the command: the workers' user may not, and root makes
-- nothing in a folder of theirs.
local function open_sources(path)
    local log = path .. "-wal"
    local store, err = file.open(path)
    if not store then
        return nil, err
    end
    local _, lack = file.lstat(log)
    if lack == file.MISSING then
        return { [""] = store }
    end
    local fd
    fd, err = file.open(log)
    if not fd then
        unistd.close(store)
        return nil, err
    end
    return { [""] = store, ["-wal"] = fd }
end

--- Puts a copy of a store in the place of an instance's, which does not run. Its revisions are
-- another store's from then on, so that nothing that was made of the old one fits it.
-- @tparam table settings resolved settings
-- @tparam table instance cli.instance
-- @tparam string path of a store: a backup; or that of the instance, as far as it can be read
-- @treturn table|nil `{ revision =, kept = folder of what was there, or false }`
-- @treturn nil|string the reason
function _M.restore(settings, instance, path)
    local sources, reason = open_sources(path)
    if not sources then
        return nil, "store: " .. reason
    end
    local done, err = worker_user.run(settings.user, function()
        return alone(instance, replace, sources, path)
    end)
    for _, fd in pairs(sources) do
        unistd.close(fd)
    end
    return done, err and "store: " .. (err.message or err.err)
end

return _M
