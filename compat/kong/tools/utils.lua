--- What older plugins know as `kong.tools.utils`: the functions of those modules that took its
-- place.
-- @module kong.tools.utils

local PARTS = {
    require("kong.tools.table"),
    require("kong.tools.uuid"),
    require("kong.tools.rand"),
    require("kong.tools.time"),
    require("kong.tools.string"),
    require("kong.tools.ip"),
    require("kong.tools.http"),
}

local _M = {}

for _, part in ipairs(PARTS) do
    for name, value in pairs(part) do
        _M[name] = value
    end
end

return _M
