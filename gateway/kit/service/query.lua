--- Query arguments, for `kong.service.request`.
--
-- Nothing here yields. Time grows with the length of a query.
-- @module gateway.kit.service.query

local concat = table.concat
local gsub = string.gsub
local ngx = ngx
local pairs = pairs
local pcall = pcall
local sort = table.sort
local sub = string.sub
local type = type

local _M = {}

--- Arguments as a query, in the order of their names.
-- @tparam table args name -> string, number, boolean, or a list of these: true is written as the
--   name alone, and of false nothing
-- @treturn string|nil
-- @treturn string|nil what is wrong with them
-- @phases any within nginx
function _M.encode(args)
    local parts = {}
    for name, value in pairs(args) do
        if type(name) ~= "string" then
            return nil, "arg keys must be strings"
        end
        local ok, text = pcall(ngx.encode_args, { [name] = value })
        if not ok then
            return nil, text
        end
        parts[#parts + 1] = text ~= "" and text or nil
    end
    sort(parts)
    return concat(parts, "&")
end

-- As a form writes it: a plus is a space.
local function decoded(name)
    return ngx.unescape_uri((gsub(name, "+", " ")))
end

--- A query without an argument. What is left stays as it was written.
-- @tparam string query
-- @tparam string name decoded; each argument of this name goes
-- @treturn string
-- @phases any within nginx
function _M.without(query, name)
    local kept = {}
    for pair in (query .. "&"):gmatch("([^&]*)&") do
        local key = sub(pair, 1, (pair:find("=", 1, true) or 0) - 1)
        if decoded(key) ~= name then
            kept[#kept + 1] = pair
        end
    end
    return concat(kept, "&")
end

return _M
