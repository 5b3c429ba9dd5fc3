--- Paths in Lua, which the C core is compared with (path.h): the normal spelling is
-- that of `gateway.schema.path`; what the upstream is asked only tests ask here.

local normalize = require("gateway.schema.path").normalize

local ffi = require("ffi")

local byte, format, gsub, sub = string.byte, string.format, string.gsub, string.sub

local SLASH = byte("/")
local DOT = byte(".")

-- What may stand in a request line's path as it is; all else is encoded.
local SAFE = "!#$&'()*+,/:;=?@[]-_.~%"
    .. "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

local UNSAFE = "[^" .. gsub(SAFE, "%p", "%%%0") .. "]"

local is_safe = ffi.new("uint8_t[256]")
for i = 1, #SAFE do
    is_safe[byte(SAFE, i)] = 1
end

local _M = { normalize = normalize }

local function encode_byte(c)
    return format("%%%02X", byte(c))
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
