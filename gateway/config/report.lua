--- The errors of one file: so many, then nothing more is looked at.
-- A file that is wrong everywhere would else cost what its aliases unfold to, and its response too.
-- @module gateway.config.report

local text = require("gateway.schema.text")

local MAX_ERRORS = 100
-- Messages quote what stands in the file.
local MAX_MESSAGE = 300

local _M = {}
local methods = {}
local mt = { __index = methods }

--- What `add` throws when there is no room for a further error.
_M.FULL = {}

--- @tparam[opt] number max how many errors there may be; 100
-- @treturn table an array of `{ path =, message = }` with the method `add`
function _M.new(max)
    return setmetatable({}, max and { __index = { add = methods.add, max = max } } or mt)
end

--- Adds an error; beyond the bound an entry with `is_end`, that says so, and throws `FULL`.
-- @tparam string path
-- @tparam string message
-- @treturn table the error
function methods:add(path, message)
    local is_end = #self == (self.max or MAX_ERRORS)
    if is_end then
        path, message = "", ("stopped after %d errors"):format(#self)
    end
    local err =
        { path = path, message = text.shorten(message, MAX_MESSAGE), is_end = is_end or nil }
    self[#self + 1] = err
    if is_end then
        error(_M.FULL, 0)
    end
    return err
end

return _M
