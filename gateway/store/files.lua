--- The folder of a store: on which file systems it may be, its lock, what makes it durable.
-- @module gateway.store.files

local fcntl = require("posix.fcntl")
local ffi = require("ffi")
local file = require("sluice.file")
local libgen = require("posix.libgen")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")

local band = bit.band

ffi.cdef([[
int statfs(const char *path, int64_t *status);
int flock(int fd, int operation);
]])

local FOLDER_MODE = tonumber("700", 8)
local LOCK_EX, LOCK_NB = 2, 4
-- struct statfs is 120 bytes and begins with the type, on Linux of 64 bits.
local STATFS_WORDS = 32

-- By the numbers of statfs(2). Their locks, or what fsync promises, are another machine's; of a
-- FUSE file system nobody can tell.
local NETWORK = {
    [0x6969] = "NFS",
    [0x517b] = "SMB",
    [0xfe534d42] = "SMB",
    [0xff534d42] = "CIFS",
    [0x5346414f] = "AFS",
    [0x6b414653] = "AFS",
    [0x00c36400] = "Ceph",
    [0x0bd00bd0] = "Lustre",
    [0x01021997] = "9P",
    [0x01161970] = "GFS2",
    [0x7461636f] = "OCFS2",
    [0x73757245] = "Coda",
    [0x65735546] = "FUSE",
}

local _M = {}

--- Why a store may not be on a file system.
-- @tparam number kind as statfs tells it
-- @treturn string|nil the file system's name
function _M.refused(kind)
    return NETWORK[tonumber(band(kind, 0xffffffff)) % 2 ^ 32]
end

--- Whether a folder is on a file system that a store can be on.
-- @tparam string folder
-- @treturn boolean|nil
-- @treturn nil|string the file system's name
function _M.check(folder)
    local status = ffi.new("int64_t[?]", STATFS_WORDS)
    if ffi.C.statfs(folder, status) ~= 0 then
        return true
    end
    local name = _M.refused(tonumber(status[0]))
    return not name or nil, name
end

--- The folder that a file is in.
function _M.folder_of(path)
    return libgen.dirname(path)
end

--- Is there anything of this name?
function _M.exists(path)
    return stat.lstat(path) ~= nil
end

--- Has a folder's entries on the disk.
-- @treturn boolean|nil
-- @treturn nil|string the reason, with the path
function _M.sync_folder(folder)
    local fd, err = fcntl.open(folder, fcntl.O_RDONLY + fcntl.O_CLOEXEC)
    if not fd then
        return nil, err
    end
    local ok, sync_err = unistd.fsync(fd)
    unistd.close(fd)
    return ok ~= nil or nil, ok == nil and string.format("%s: %s", folder, sync_err) or nil
end

--- Makes the store's folder where there is none, for its owner alone.
-- @treturn boolean|nil
-- @treturn nil|string the reason, with the path
function _M.make_folder(folder)
    if stat.stat(folder) then
        return true
    end
    local ok, err = stat.mkdir(folder, FOLDER_MODE)
    if not ok then
        return nil, err
    end
    return _M.sync_folder(_M.folder_of(folder))
end

--- Makes a file where there is none, for its owner alone. One that is there is not opened: to close
-- it would give back the locks that SQLite has on it elsewhere in this process.
-- @treturn boolean|nil
-- @treturn nil|string the reason, with the path
function _M.make_file(path)
    local found = stat.lstat(path)
    if found then
        local is_file = stat.S_ISREG(found.st_mode) ~= 0
        return is_file or nil, not is_file and path .. ": is not a regular file" or nil
    end
    local fd, err = file.open(path, fcntl.O_RDWR + fcntl.O_CREAT)
    if not fd then
        return nil, err
    end
    unistd.close(fd)
    return true
end

--- Has a file's bytes on the disk.
-- @treturn boolean|nil
-- @treturn nil|string the reason, with the path
function _M.sync_file(path)
    local fd, err = file.open(path)
    if not fd then
        return nil, err
    end
    local ok, sync_err = unistd.fsync(fd)
    unistd.close(fd)
    return ok ~= nil or nil, ok == nil and string.format("%s: %s", path, sync_err) or nil
end

--- Takes the lock of the one writer; the kernel gives it back when the process is gone. The file
-- stays: a lock on a file that is removed would be two.
-- @tparam string path of the lock's file
-- @treturn number|nil descriptor, which no program that this process starts inherits
-- @treturn nil|string "locked", or the reason with the path
function _M.lock(path)
    local fd, err = file.open(path, fcntl.O_RDWR + fcntl.O_CREAT)
    if not fd then
        return nil, err
    end
    if ffi.C.flock(fd, LOCK_EX + LOCK_NB) ~= 0 then
        unistd.close(fd)
        return nil, "locked"
    end
    return fd
end

--- A random UUID (version 4).
-- @treturn string
function _M.draw_uuid()
    local source = assert(io.open("/dev/urandom", "rb"))
    local bytes = { source:read(16):byte(1, 16) }
    source:close()
    bytes[7] = 0x40 + bytes[7] % 16
    bytes[9] = 0x80 + bytes[9] % 64
    local form = "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x"
    return string.format(form, unpack(bytes))
end

--- The UUID that 16 bytes are.
-- @tparam string bytes
-- @treturn string
function _M.uuid_of(bytes)
    local hex = bytes:gsub(".", function(char)
        return ("%02x"):format(char:byte())
    end)
    return (hex:gsub("^(........)(....)(....)(....)", "%1-%2-%3-%4-"))
end

--- A path that SQLite takes for one: a name that begins with "file:" would be a URI.
-- @tparam string path
-- @treturn string
function _M.plain_path(path)
    return path:sub(1, 1) == "/" and path or "./" .. path
end

--- Gives the lock back.
function _M.unlock(fd)
    unistd.close(fd)
end

return _M
