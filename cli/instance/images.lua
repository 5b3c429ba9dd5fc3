--- The folder of the images: which one, whether it may be used, and its end.
--
-- Traffic workers map what stands there, so it is in memory (tmpfs) where that has room, and the
-- workers' user's alone.

local dirent = require("posix.dirent")
local file = require("sluice.file")
local pwd = require("posix.pwd")
local sha256 = require("sluice.sha256")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")

local disk_space = require("gateway.writer.disk_space")
local worker_user = require("cli.instance.worker_user")

local _M = {}

local SHARED_MEMORY = "/dev/shm"
local MODE = tonumber("700", 8)
local MODE_BITS = tonumber("777", 8)

-- Of an image for each byte of a declarative file, at least.
local BYTES_A_BYTE = 1

-- One instance's, told by its prefix and its workers' user.
local function own_name(prefix, uid)
    return ("%s/sluice-%d-%s"):format(SHARED_MEMORY, uid, sha256.hex(prefix):sub(1, 16))
end

-- Of an image: the last one's, and the least that the file makes. Whether what it makes has room is
-- looked at when that is known (gateway.writer).
local function base_bytes(settings)
    local copy, source = stat.stat(settings.prefix .. "/store/base"), stat.stat(settings.file)
    local bytes = source and source.st_size or #settings.declarative_config_string
    return math.max(copy and copy.st_size or 0, BYTES_A_BYTE * bytes)
end

--- Chooses the folder of an instance that is to start.
-- @tparam table settings resolved settings; `image_dir` becomes the folder
-- @treturn string|nil a warning, or why it cannot be
-- @treturn boolean whether it cannot be
function _M.choose(settings)
    local bytes = base_bytes(settings)
    if settings.image_dir ~= "" then
        local above = file.parent_of(settings.image_dir)
        local _, absence = file.stat(above)
        if absence then
            return ("image_dir: %s %s"):format(above, absence), true
        end
        local lack = disk_space.lacks(settings.image_dir, bytes)
        return lack and ("image_dir: %s %s"):format(settings.image_dir, lack), lack ~= nil
    end
    local own = own_name(settings.prefix, worker_user.uid(settings.user))
    local _, lack = file.stat(SHARED_MEMORY)
    lack = lack or disk_space.lacks(own, bytes)
    if not lack then
        settings.image_dir = own
        return nil, false
    end
    settings.image_dir = settings.prefix .. "/images"
    local warning = "image_dir: %s %s; the images are on disk, in %s: a stalled disk "
        .. "stalls requests"
    return warning:format(SHARED_MEMORY, lack, settings.image_dir), false
end

--- Makes the folder, or looks whether the one that is there is the workers' alone.
-- @tparam table settings resolved settings
-- @treturn boolean|nil true, or nil and the reason
-- @treturn string|boolean whether it was made, when the first is not nil
function _M.make(settings)
    local path, uid = settings.image_dir, worker_user.uid(settings.user)
    local made, err = stat.mkdir(path, MODE)
    if made == 0 then
        local account = worker_user.account(settings.user)
        if account then
            unistd.chown(path, account.pw_uid, account.pw_gid)
        end
        return true, true
    end
    local info = stat.lstat(path)
    if not info then
        return nil, "image_dir: cannot create " .. err
    elseif stat.S_ISDIR(info.st_mode) == 0 then
        return nil, ("image_dir: %s is not a directory"):format(path)
    elseif info.st_uid ~= uid then
        local owner, ours = pwd.getpwuid(info.st_uid), pwd.getpwuid(uid)
        local why =
            "image_dir: %s belongs to %s, not to %s; remove it, or set --image-dir to another"
        local names = { owner and owner.pw_name or info.st_uid, ours and ours.pw_name or uid }
        return nil, why:format(path, names[1], names[2])
    elseif bit.band(info.st_mode, MODE_BITS) ~= MODE then
        return nil, ("image_dir: other users can enter %s; chmod 700 it"):format(path)
    end
    return true, false
end

local function is_image(name)
    return name:find("^base%.%d+") or name:find("^delta%.%d+")
end

-- Some files, or very many; who owns them can also stop their removal.
local REMOVE_TIMEOUT_S = 10

-- As whom: whatever another user left there, root does not follow it.
local function remove_images(path, account)
    pcall(worker_user.run_as, account, function()
        for _, name in ipairs(dirent.dir(path)) do
            if is_image(name) then
                os.remove(path .. "/" .. name)
            end
        end
        return true
    end, REMOVE_TIMEOUT_S)
end

--- Removes the images of an instance that does not run.
-- @tparam table settings those that it ran with, or will
function _M.clear(settings)
    local path = settings.image_dir
    if type(path) == "string" and stat.lstat(path) then
        remove_images(path, worker_user.account(settings.user))
    end
end

--- The same, and the folder too, unless it was given.
-- @tparam table settings those that it ran with
-- @tparam string prefix
function _M.remove(settings, prefix)
    _M.clear(settings)
    local path, uid = settings.image_dir, worker_user.uid(settings.user)
    if path == own_name(prefix, uid) or path == prefix .. "/images" then
        unistd.rmdir(path)
    end
end

-- The user whom a folder of images in memory belongs to, by its name and by its owner; nil where it
-- is none of a prefix, or where this command may not become that user. One whose account is gone
-- has the id for a name.
local function owner_of(path, prefix)
    local uid = tonumber(path:match("/sluice%-(%d+)%-"))
    local info = uid and path == own_name(prefix, uid) and stat.lstat(path)
    local own = unistd.geteuid()
    if not info or stat.S_ISDIR(info.st_mode) == 0 or info.st_uid ~= uid then
        return nil
    elseif own ~= 0 and own ~= uid then
        return nil
    end
    local account = pwd.getpwuid(uid)
    return account or { pw_name = tostring(uid), pw_uid = uid, pw_gid = info.st_gid }
end

--- Removes the images in memory, and their folders, of an instance that does not run and has left
-- no settings: of each user whom its workers ran as.
-- @tparam string prefix
function _M.remove_left(prefix)
    for _, name in ipairs(stat.stat(SHARED_MEMORY) and dirent.dir(SHARED_MEMORY) or {}) do
        local path = SHARED_MEMORY .. "/" .. name
        local owner = owner_of(path, prefix)
        if owner then
            remove_images(path, unistd.geteuid() == 0 and owner or nil)
            unistd.rmdir(path)
        end
    end
end

return _M
