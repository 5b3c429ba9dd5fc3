--- Groups that a plugin has authenticated, as plugins for Kong say them: names in
-- `kong.ctx.shared.authenticated_groups`, or in `ngx.ctx`.
-- @module gateway.kit.groups

local ctx = require("gateway.kit.ctx")
local packed = require("sluice.ffi.packed")

local ngx = ngx
local ipairs = ipairs
local type = type

local _M = {}

--- Those of the request in hand, for C. Of a name that is no string nobody can be a member.
-- @treturn string a packed list; "": no plugin has said any, or what it said is no table
-- @raise a name "is longer than 1 MiB"; there are more than 65,535 of them
-- @phases rewrite, access
function _M.pack()
    local found = ctx.shared.authenticated_groups
    if type(found) ~= "table" then
        found = ngx.ctx.authenticated_groups
    end
    if type(found) ~= "table" then
        if found ~= nil then
            ngx.log(ngx.WARN, "invalid authenticated_groups, a table was expected")
        end
        return ""
    end
    local names = {}
    for _, name in ipairs(found) do
        if type(name) == "string" then
            names[#names + 1] = name
        end
    end
    local out = packed.new()
    out:list(names)
    return out:bytes()
end

return _M
