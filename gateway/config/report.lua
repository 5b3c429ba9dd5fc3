--- The errors of one file: so many, then nothing more is looked at.
-- A file that is wrong everywhere would else cost what its aliases unfold to, and its response too.
-- @module gateway.config.report

local text = require("gateway.schema.text")

local error = error
local setmetatable = setmetatable

local MAX_ERRORS = 100
-- Messages quote what stands in the file.
local MAX_MESSAGE = 300

local _M = {}
local methods = {}
local mt = { __index = methods }

--- What `add` throws when there is no room for a further error.
_M.FULL = {}

--- @treturn table an array of `{ path =, message = }` with the method `add`
function _M.new()
    return setmetatable({}, mt)
end

--- Adds an error; beyond 100 an entry that says so, and throws `FULL`.
-- @tparam string path
-- @tparam string message
function methods:add(path, message)
    if #self == MAX_ERRORS then
        path, message = "", ("and more: stopped after %d errors"):format(MAX_ERRORS)
    end
    self[#self + 1] = { path = path, message = text.shorten(message, MAX_MESSAGE) }
    if #self > MAX_ERRORS then
        error(_M.FULL, 0)
    end
end

return _M
