--- Paths of requests: one spelling for each, and what the upstream is asked.
--
-- @module gateway.router.path
-- @usage
-- local path = require("gateway.router.path")
-- local p = path.normalize("/a//b/%7ec/../d")  --> "/a/b/d"
-- path.upstream(route, "/service", p, "/a")    --> "/service/b/d"

local ffi = require("ffi")

local byte, find, format, gsub, sub =
    string.byte, string.find, string.format, string.gsub, string.sub
local char, upper = string.char, string.upper

local SLASH = byte("/")
local DOT = byte(".")

-- RFC 3986 section 2.2 and the percent sign: encoded or not makes a difference,
-- so an encoded one stays encoded.
local RESERVED = "!*'();:@&=+$,/?%#[]"

-- What may stand in a request line's path as it is; all else is encoded. Marked
-- with 1 in a C array, which the JIT reads without a call.
local SAFE = "!#$&'()*+,/:;=?@[]-_.~%"
    .. "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

local UNSAFE = "[^" .. gsub(SAFE, "%p", "%%%0") .. "]"

local is_reserved = {}
for i = 1, #RESERVED do
    is_reserved[byte(RESERVED, i)] = true
end

local is_safe = ffi.new("uint8_t[256]")
for i = 1, #SAFE do
    is_safe[byte(SAFE, i)] = 1
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

local function encode_byte(c)
    return format("%%%02X", byte(c))
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
-- segments are removed and slashes merged. Bytes that may not travel as they
-- are (a decoded space or line feed) are encoded again by `upstream`: no other
-- way may a normalised path or a piece of one get into what nginx sends. Costs three scans when
-- there is nothing to do, and then returns the same string.
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

--- Encode what may not stand in a request line.
--
-- @tparam string path
-- @treturn string the same string when there is nothing to do
-- @phases any
function _M.escape(path)
    for i = 1, #path do
        if is_safe[byte(path, i)] == 0 then
            return (gsub(path, UNSAFE, encode_byte))
        end
    end
    return path
end

--- What is left of a dot segment that the prefix cut in two must not climb.
local function trim_dots(rest)
    if byte(rest) ~= DOT then
        return rest
    elseif rest == "." or rest == ".." then
        return ""
    elseif sub(rest, 1, 2) == "./" then
        return sub(rest, 3)
    elseif sub(rest, 1, 3) == "../" then
        return sub(rest, 4)
    end
    return rest
end

local function join_v0(base, rest, path, strip)
    local base_slash = byte(base, -1) == SLASH
    if not strip then
        if base_slash then
            return base .. sub(path, 2)
        end
        return path == "/" and base or base .. path
    end
    if rest == "" then
        -- All was stripped: the slash at the end follows the request's.
        local path_slash = byte(path, -1) == SLASH and #path > 1
        if base == "/" then
            return base
        elseif base_slash then
            return byte(path, -1) == SLASH and base or sub(base, 1, -2)
        end
        return path_slash and base .. "/" or base
    end
    if base_slash then
        return byte(rest) == SLASH and sub(base, 1, -2) .. rest or base .. rest
    end
    return byte(rest) == SLASH and base .. rest or base .. "/" .. rest
end

--- The older rule: plain concatenation, save a doubled slash.
local function join_v1(base, rest, path, strip)
    if not strip then
        return base .. sub(path, 2)
    end
    if byte(base, -1) == SLASH and byte(rest) == SLASH then
        return sub(base, 1, -2) .. rest
    end
    return base .. rest
end

--- The path to ask the upstream for.
--
-- Follows Kong's tables of `strip_path` and `path_handling`.
--
-- @tparam table route `strip_path`, `path_handling` ("v0" or "v1")
-- @tparam ?string service_path nil is "/"
-- @tparam string path normalised
-- @tparam ?string prefix what `router:match` says has matched
-- @tparam ?boolean is_raw the path is as the client sent it: normalising had
--   nothing to decode, so there is nothing to encode
-- @treturn string encoded for a request line
-- @phases any
function _M.upstream(route, service_path, path, prefix, is_raw)
    local base, strip = service_path or "/", route.strip_path
    -- The leading slash is never part of what is left: the base brings it.
    local stripped = strip and prefix and #prefix or 1
    local result = path
    if base ~= "/" or stripped > 1 then
        local rest = trim_dots(sub(path, stripped + 1))
        local join = route.path_handling == "v1" and join_v1 or join_v0
        result = join(base, rest, path, strip)
    end
    return is_raw and result or _M.escape(result)
end

return _M
