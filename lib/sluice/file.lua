--- Files where somebody else may have put a link, a pipe or a file of theirs, and files that have
-- to outlive a loss of power.
--
-- Nothing here follows a symbolic link at the end of a path, waits for a pipe, or writes into a
-- file that was there before. The folders above are the caller's to know.
-- @module sluice.file

local errno = require("posix.errno")
local fcntl = require("posix.fcntl")
local ffi = require("ffi")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")

local _M = {}

--- What is said of a path that has nothing: no other reason says so.
_M.MISSING = "is missing"

ffi.cdef("int64_t sendfile(int to, int from, int64_t *offset, size_t size);")

local PRIVATE_MODE = tonumber("600", 8)
local MODE_BITS, OTHERS_BITS = tonumber("7777", 8), tonumber("77", 8)

-- Linux's; luaposix does not name it.
local O_NOFOLLOW = jit.arch:find("^arm") and 0x8000 or 0x20000

local PIECE_BYTES = 1048576

-- What a file descriptor is: luaposix has no fstat.
local function status_of(fd)
    return stat.stat(("/proc/self/fd/%d"):format(fd))
end

--- What keeps from a path, in words.
-- @tparam number code of posix.errno
-- @treturn string `MISSING`; or "cannot be reached: " and why, where it may be there all the same
-- @phases any
function _M.lack(code)
    if code == errno.ENOENT or code == errno.ENOTDIR then
        return _M.MISSING
    end
    local text = errno.errno(code)
    return "cannot be reached: " .. text:gsub("^%u%l", string.lower)
end

local function looked(found, _, code)
    if found then
        return found
    end
    return nil, _M.lack(code)
end

--- What a path leads to. Some microseconds; may block on the disk.
-- @tparam string path
-- @treturn table|nil as posix.sys.stat has it
-- @treturn nil|string as of `lack`
-- @phases any
function _M.stat(path)
    return looked(stat.stat(path))
end

--- The same; where the path itself is a symbolic link, the link.
-- @tparam string path
-- @treturn table|nil as posix.sys.stat has it
-- @treturn nil|string as of `lack`
-- @phases any
function _M.lstat(path)
    return looked(stat.lstat(path))
end

--- The folder that a file or a folder is in.
-- @tparam string path absolute, without a slash at its end
-- @treturn string
function _M.parent_of(path)
    return path:match("^(.+)/[^/]+$") or "/"
end

--- Opens a regular file, for reading unless told otherwise.
-- @tparam string path
-- @tparam[opt] number flags of posix.fcntl
-- @tparam[opt] number owner the user id that it has to belong to
-- @treturn number|nil a descriptor
-- @treturn string|table the reason, with the path; its posix.sys.stat when the first is not nil
function _M.open(path, flags, owner)
    -- Without O_NONBLOCK a pipe would be waited for.
    flags = bit.bor(flags or fcntl.O_RDONLY, O_NOFOLLOW, fcntl.O_NONBLOCK, fcntl.O_CLOEXEC)
    local fd, err = fcntl.open(path, flags, PRIVATE_MODE)
    if not fd then
        local found = stat.lstat(path)
        if found and stat.S_ISLNK(found.st_mode) ~= 0 then
            err = path .. ": is a symbolic link"
        end
        return nil, err
    end
    local info = status_of(fd)
    if not info or stat.S_ISREG(info.st_mode) == 0 then
        unistd.close(fd)
        return nil, path .. ": is not a regular file"
    elseif owner and info.st_uid ~= owner then
        unistd.close(fd)
        return nil, ("%s: belongs to user %d, not to %d"):format(path, info.st_uid, owner)
    end
    return fd, info
end

