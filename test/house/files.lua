--- Files and commands, as the tests use them: what fails is a failure of the test.

local lfs = require("lfs")

local _M = {}

--- What a file holds.
function _M.read(path)
    local file = assert(io.open(path, "rb"))
    local text = file:read("*a")
    file:close()
    return text
end

--- Whether there is such a file, or folder.
function _M.exists(path)
    return lfs.attributes(path) ~= nil
end

--- What a file holds; nil where there is none.
function _M.read_if_there(path)
    return _M.exists(path) and _M.read(path) or nil
end

--- Writes a file, or writes it again.
function _M.write(path, text)
    local file = assert(io.open(path, "wb"))
    assert(file:write(text))
    file:close()
end

--- What a command writes, and whether it succeeds.
function _M.run(command)
    local pipe = assert(io.popen(command))
    local text = pipe:read("*a")
    return text, pipe:close()
end

return _M
