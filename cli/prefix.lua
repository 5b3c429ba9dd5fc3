--- Writes the files of a prefix, and takes back what it wrote when a start fails.

local cjson = require("cjson")
local dirent = require("posix.dirent")
local fcntl = require("posix.fcntl")
local grp = require("posix.grp")
local pwd = require("posix.pwd")
local stat = require("posix.sys.stat")
local stdlib = require("posix.stdlib")
local unistd = require("posix.unistd")

local process = require("cli.process")

local _M = {}
local mt = { __index = _M }

local DIRECTORY_MODE = tonumber("755", 8)
local PRIVATE_MODE = tonumber("700", 8)
local FILE_MODE = tonumber("644", 8)

local function directory_exists(path)
    local info = stat.stat(path)
    return info ~= nil and stat.S_ISDIR(info.st_mode) ~= 0
end

local function remove_tree(path)
    local info = stat.lstat(path)
    if not info then
        return
    end
    if stat.S_ISDIR(info.st_mode) == 0 then
        unistd.unlink(path)
        return
    end
    for entry in dirent.files(path) do
        if entry ~= "." and entry ~= ".." then
            remove_tree(path .. "/" .. entry)
        end
    end
    unistd.rmdir(path)
end

--- The one name of a directory: without symbolic links, also where it does not exist yet.
-- @tparam string path absolute, without . and ..
-- @treturn string
function _M.resolve(path)
    local real = stdlib.realpath(path)
    if real or path == "/" then
        return real or path
    end
    local parent, name = path:match("^(.*)/([^/]+)$")
    parent = _M.resolve(parent == "" and "/" or parent)
    return (parent == "/" and "" or parent) .. "/" .. name
end

--- A writer for one instance's files; does not touch the disk yet.
-- @tparam table instance cli.instance
-- @treturn table
function _M.new(instance)
    return setmetatable({ instance = instance, created = {}, before = {} }, mt)
end

function _M:make_directory(path, mode)
    if directory_exists(path) then
        return true
    end
    local parent = path:match("^(.+)/[^/]+$")
    if parent then
        local made, err = self:make_directory(parent)
        if not made then
            return nil, err
        end
    end
    local made, err = stat.mkdir(path, mode or DIRECTORY_MODE)
    if made ~= 0 then
        return nil, "cannot create " .. err
    end
    -- Root's workers are another user: whatever root's umask, they have to get in.
    if unistd.geteuid() == 0 then
        stat.chmod(path, mode or DIRECTORY_MODE)
    end
    self.created[#self.created + 1] = path
    return true
end

--- Creates the prefix and its directories where they are missing.
-- @tparam string user whom the workers run as, when root starts them
-- @treturn boolean|nil true, or nil and the reason
function _M:make_directories(user)
    local instance = self.instance
    for _, directory in ipairs({
        { instance.prefix },
        { instance.logs },
        { instance.tmp },
        { instance.control_folder, PRIVATE_MODE },
        { instance.posted, PRIVATE_MODE },
    }) do
        local made, err = self:make_directory(directory[1], directory[2])
        if not made then
            return nil, err
        end
    end
    -- The one directory that workers write to by themselves.
    if unistd.geteuid() == 0 then
        local given, err = unistd.chown(instance.posted, user, -1)
        if not given then
            return nil, "cannot give away " .. err
        end
    end
    return true
end

--- Takes the lock of the prefix, so that two commands do not start or reload at once.
-- It goes with this process; a program that replaces the process does not inherit it.
-- @treturn boolean|nil true, or nil and the reason
function _M:lock()
    local path = self.instance.prefix .. "/sluice.lock"
    if not stat.stat(path) then
        self.created[#self.created + 1] = path
    end
    local flags = bit.bor(fcntl.O_RDWR, fcntl.O_CREAT, fcntl.O_CLOEXEC)
    local fd, err = fcntl.open(path, flags, FILE_MODE)
    if not fd then
        return nil, "cannot open " .. err
    end
    local region = { l_type = fcntl.F_WRLCK, l_whence = fcntl.SEEK_SET, l_start = 0, l_len = 0 }
    if fcntl.fcntl(fd, fcntl.F_SETLK, region) ~= 0 then
        unistd.close(fd)
        return nil, "another sluice command is at work in " .. self.instance.prefix
    end
    return true
end

-- Replaces a file in one step, so that a reader never sees half of it.
local function write_file(path, text)
    local temporary = path .. ".new"
    local file, err = io.open(temporary, "wb")
    if not file then
        return nil, "cannot write " .. err
    end
    local written, reason = file:write(text)
    local closed, late = file:close()
    if not written or not closed then
        os.remove(temporary)
        return nil, ("cannot write %s: %s"):format(path, reason or late)
    end
    local renamed, failure = os.rename(temporary, path)
    if not renamed then
        return nil, "cannot write " .. failure
    end
    return true
end

function _M:write(path, text)
    self.before[path] = process.read_file(path) or false
    return write_file(path, text)
end

-- The group of the workers' user when root starts nginx; nil otherwise. nginx by itself would take
-- one with the user's name.
local function group_of(settings)
    local user = unistd.geteuid() == 0 and pwd.getpwnam(settings.user)
    local group = user and grp.getgrgid(user.pw_gid)
    return group and group.gr_name or nil
end

local function render(settings, root)
    return require("cli.nginx_conf").render(settings, root, group_of(settings))
end

local function is_equal(a, b)
    if type(a) ~= "table" or type(b) ~= "table" then
        return a == b
    end
    for key, value in pairs(a) do
        if not is_equal(value, b[key]) then
            return false
        end
    end
    for key in pairs(b) do
        if a[key] == nil then
            return false
        end
    end
    return true
end

--- Whether nginx.conf and settings.json already say what these settings would.
-- @tparam table settings resolved settings
-- @tparam string root Sluice's own directory
-- @treturn boolean
function _M:is_written(settings, root)
    local written = self.instance:read_settings()
    return written ~= nil
        and is_equal(written, cjson.decode(cjson.encode(settings)))
        and process.read_file(self.instance.conf) == render(settings, root)
end

--- Writes start.json alone.
-- @tparam table remembered what start was given (cli.settings), and the `hash` of the file
-- @treturn boolean|nil true, or nil and the reason
function _M:write_remembered(remembered)
    return self:write(self.instance.start, cjson.encode(remembered) .. "\n")
end

--- Writes nginx.conf, settings.json and start.json.
-- @tparam table settings resolved settings
-- @tparam table remembered what start was given (cli.settings), and the `hash` of the file
-- @tparam string root Sluice's own directory
-- @treturn boolean|nil true, or nil and the reason
function _M:write_files(settings, remembered, root)
    local files = {
        { self.instance.conf, render(settings, root) },
        { self.instance.settings, cjson.encode(settings) .. "\n" },
        { self.instance.start, cjson.encode(remembered) .. "\n" },
    }
    for _, file in ipairs(files) do
        local written, err = self:write(file[1], file[2])
        if not written then
            return nil, err
        end
    end
    return true
end

--- Puts back the files that were there before, and removes what was not.
function _M:undo()
    for path, text in pairs(self.before) do
        if text then
            write_file(path, text)
        else
            os.remove(path)
        end
    end
    for i = #self.created, 1, -1 do
        remove_tree(self.created[i])
    end
    self.before, self.created = {}, {}
end

return _M
