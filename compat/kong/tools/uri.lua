--- Paths in one spelling: `kong.tools.uri`.
-- @module kong.tools.uri

local byte = string.byte
local char = string.char
local concat = table.concat
local find = string.find
local format = string.format
local gsub = string.gsub
local sub = string.sub
local upper = string.upper

local _M = {}

-- What means something else where it is not escaped.
local RESERVED = {}
for each in ("!*'();:@&=+$,/?%#[]"):gmatch(".") do
    RESERVED[byte(each)] = true
end

-- What may stand in a path as it is, "%" among them.
local PLAIN = "[^%w!#$&'()*+,/:;=?@%[%]%-_.~%%]"

local function escape_one(one)
    return format("%%%02X", byte(one))
end

local function unescape_one(digits)
    local number = tonumber(digits, 16)
    if RESERVED[number] then
        return "%" .. upper(digits)
    end
    return char(number)
end

--- Escapes what may not stand in a path or a header. What is escaped stays so.
-- @tparam string uri
-- @treturn string
-- @phases any
function _M.escape(uri)
    return (gsub(uri, PLAIN, escape_one))
end

-- The segments of a path, each with the slash before it; the first may have none.
local function segments_of(uri)
    local list, at = {}, 1
    while at <= #uri do
        local next_at = find(uri, "/", at + 1, true) or #uri + 1
        list[#list + 1] = sub(uri, at, next_at - 1)
        at = next_at
    end
    return list
end

-- Leaves "." and ".." out, and empty segments where slashes are merged.
local function resolve(segments, merges)
    local out, count = {}, 0
    for i, segment in ipairs(segments) do
        local is_last, has_slash = i == #segments, byte(segment) == 47
        local name = has_slash and sub(segment, 2) or segment
        local is_up = name == ".."
        if name == "." or is_up then
            -- Before the first slash there is nothing to go up from.
            if is_up and has_slash and count > 0 then
                count = count - 1
            end
            if is_last and has_slash then
                count = count + 1
                out[count] = "/"
            end
        elseif not (merges and segment == "/" and not is_last) then
            count = count + 1
            out[count] = segment
        end
    end
    return concat(out, "", 1, count)
end

--- Decodes what needs no escape, writes the escapes that stay in capitals, and resolves "." and
-- "..".
-- @tparam string uri
-- @tparam[opt=false] boolean merge_slashes makes one slash of several
-- @treturn string
-- @phases any
function _M.normalize(uri, merge_slashes)
    if uri == "" or uri == "/" then
        return uri
    end
    if find(uri, "%", 1, true) then
        uri = gsub(uri, "%%(%x%x)", unescape_one)
    end
    local has_dot = find(uri, ".", 1, true)
    if not has_dot and not (merge_slashes and find(uri, "//", 1, true)) then
        return uri
    end
    -- What comes before the first slash and leads nowhere.
    uri = gsub(uri, "^%.%.?$", "")
    while find(uri, "^%.%.?/") do
        uri = gsub(uri, "^%.%.?/", "")
    end
    return resolve(segments_of(uri), merge_slashes)
end

return _M