local function read_all(fd, max)
    local parts, length = {}, 0
    while length <= max do
        local part, err = unistd.read(fd, PIECE_BYTES)
        if not part then
            return nil, err
        elseif part == "" then
            return table.concat(parts)
        end
        parts[#parts + 1] = part
        length = length + #part
    end
    return nil, ("is larger than %d bytes"):format(max)
end

--- Reads a regular file.
-- @tparam string path
-- @tparam[opt] table opts `max`: bytes that it may have; `owner`: the user id that it has to
--   belong to; `is_private`: whether others may not so much as read it
-- @treturn string|nil
-- @treturn string|nil the reason, with the path
function _M.read(path, opts)
    opts = opts or {}
    local fd, info = _M.open(path, nil, opts.owner)
    if not fd then
        return nil, info
    end
    local text, err
    local mode = bit.band(info.st_mode, MODE_BITS)
    if opts.is_private and bit.band(mode, OTHERS_BITS) ~= 0 then
        err = ("others have access to it (mode %04o); chmod 600 it"):format(mode)
    else
        text, err = read_all(fd, opts.max or math.huge)
    end
    unistd.close(fd)
    if not text then
        return nil, ("%s: %s"):format(path, err)
    end
    return text
end

local function write_all(fd, text)
    local at = 1
    while at <= #text do
        local written, err = unistd.write(fd, text:sub(at, at + PIECE_BYTES - 1))
        if not written then
            return nil, err
        end
        at = at + written
    end
    return true
end

-- Writes all that a descriptor has.
local function send_all(fd, from)
    local sent
    repeat
        sent = tonumber(ffi.C.sendfile(fd, from, nil, PIECE_BYTES))
    until sent <= 0
    return sent == 0 or nil, sent < 0 and errno.errno(ffi.errno()) or nil
end

-- Makes a file that was not there, has it filled, and has it on the disk.
local function make(path, mode, fill, from)
    local flags = bit.bor(fcntl.O_WRONLY, fcntl.O_CREAT, fcntl.O_EXCL, fcntl.O_CLOEXEC)
    local fd, err = fcntl.open(path, flags, mode or PRIVATE_MODE)
    if not fd then
        return nil, err
    end
    local done, reason = fill(fd, from)
    if done then
        done, reason = unistd.fsync(fd)
    end
    unistd.close(fd)
    if not done then
        os.remove(path)
        return nil, ("%s: %s"):format(path, reason)
    end
    return true
end

--- Makes a file that was not there, and has its text on the disk. Blocks on the disk.
-- @tparam string path
-- @tparam string text
-- @tparam[opt] number mode 0600 when absent; the umask does not widen it
-- @treturn true|nil
-- @treturn string|nil the reason, with the path
function _M.create(path, text, mode)
    return make(path, mode, write_all, text)
end

--- The same with the rest of another file, whatever its length.
-- @tparam number from of `open`; it stays open
-- @tparam string path
-- @tparam[opt] number mode as of `create`
-- @treturn true|nil
-- @treturn string|nil the reason, with the path of the new file
function _M.copy(from, path, mode)
    return make(path, mode, send_all, from)
end

--- Has the names in a folder on the disk. Blocks on the disk.
-- @tparam string folder
-- @treturn true|nil
-- @treturn string|nil the reason, with the folder
function _M.sync_folder(folder)
    local fd, err = fcntl.open(folder, bit.bor(fcntl.O_RDONLY, fcntl.O_CLOEXEC))
    if not fd then
        return nil, err
    end
    local synced, reason = unistd.fsync(fd)
    unistd.close(fd)
    if synced ~= 0 then
        return nil, ("%s: %s"):format(folder, reason)
    end
    return true
end

--- Replaces a file in one step, so that a reader never sees half of it, neither after a loss of
-- power. Blocks on the disk.
-- @tparam string path
-- @tparam string text
-- @treturn true|nil
-- @treturn string|nil the reason, with the path
function _M.replace(path, text)
    local temporary = path .. ".new"
    os.remove(temporary)
    local made, err = _M.create(temporary, text)
    if made then
        made, err = os.rename(temporary, path)
    end
    if not made then
        os.remove(temporary)
        return nil, err
    end
    return _M.sync_folder(path:match("^(.*)/[^/]*$"))
end

return _M
