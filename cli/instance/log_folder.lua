--- Whether root's nginx may write a log where it is to: it opens it by name, again and again, and
-- gives it to its workers, so nobody else may put a link in its place meanwhile.

local file = require("sluice.file")
local pwd = require("posix.pwd")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")

local logs = require("cli.nginx.logs")
local options = require("cli.options")
local paths = require("cli.instance.paths")
local volumes = require("cli.instance.volumes")

local _M = {}

local STICKY = tonumber("1000", 8)

-- Who else may put something into a folder.
local function stranger(path, info, is_above)
    local is_open = bit.band(info.st_mode, stat.S_IWOTH) ~= 0
    -- In the folder itself sticky is not enough: the workers own the file.
    local is_kept = is_above and bit.band(info.st_mode, STICKY) ~= 0
    if info.st_uid ~= 0 then
        local user = pwd.getpwuid(info.st_uid)
        return user and user.pw_name or "user " .. info.st_uid
    end
    return is_open and not is_kept and not volumes.is_of_container(path, info) and "all users"
        or nil
end

-- The folder of a log, or one above it, that is not root's alone, and whose it is.
local function find_open(log)
    local path, is_above = paths.resolve(file.parent_of(log)), false
    while true do
        local info = stat.stat(path)
        local who = info and stranger(path, info, is_above)
        if who or path == "/" then
            return path, who
        end
        path, is_above = file.parent_of(path), true
    end
end

--- Looks at the logs that lie outside the prefix, where root starts nginx.
-- @tparam table settings resolved settings
-- @tparam table errors array that gets a line for each that is refused
function _M.check(settings, errors)
    if unistd.geteuid() ~= 0 then
        return
    end
    for _, name in ipairs(logs.names) do
        local log = logs.target(settings[name], settings.prefix)
        local folder, who
        if log:sub(1, 1) == "/" and not paths.holds(settings.prefix, log) then
            folder, who = find_open(log)
        end
        if who then
            local line = "%s: %s could put a link into %s, which nginx would follow as root; set "
                .. "%s to a path in a directory that only root can write to"
            errors[#errors + 1] =
                line:format(name, who, folder, options.flag(options.by_name[name]))
        end
    end
end

return _M
