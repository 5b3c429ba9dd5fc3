--- The folder of the images: which one, whether it may be used, and its end.
--
-- Traffic workers map what stands there, so it is in memory (tmpfs) where that has room, and the
-- workers' user's alone.

local digest = require("openssl.digest")
local dirent = require("posix.dirent")
local pwd = require("posix.pwd")
local stat = require("posix.sys.stat")
local statvfs = require("posix.sys.statvfs")
local unistd = require("posix.unistd")

local worker_user = require("cli.worker_user")

local _M = {}

local SHARED_MEMORY = "/dev/shm"
local MODE = tonumber("700", 8)
local MODE_BITS = tonumber("777", 8)

-- Room for two deltas and two images of the smallest configuration; and, of a declarative file,
-- bytes of images for each byte: a new image is made beside the one that is live.
local LEAST_BYTES = 16 * 1024 * 1024
local BYTES_A_BYTE = 3

local MEBIBYTE = 1024 * 1024

-- One instance's, told by its prefix and its workers' user.
local function own_name(prefix, uid)
    local hex = digest.new("sha256"):final(prefix):gsub(".", function(c)
        return ("%02x"):format(c:byte())
    end)
    return ("%s/sluice-%d-%s"):format(SHARED_MEMORY, uid, hex:sub(1, 16))
end

local function free_bytes(folder)
    local found = statvfs.statvfs(folder)
    return found and found.f_bavail * found.f_frsize or 0
end

-- What stands in the folder already is to be replaced.
local function used_bytes(folder)
    local bytes = 0
    for _, name in
        ipairs(stat.stat(folder) and unistd.access(folder, "rx") and dirent.dir(folder) or {})
    do
        local info = stat.lstat(folder .. "/" .. name)
        bytes = bytes + (info and stat.S_ISREG(info.st_mode) ~= 0 and info.st_size or 0)
    end
    return bytes
end

local function parent_of(path)
    return path:match("^(.+)/[^/]+$") or "/"
end

local function has_room(folder, needed)
    return free_bytes(parent_of(folder)) + used_bytes(folder) >= needed
end

local function needed_bytes(settings)
    local info = stat.stat(settings.file)
    return LEAST_BYTES + BYTES_A_BYTE * (info and info.st_size or 0)
end

--- Chooses the folder of an instance that is to start.
-- @tparam table settings resolved settings; `image_dir` becomes the folder
-- @treturn string|nil a warning, or why it cannot be
-- @treturn boolean whether it cannot be
function _M.choose(settings)
    local needed = needed_bytes(settings)
    local wanted = ("%d MiB are needed"):format(math.ceil(needed / MEBIBYTE))
    if settings.image_dir ~= "" then
        local above = parent_of(settings.image_dir)
        if not stat.stat(above) then
            return ("image_dir: there is no folder %s"):format(above), true
        elseif not has_room(settings.image_dir, needed) then
            return ("image_dir: %s has no room: %s"):format(settings.image_dir, wanted), true
        end
        return nil, false
    end
    local own = own_name(settings.prefix, worker_user.uid(settings.user))
    if stat.stat(SHARED_MEMORY) and has_room(own, needed) then
        settings.image_dir = own
        return nil, false
    end
    settings.image_dir = settings.prefix .. "/images"
    local warning = "image_dir: %s has no room (%s): the images are on the disk, in %s, whose "
        .. "delays become those of requests"
    return warning:format(SHARED_MEMORY, wanted, settings.image_dir), false
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
        local why = "image_dir: %s belongs to %s, not to %s; remove it, or give --image-dir another"
        local names = { owner and owner.pw_name or info.st_uid, ours and ours.pw_name or uid }
        return nil, why:format(path, names[1], names[2])
    elseif bit.band(info.st_mode, MODE_BITS) ~= MODE then
        return nil, ("image_dir: others may enter %s; chmod 700 it"):format(path)
    end
    return true, false
end

local function is_image(name)
    return name:find("^base%.%d+") or name:find("^delta%.%d+")
end

--- Removes the images of an instance that does not run; the folder too, unless it was given.
-- @tparam table settings those that it ran with
-- @tparam string prefix
function _M.remove(settings, prefix)
    local path = settings.image_dir
    if type(path) ~= "string" or not stat.lstat(path) then
        return
    end
    pcall(worker_user.run, settings.user, function()
        for _, name in ipairs(dirent.dir(path)) do
            if is_image(name) then
                os.remove(path .. "/" .. name)
            end
        end
        return true
    end)
    local uid = worker_user.uid(settings.user)
    if path == own_name(prefix, uid) or path == prefix .. "/images" then
        unistd.rmdir(path)
    end
end

return _M
