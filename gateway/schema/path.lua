--- The normal spelling of a path, for what checks a configuration without nginx and the core. That
-- of requests is C's (module/core/path/path.h), and the same tests ask both.
-- @module gateway.schema.path
-- @usage
-- local path = require("gateway.schema.path")
-- local p = path.normalize("/a//b/%7ec/../d")  --> "/a/b/d"

local byte, find, gsub = string.byte, string.find, string.gsub
local char, upper = string.char, string.upper

local SLASH = byte("/")

-- RFC 3986 section 2.2 and the percent sign: encoded or not makes a difference,
-- so an encoded one stays encoded.
local RESERVED = "!*'();:@&=+$,/?%#[]"

local is_reserved = {}
for i = 1, #RESERVED do
    is_reserved[byte(RESERVED, i)] = true
end

local _M = {}

local function decode_triplet(hex)
    if #hex < 2 then
        -- A stray percent sign could become part of a triplet once the bytes
        -- after it are decoded ("%%32e" -> "%2e" -> "."): nginx refuses such a
        -- request, and here it stands for itself.
        return "%25" .. hex
    end
    local code = tonumber(hex, 16)
    if is_reserved[code] then
        return "%" .. upper(hex)
    end
    return char(code)
end

--- RFC 3986 section 5.2.4, with empty segments dropped.
local function remove_dots(path)
    local segments, count, trailing = {}, 0, false
    for segment, slash in string.gmatch(path, "([^/]*)(/?)") do
        trailing = slash == "/"
        if segment == ".." then
            count = count > 0 and count - 1 or 0
            trailing = true
        elseif segment == "." then
            trailing = true
        elseif segment ~= "" then
            count = count + 1
            segments[count] = segment
        end
        if slash == "" then
            -- The last segment; gmatch would go on with an empty one.
            trailing = trailing or segment == ""
            break
        end
    end
    local result = "/" .. table.concat(segments, "/", 1, count)
    if trailing and count > 0 then
        result = result .. "/"
    end
    return result
end

--- Bring the path of a request into its one normal spelling.
--
-- RFC 3986 section 6.2.2 as Kong has it: percent-encoded bytes are
-- decoded, except reserved characters, whose digits become upper case; dot
-- segments are removed and slashes merged. The result may hold any byte. Costs
-- three scans when there is nothing to do, and then returns the same string.
--
-- @tparam string raw the request's path without its query
-- @treturn string begins with a slash
-- @phases any
function _M.normalize(raw)
    if find(raw, "%", 1, true) then
        raw = gsub(raw, "%%(%x?%x?)", decode_triplet)
    end
    if byte(raw) == SLASH and not find(raw, "/.", 1, true) and not find(raw, "//", 1, true) then
        return raw
    end
    return remove_dots(raw)
end

return _M
