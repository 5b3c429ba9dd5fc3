--- Origins of cors: which are patterns, and as what C runs those.
-- @module plugins.cors.origin

local _M = {}

--- The pattern that an origin of a configuration is.
-- @tparam string origin
-- @treturn string|nil anchored; nil: it is compared as it is
-- @treturn string|nil what follows where it exceeds its limits
function _M.pattern(origin)
    if origin == "*" or origin:find("^[A-Za-z0-9.:/-]+$") then
        return nil
    end
    return "(?:" .. origin .. ")$", "such origins are not allowed"
end

return _M
