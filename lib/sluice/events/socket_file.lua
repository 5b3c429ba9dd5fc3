--- The file of a UNIX socket, before nginx starts: nginx binds its listeners
-- itself, with mode 0666, and does not start if a killed instance left one.
--
-- Needs no nginx: the command line calls it.
-- @module sluice.events.socket_file

local bit = require("bit")
local ffi = require("ffi")

local _M = {}

ffi.cdef([[
typedef struct { uint16_t family; char path[108]; } sluice_sockaddr_un_t;
typedef struct { uint32_t mask, blksize; uint64_t attributes; uint32_t nlink, uid, gid;
                 uint16_t mode, spare; uint8_t more[224]; } sluice_statx_t;
int statx(int dirfd, const char *path, int flags, unsigned int mask, sluice_statx_t *buffer);
int socket(int domain, int type, int protocol);
int connect(int fd, const sluice_sockaddr_un_t *address, uint32_t length);
int close(int fd);
int unlink(const char *path);
char *strerror(int number);
]])

local AF_UNIX, SOCK_STREAM, SOCK_NONBLOCK = 1, 1, 2048
local AT_FDCWD, AT_SYMLINK_NOFOLLOW, STATX_BASIC = -100, 0x100, 0x7ff
local S_IFMT, S_IFDIR, S_IFSOCK = 0xf000, 0x4000, 0xc000
local ENOENT, ECONNREFUSED = 2, 111

local function reason()
    return ffi.string(ffi.C.strerror(ffi.errno()))
end

-- Type and permissions of a file, not of what a symbolic link leads to.
local function mode_of(path)
    local status = ffi.new("sluice_statx_t")
    if ffi.C.statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BASIC, status) ~= 0 then
        return nil, ffi.errno()
    end
    return status.mode
end

-- Whether nobody accepts on a socket any more: only then connecting is refused.
local function is_stale(path)
    local address = ffi.new("sluice_sockaddr_un_t", { AF_UNIX, path })
    local fd = ffi.C.socket(AF_UNIX, bit.bor(SOCK_STREAM, SOCK_NONBLOCK), 0)
    if fd < 0 then
        return false, reason()
    end
    local connected = ffi.C.connect(fd, address, ffi.sizeof(address))
    local stale = connected ~= 0 and ffi.errno() == ECONNREFUSED
    ffi.C.close(fd)
    return stale
end

--- Makes room for a socket that nginx is about to bind: removes one that is
-- dead, which a connect has to prove first. Does not yield.
-- @tparam string path of the socket, in a directory for its owner only
-- @treturn[1] boolean true nothing is there now
-- @treturn[2] nil
-- @treturn[2] string "path too long", "no directory", "open directory" (others
-- may enter it), "no socket" (another kind of file is there), "alive" (somebody
-- accepts), or what the system says
function _M.clean(path)
    if #path > 107 then
        return nil, "path too long"
    end
    local folder = mode_of(path:match("^(.+)/[^/]*$") or ".")
    if not folder or bit.band(folder, S_IFMT) ~= S_IFDIR then
        return nil, "no directory"
    elseif bit.band(folder, 0x3f) ~= 0 then
        return nil, "open directory"
    end
    local mode, number = mode_of(path)
    if not mode and number == ENOENT then
        return true
    elseif not mode then
        return nil, ffi.string(ffi.C.strerror(number))
    elseif bit.band(mode, S_IFMT) ~= S_IFSOCK then
        return nil, "no socket"
    end
    local stale, problem = is_stale(path)
    if not stale then
        return nil, problem or "alive"
    end
    if ffi.C.unlink(path) ~= 0 then
        return nil, reason()
    end
    return true
end

return _M
