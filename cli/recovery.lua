--- The ways on from a store that is not what it was: what a refusal says, another store in its
-- place. What was there is kept, in a folder beside.

local damage = require("gateway.store.damage")
local database = require("gateway.store.database")
local entities = require("gateway.entities")
local file = require("sluice.file")
local files = require("gateway.store.files")
local layout = require("gateway.store.layout")
local stat = require("posix.sys.stat")
local stdlib = require("posix.stdlib")
local unistd = require("posix.unistd")

local worker_user = require("cli.worker_user")

local _M = {}

local FOLDER_MODE = tonumber("700", 8)
-- Of one second.
local MAX_FOLDERS = 100
-- All that belongs to a store, and nothing without it.
local PARTS = { "store.db", "store.db-wal", "store.db-shm", "store.db-journal" }
local WITNESSES = { "store.db.witness", "base" }

--- What a refusal says.
-- @tparam table instance cli.instance
-- @tparam table err of the store
-- @tparam string reason
-- @treturn {string,...} the reason, and below it the ways on where there are some
function _M.lines(instance, err, reason)
    if not damage.WORDS[err.err] then
        return { reason }
    end
    local lines = {
        reason,
        "  nothing was changed; put back what is missing or damaged, or:",
        ("  sluice restore BACKUP --prefix %s: a copy of `sluice backup`"):format(instance.prefix),
    }
    local can_be_read = err.err ~= "missing" and err.err ~= "not a store"
    if can_be_read then
        lines[4] = ("  sluice restore %s --prefix %s: what the store holds now"):format(
            instance.store,
            instance.prefix
        )
    end
    lines[#lines + 1] = ("  mv %s %s.old: begin with nothing"):format(
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

-- Moves what is there into a folder of its own; nothing where there is nothing.
local function put_aside(instance)
    local there = {}
    for _, list in ipairs({ PARTS, WITNESSES }) do
        for _, name in ipairs(list) do
            local path = instance.store_folder .. "/" .. name
            there[#there + 1] = stat.lstat(path) and name
        end
    end
    if #there == 0 then
        return { kept = false }
    end
    local folder, err = make_folder(instance)
    local made = folder
    for _, name in ipairs(made and there or {}) do
        if made then
            made, err = os.rename(instance.store_folder .. "/" .. name, folder .. "/" .. name)
        end
    end
    if made then
        made, err = files.sync_folder(instance.store_folder)
    end
    if not made then
        return nil, { err = "cannot open", message = err }
    end
    return { kept = folder }
end

--- Moves the files of a store aside.
-- @tparam table settings resolved settings
-- @tparam table instance cli.instance
-- @treturn string|nil the folder that has them
-- @treturn nil|string the reason
function _M.put_aside(settings, instance)
    local done, err = worker_user.run(settings.user, function()
        return put_aside(instance)
    end)
    return done and done.kept, err and "store: " .. err.message
end

-- Copies a file of whoever runs the command to the workers' user.
local function hand_over(settings, from, to)
    local text, err = file.read(from)
    local made = text
    if made then
        made, err = file.create(to, text)
    end
    local account = worker_user.account(settings.user)
    if made and account then
        made, err = unistd.chown(to, account.pw_uid, account.pw_gid)
    end
    return made and true, err
end

-- Reads all of a store into a new one, whatever is known of it, and puts that in the place.
local function replace(instance, from, temporary)
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
        right, err = store:backup(temporary)
    end
    store:close()
    local done
    if right then
        done, err = put_aside(instance)
    end
    if done then
        local renamed, reason = os.rename(temporary, instance.store)
        if renamed then
            renamed, reason = files.sync_folder(instance.store_folder)
        end
        done.revision = now.revision
        done, err = renamed and done or nil, { err = "cannot open", message = reason }
    end
    return done, err
end

-- What is said of a file that nobody knows is said of the one that he gave.
local function named(text, from, to)
    local first, last = text:find(from, 1, true)
    return first and text:sub(1, first - 1) .. to .. text:sub(last + 1) or text
end

--- Puts a copy of a store in the place of an instance's, which does not run. Its revisions are
-- another store's from then on, so that nothing that was made of the old one fits it.
-- @tparam table settings resolved settings
-- @tparam table instance cli.instance
-- @tparam string path of a store: a backup; or that of the instance, as far as it can be read
-- @treturn table|nil `{ revision =, kept = folder of what was there, or false }`
-- @treturn nil|string the reason
function _M.restore(settings, instance, path)
    local folder, pid = instance.store_folder, unistd.getpid()
    local from = ("%s/restore.%d"):format(folder, pid)
    local temporary = ("%s/restored.%d"):format(folder, pid)
    local is_own = stdlib.realpath(path) == instance.store
    local ok, reason = true, nil
    if is_own then
        from = instance.store
    else
        ok, reason = hand_over(settings, path, from)
        if ok and stat.lstat(path .. "-wal") then
            ok, reason = hand_over(settings, path .. "-wal", from .. "-wal")
        end
    end
    local done, err
    if ok then
        done, err = worker_user.run(settings.user, function()
            return replace(instance, from, temporary)
        end)
        reason = err and named(err.message or err.err, from, path)
    end
    worker_user.run(settings.user, function()
        for _, suffix in ipairs(is_own and {} or { "", "-wal", "-shm" }) do
            os.remove(from .. suffix)
        end
        os.remove(temporary)
        return true
    end)
    return done, reason and "store: " .. reason
end

return _M
