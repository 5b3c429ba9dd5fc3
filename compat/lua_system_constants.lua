--- lua-system-constants' numbers of open(2), as functions.
-- @module lua_system_constants
-- @usage
-- local flags = bit.bor(constants.O_CREAT(), constants.O_APPEND(), constants.O_WRONLY())

local fcntl = require("posix.fcntl")
local stat = require("posix.sys.stat")

local _M = {}

local NAMES = {
    [fcntl] = { "O_RDONLY", "O_WRONLY", "O_RDWR", "O_APPEND", "O_CREAT", "O_EXCL", "O_TRUNC" },
    [stat] = {
        "S_IRWXU",
        "S_IRUSR",
        "S_IWUSR",
        "S_IXUSR",
        "S_IRWXG",
        "S_IRGRP",
        "S_IWGRP",
        "S_IXGRP",
        "S_IRWXO",
        "S_IROTH",
        "S_IWOTH",
        "S_IXOTH",
    },
}

for from, names in pairs(NAMES) do
    for _, name in ipairs(names) do
        local number = from[name]
        _M[name] = function()
            return number
        end
    end
end

return _M
