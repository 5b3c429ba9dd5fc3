--- The configuration that was posted, on disk: it outlives workers and reloads.
--
--   <folder>/<version>.<second>.<kind>  the text as it was posted
--   <folder>/current                    a symbolic link to the live one
--   <folder>/lock                       held by the worker that changes the configuration
--
-- That the link is renamed into its place is the moment at which a version is
-- decided: before, nobody serves it; after, everybody will, whoever dies.
-- @module gateway.rollout.files

local dirent = require("posix.dirent")
local fcntl = require("posix.fcntl")
local unistd = require("posix.unistd")

local _M = {}
local mt = { __index = _M }

local FILE_MODE = tonumber("600", 8)

--- The files of a folder that exists and belongs to the workers' user.
-- @tparam string folder
-- @treturn table
function _M.new(folder)
    return setmetatable({ folder = folder, link = folder .. "/current" }, mt)
end

local function parse_name(name)
    local version, second, kind = (name or ""):match("^(%d+)%.(%d+)%.(%a+)$")
    if version then
        return { version = tonumber(version), at = tonumber(second), kind = kind, name = name }
    end
    return nil
end

--- The posted configuration that is decided.
-- @treturn table|nil `{version, at, kind, name, path}`; nil when none was posted
function _M:current()
    local found = parse_name(unistd.readlink(self.link))
    if found then
        found.path = self.folder .. "/" .. found.name
    end
    return found
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
    local file, err = io.open(self.folder .. "/" .. name, "wb")
    if not file then
        return nil, err
    end
    local written, reason = file:write(text)
    local closed, late = file:close()
    if not written or not closed then
        os.remove(self.folder .. "/" .. name)
        return nil, reason or late
    end
    return name
end

--- Makes a written text the current one, in one step.
-- @tparam string name
-- @treturn true|nil
-- @treturn string|nil the system's reason
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
    return true
end

--- Removes every text but the current one.
function _M:clean()
    local current = self:current()
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
        local flags = bit.bor(fcntl.O_RDWR, fcntl.O_CREAT, fcntl.O_CLOEXEC)
        self.fd = assert(fcntl.open(self.folder .. "/lock", flags, FILE_MODE))
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
