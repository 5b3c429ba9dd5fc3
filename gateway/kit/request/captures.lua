--- What the groups of a route's path have matched. The match in C keeps none of them, as few
-- requests ask: whoever does runs the expression again.
-- @module gateway.kit.request.captures

local pdk = require("gateway.pdk")
local matched = require("gateway.pdk.matched")

local byte = string.byte
local ngx = ngx
local pairs = pairs
local sub = string.sub
local type = type

local TILDE = byte("~")

local _M = {}

-- Whether there is more than the whole match.
local function has_groups(found)
    for key, value in pairs(found) do
        if key ~= 0 and value then
            return true
        end
    end
    return false
end

--- The captures of the request's path: the whole match in 0, groups by number and by name.
-- @treturn table|nil nil: no route has matched, by no regular expression, or one without groups
-- @phases access, header_filter, body_filter, log
function _M.get()
    local route, path = pdk.route(), matched.path()
    if not route or not path or type(route.paths) ~= "table" then
        return nil
    end
    for _, pattern in ipairs(route.paths) do
        local found = byte(pattern) == TILDE and ngx.re.match(path, sub(pattern, 2), "ajo")
        if found then
            return has_groups(found) and found or nil
        end
    end
    return nil
end

--- The groups in two tables.
-- @tparam table|nil found of `get`
-- @treturn table `{ unnamed = {...}, named = {...} }`; groups that have matched nothing are missing
-- @phases any
function _M.split(found)
    local unnamed, named = {}, {}
    for key, value in pairs(found or {}) do
        local into = type(key) == "number" and unnamed or named
        into[key] = value or nil
    end
    return { unnamed = unnamed, named = named }
end

return _M
