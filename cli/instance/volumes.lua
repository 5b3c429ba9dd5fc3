--- Folders that are no part of the root file system, as a container's volumes.

local file = require("sluice.file")
local stat = require("posix.sys.stat")

local process = require("cli.instance.process")

local _M = {}

-- PROC_PID_INIT_INO of the kernel's.
local FIRST_PIDS = "pid:[4026531836]"

--- Whether a folder, or what it will be made in, is none of the root file system.
-- @tparam string path
-- @treturn boolean
function _M.is_mounted(path)
    local info = stat.stat(path)
    while not info do
        path = file.parent_of(path)
        info = stat.stat(path)
    end
    return info.st_dev ~= stat.stat("/").st_dev
end

--- Whether a folder is a volume of a container, which platforms open to everybody: nobody else is
-- in there. The first namespace of processes is the machine's; a container has another.
-- @tparam string path
-- @tparam table info its posix.sys.stat
-- @treturn boolean
function _M.is_of_container(path, info)
    local above = stat.stat(file.parent_of(path))
    local is_mounted = above and above.st_dev ~= info.st_dev
    return is_mounted and process.read_link("/proc/self/ns/pid") ~= FIRST_PIDS
end

return _M
