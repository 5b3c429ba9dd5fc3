--- The configuration that was posted, on disk: it outlives workers and reloads.
--
--   <folder>/<version>.<second>.<kind>  the text as it was posted
--   <folder>/current                    a symbolic link to the live one
--   <folder>/lock                       held by the worker that changes the configuration
--
-- That the link is renamed into its place is the moment at which a version is
-- decided: before, nobody serves it; after, everybody will, whoever dies. Text and
-- names are on the disk by then, for the machine may lose its power.
--
-- Workers write here, and the master, who may be root, reads: it follows no link
-- and believes no file that is not a plain one of the folder's owner. A version that
-- the settings call superseded (a file was loaded after it) counts for none.
-- @module gateway.control.changes.files

local dirent = require("posix.dirent")
local fcntl = require("posix.fcntl")
local file = require("sluice.file")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")

local _M = {}
local mt = { __index = _M }

-- What others than the owner may not do with the folder.
local OTHERS_WRITE = bit.bor(stat.S_IWGRP, stat.S_IWOTH)

-- As much as the admin listener takes, and whole numbers that a Lua number holds.
local MAX_BYTES = 256 * 1048576
local MAX_DIGITS = 15

--- The files of a folder that exists and belongs to the workers' user.
-- @tparam string folder
-- @tparam[opt] number superseded versions up to this one count for none; 0 when absent
-- @treturn table
function _M.new(folder, superseded)
    return setmetatable({
        folder = folder,
        link = folder .. "/current",
        superseded = superseded or 0,
    }, mt)
end

local function parse_name(name)
    local version, second, kind = (name or ""):match("^(%d+)%.(%d+)%.(%a+)$")
    if version and #version <= MAX_DIGITS and #second <= MAX_DIGITS then
        return { version = tonumber(version), at = tonumber(second), kind = kind, name = name }
    end
    return nil
end

-- What the link names, superseded or not.
local function linked(self)
    return parse_name(unistd.readlink(self.link))
end

--- The posted configuration that is decided.
-- @treturn table|nil `{version, at, kind, name, path}`; nil when none was posted
function _M:current()
    local found = linked(self)
    if not found or found.version <= self.superseded then
        return nil
    end
    found.path = self.folder .. "/" .. found.name
    return found
end

--- Reads a posted text. Blocks on the disk.
-- @tparam string path of one in the folder
-- @treturn string|nil
-- @treturn string|nil the reason
function _M:read(path)
    local info = stat.lstat(self.folder)
    if not info or stat.S_ISDIR(info.st_mode) == 0 then
        return nil, self.folder .. ": is not a folder"
    elseif bit.band(info.st_mode, OTHERS_WRITE) ~= 0 then
        return nil, self.folder .. ": others may write there; chmod go-w it"
    end
    return file.read(path, { owner = info.st_uid, max = MAX_BYTES })
end

--- Writes a text that is to become current. Blocks on the disk.
-- @tparam number version
-- @tparam number at seconds since 1970
-- @tparam string|nil kind "json" or "yaml"; nil: to be told by the text
-- @tparam string text
-- @treturn string|nil its name, for `decide`
-- @treturn string|nil the system's reason
function _M:write(version, at, kind, text)
    local name = ("%d.%d.%s"):format(version, at, kind or "text")
    local path = self.folder .. "/" .. name
    -- Of one who died with it.
    os.remove(path)
    local made, err = file.create(path, text)
    if not made then
        return nil, err
    end
    return name
end

--- Makes a written text the current one, in one step. Blocks on the disk.
-- @tparam string name
-- @treturn true|nil
-- @treturn string|nil the system's reason; beside true, that a loss of power may undo it
function _M:decide(name)
    local fresh = self.link .. ".new"
    os.remove(fresh)
    local made, err = unistd.link(name, fresh, true)
    if made then
        made, err = os.rename(fresh, self.link)
    end
    if not made then
        return nil, err
    end
    local _, late = file.sync_folder(self.folder)
    return true, late
end

--- Removes every text but the current one.
function _M:clean()
    local current = linked(self)
    for name in dirent.files(self.folder) do
        if parse_name(name) and not (current and current.name == name) then
            os.remove(self.folder .. "/" .. name)
        end
    end
end

--- Takes the lock: one process at a time. It goes with the process that holds it.
-- @treturn boolean whether this process has it now
function _M:lock()
    if not self.fd then
        local flags = bit.bor(fcntl.O_RDWR, fcntl.O_CREAT)
        self.fd = assert(file.open(self.folder .. "/lock", flags))
    end
    -- Not one that forked processes share, as that of flock is.
    local region = { l_type = fcntl.F_WRLCK, l_whence = fcntl.SEEK_SET, l_start = 0, l_len = 0 }
    return fcntl.fcntl(self.fd, fcntl.F_SETLK, region) == 0
end

--- Gives the lock back.
function _M:unlock()
    local region = { l_type = fcntl.F_UNLCK, l_whence = fcntl.SEEK_SET, l_start = 0, l_len = 0 }
    fcntl.fcntl(self.fd, fcntl.F_SETLK, region)
end

return _M
