--- Room for images: what their folder has to hold, and whether it can.
--
-- A new base, or a new delta, is made beside the one that is live: room for two of each. Where it
-- is taken away later, changes are refused ("full") and what is live stays: a delta takes all its
-- bytes when it is made, and a base is written, not mapped, so nothing meets a page that is not
-- there.
-- @module gateway.writer.disk_space

local dirent = require("posix.dirent")
local file = require("sluice.file")
local stat = require("posix.sys.stat")
local statvfs = require("posix.sys.statvfs")
local unistd = require("posix.unistd")

local MEBIBYTE = 1024 * 1024

local _M = {
    --- Bytes of a delta.
    DELTA_BYTES = 16 * MEBIBYTE,
}

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

local function free_bytes(folder)
    local found = statvfs.statvfs(stat.stat(folder) and folder or file.parent_of(folder))
    return found and found.f_bavail * found.f_frsize + used_bytes(folder) or 0
end

local function mebibytes(bytes)
    return math.ceil(bytes / MEBIBYTE)
end

--- Looks whether a folder has room. Blocks on the file system.
-- @tparam string folder of images; it, or the one above it, is there
-- @tparam number base_bytes of an image
-- @treturn string|nil why not, with the sizes; nil where it has
function _M.lacks(folder, base_bytes)
    local needed, free = 2 * (base_bytes + _M.DELTA_BYTES), free_bytes(folder)
    if free >= needed then
        return nil
    end
    local text = "has too little space: %d MiB are needed (two images of %d MiB, two deltas of %d "
        .. "MiB), %d MiB are available"
    return text:format(
        mebibytes(needed),
        mebibytes(base_bytes),
        mebibytes(_M.DELTA_BYTES),
        math.floor(free / MEBIBYTE)
    )
end

return _M
