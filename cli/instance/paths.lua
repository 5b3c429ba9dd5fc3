--- Whether two paths are one: a folder has as many as there are links that lead to it.

local file = require("sluice.file")
local stdlib = require("posix.stdlib")

local _M = {}

--- The one name of a file or folder: without symbolic links, also where it does not exist yet.
-- @tparam string path absolute, without . and ..
-- @treturn string
function _M.resolve(path)
    local real = stdlib.realpath(path)
    if real or path == "/" then
        return real or path
    end
    local name = path:match("([^/]+)$")
    local parent = _M.resolve(file.parent_of(path))
    return (parent == "/" and "" or parent) .. "/" .. name
end

--- Whether two paths lead to the same file or folder.
-- @tparam string|nil one absolute, without . and ..
-- @tparam string|nil other
-- @treturn boolean
function _M.are_same(one, other)
    return one == other or (one and other and _M.resolve(one) == _M.resolve(other)) or false
end

--- Whether a file is in a folder, or in one in it; where the file itself is a link, the link.
-- @tparam string folder as `resolve` has it
-- @tparam string path absolute, without . and ..
-- @treturn boolean
function _M.holds(folder, path)
    local parent = _M.resolve(file.parent_of(path))
    return parent == folder or parent:sub(1, #folder + 1) == folder .. "/"
end

return _M
