--- What only nginx has, outside of it: there to be taken at `require`, and throws when called.
-- @module gateway.kit.outside.absent

local _M = {}

--- Makes a table of functions, of tables of them, ..., each of which throws its name.
-- @tparam string name
-- @tparam[opt] table known fields that it has
-- @treturn table
-- @phases without nginx
function _M.new(name, known)
    return setmetatable(known or {}, {
        __call = function()
            error(name .. ": there is none outside of nginx", 2)
        end,
        __index = function(self, key)
            local value = _M.new(("%s.%s"):format(name, tostring(key)))
            rawset(self, key, value)
            return value
        end,
    })
end

return _M
