--- Who changes something, as the history and the audit log name it.

local pwd = require("posix.pwd")
local unistd = require("posix.unistd")

local _M = {}

--- Who types the command. No name in it can end a line of a request.
-- @treturn string "alice", "alice as root" with sudo
function _M.user()
    local uid = unistd.geteuid()
    local account = pwd.getpwuid(uid)
    local name = account and account.pw_name or ("uid %d"):format(uid)
    local person = os.getenv("SUDO_USER")
    local is_other = person and person ~= name and person:find("^[%w%p]+$")
    return is_other and ("%s as %s"):format(person, name) or name
end

--- Where a declarative configuration comes from.
-- @tparam string file a path, or what gave the text: the setting `file`
-- @treturn string "file /etc/sluice/sluice.yaml", in one line whatever the path has
function _M.source(file)
    local source = file:sub(1, 1) == "/" and "file " .. file or file
    return (source:gsub("%c", "?"))
end

--- Who loads a declarative configuration, where no gateway runs that is told.
-- @tparam string file as of `source`
-- @treturn string "file /etc/sluice/sluice.yaml (alice)"; gateway.admin.auth says the same
function _M.of_file(file)
    return ("%s (%s)"):format(_M.source(file), _M.user())
end

return _M
