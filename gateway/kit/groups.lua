--- Groups that a plugin has authenticated, as plugins for Kong say them: names in
-- `kong.ctx.shared.authenticated_groups`, or in `ngx.ctx`.
-- @module gateway.kit.groups

local ctx = require("gateway.kit.ctx")
local pdk = require("gateway.pdk")
local packed = require("sluice.ffi.packed")

local ngx = ngx
local type = type

local _M = {}

--- Those of the request in hand, for C, without names that are no strings. None where only a
-- credential names the consumer, as the consumer's would count.
-- @treturn string a packed list; "": no plugin has said any, or what it said is no table
-- @raise a name "is longer than 1 MiB"; there are more than 65,535 of them; one within is nil
-- @phases rewrite, access
function _M.pack()
    local credential = pdk.credential()
    if credential and credential.consumer_id ~= nil and not pdk.consumer() then
        return ""
    end
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
    -- The length of a list with a nil within is any of its ends.
    for i = 1, table.maxn(found) do
        if found[i] == nil then
            error("authenticated_groups lacks number " .. i, 0)
        elseif type(found[i]) == "string" then
            names[#names + 1] = found[i]
        end
    end
    local out = packed.new()
    out:list(names)
    return out:bytes()
end

return _M
