--- lua-resty-http's table of header fields: found by any spelling, listed as first written.
-- @module resty.http_headers

local rawget = rawget
local rawset = rawset
local setmetatable = setmetatable
local tostring = tostring

local _M = {}

--- Makes an empty table.
-- @treturn table
-- @phases any
function _M.new()
    -- Name in small letters -> as it was first written.
    local spelling = {}
    return setmetatable({}, {
        __index = function(fields, name)
            return rawget(fields, spelling[tostring(name):lower()])
        end,
        __newindex = function(fields, name, value)
            local key = tostring(name):lower()
            spelling[key] = spelling[key] or name
            rawset(fields, spelling[key], value)
        end,
    })
end

return _M
