--- Checks of texts that fields hold: names, tags, paths, URLs.
-- Each returns `true`, or `nil` and a message for the user.
-- @module gateway.schema.text

local address = require("sluice.address")
local core = require("sluice.ffi.core")
local router_path = require("gateway.schema.path")

local byte = string.byte
local char = string.char
local format = string.format

local _M = {}

-- Bounds of the second byte that rule out overlong forms, surrogates and what
-- is above U+10FFFF (RFC 3629, section 4).
local SECOND_BYTE = {
    [0xE0] = { 0xA0, 0xBF },
    [0xED] = { 0x80, 0x9F },
    [0xF0] = { 0x90, 0xBF },
    [0xF4] = { 0x80, 0x8F },
}

local function sequence_length(first)
    if first < 0x80 then
        return 1
    elseif first >= 0xC2 and first <= 0xDF then
        return 2
    elseif first >= 0xE0 and first <= 0xEF then
        return 3
    elseif first >= 0xF0 and first <= 0xF4 then
        return 4
    end
end

-- By the byte, as the JIT compiles that.
local function first_beyond_ascii(text)
    for i = 1, #text do
        if byte(text, i) >= 0x80 then
            return i
        end
    end
    return nil
end

--- Whether a text has bytes of a class only; "" has.
-- By the byte, as the JIT compiles that, and no pattern with a class.
-- @tparam string class such as `[%w_-]`
-- @treturn function `(text)` -> boolean
function _M.made_of(class)
    local has = {}
    for value = 0, 255 do
        has[value] = char(value):find(class) ~= nil
    end
    return function(text)
        for i = 1, #text do
            if not has[byte(text, i)] then
                return false
            end
        end
        return true
    end
end

local is_name = _M.made_of("[%w._~\128-\244-]")

--- Cuts the middle out of a long text, between characters of UTF-8.
-- @tparam string text
-- @tparam number size bytes that may stay; some more say what is left out
-- @treturn string
function _M.shorten(text, size)
    if #text <= size then
        return text
    end
    local head = text:sub(1, size * 2 / 3):gsub("[\192-\255]?[\128-\191]*$", "")
    local tail = text:sub(-size / 3):gsub("^[\128-\191]+", "")
    return format("%s[... %d bytes ...]%s", head, #text - #head - #tail, tail)
end

-- Control characters of ASCII and of Unicode, ends of lines, and what turns the direction of
-- writing (Unicode 15, 23.2 and 23.4). Patterns of their bytes.
local CONTROLS = { "%c", "\194[\128-\159]", "\226\128[\142\143\168-\174]", "\226\129[\166-\169]" }

--- A name of anybody's, as it may stand in a log or on a terminal.
-- @tparam string text
-- @tparam number size about so many bytes
-- @treturn string with a question mark for each control character
function _M.plain(text, size)
    for _, pattern in ipairs(CONTROLS) do
        text = text:gsub(pattern, "?")
    end
    return _M.shorten(text, size)
end

--- Checks that a text is UTF-8.
-- @tparam string text
-- @treturn boolean|nil true
-- @treturn nil|string message with the position of the first bad byte
function _M.utf8(text)
    local i = first_beyond_ascii(text)
    while i and i <= #text do
        local first = byte(text, i)
        local length = sequence_length(first)
        local bounds = SECOND_BYTE[first]
        for j = 1, (length or 0) - 1 do
            local low, high = 0x80, 0xBF
            if j == 1 and bounds then
                low, high = bounds[1], bounds[2]
            end
            local following = byte(text, i + j)
            if not following or following < low or following > high then
                length = nil
                break
            end
        end
        if not length then
            return nil, "invalid utf-8 character sequence detected at position " .. i
        end
        i = i + length
    end
    return true
end

--- Checks a name of an entity: letters, digits, `. - _ ~` and non-ASCII UTF-8.
-- @tparam string name
-- @treturn boolean|nil true
-- @treturn nil|string message
function _M.name(name)
    local ok, err = _M.utf8(name)
    if not ok then
        return nil, err
    end
    if name == "" or not is_name(name) then
        return nil,
            format(
                "invalid value '%s': the only accepted ascii characters are "
                    .. "alphanumerics or ., -, _, and ~",
                name
            )
    end
    return true
end

--- Checks a tag: printable, without `,` and `/`, which separate tags in queries.
-- @tparam string tag
-- @treturn boolean|nil true
-- @treturn nil|string message
function _M.tag(tag)
    local ok, err = _M.utf8(tag)
    if not ok then
        return nil, err
    end
    if tag:find("[%c,/]") then
        return nil,
            format(
                "invalid tag '%s': expected printable ascii (except `,` and `/`) "
                    .. "or valid utf-8 sequences",
                tag
            )
    end
    return true
end

--- Checks the name of a header: letters, digits, `_` and `-`.
-- @tparam string name
-- @treturn boolean|nil true
-- @treturn nil|string message
function _M.header_name(name)
    if not name:find("^[%w_-]+$") then
        return nil,
            format("bad header name '%s', allowed characters are A-Z, a-z, 0-9, '_', and '-'", name)
    end
    return true
end

--- Checks the name of a cookie: a token of RFC 9110, section 5.6.2.
-- @tparam string name
-- @treturn boolean|nil true
-- @treturn nil|string message
function _M.cookie_name(name)
    if not name:find("^[%w!#$%%&'*+.^_`|~-]+$") then
        return nil, format("bad cookie name '%s', it must be an HTTP token", name)
    end
    return true
end

local function percent_encoding(path)
    if not path:find("%", 1, true) then
        return true
    end
    local bad = path:gsub("%%%x%x", ""):match("%%.?.?")
    if bad then
        return nil, format("invalid url-encoded value: '%s'", bad)
    end
    return true
end

--- Checks a fixed path, as of a service: the characters of RFC 3986, section 3.3.
-- @tparam string path
-- @treturn boolean|nil true
-- @treturn nil|string message
function _M.path(path)
    if not path:find("^/[%w._~/%%:@!$&'()*+,;=-]*$") then
        return nil,
            format(
                "invalid path: '%s' (characters outside of the reserved list of RFC 3986 found)",
                path
            )
    end
    return percent_encoding(path)
end

--- Checks a path of a route: a normalised prefix, or `~` and a regex that compiles.
-- @tparam string path that starts with `/` or `~/`
-- @treturn boolean|nil true
-- @treturn nil|string message
function _M.route_path(path)
    if path:sub(1, 1) == "~" then
        local pattern = path:sub(2)
        local ok, err = core.check_pattern(pattern, true)
        if not ok then
            return nil, format("invalid regex: '%s' (PCRE returned: %s)", pattern, err)
        end
        return true
    end
    local ok, err = percent_encoding(path)
    if not ok then
        return nil, err
    end
    local normal = router_path.normalize(path)
    if normal ~= path then
        return nil, format("non-normalized path, consider use '%s' instead", normal)
    end
    return true
end

--- Checks the value of a route's header: a text, or `~*` and a regex that compiles.
-- @tparam string value
-- @treturn boolean|nil true
-- @treturn nil|string message
function _M.header_value(value)
    if value:sub(1, 2) ~= "~*" then
        return true
    end
    local ok, err = core.check_pattern(value:sub(3), false)
    return ok, err and format("invalid regex: '%s' (PCRE returned: %s)", value, err)
end

--- Checks a URL of any scheme that has a host, as Kong's typedef does.
-- @tparam string url
-- @treturn boolean|nil true
-- @treturn nil|string message
function _M.any_url(url)
    local scheme, rest = url:match("^(%w[%w+.-]*):([^#]*)")
    local authority = (rest or url):match("^//([^/?#]*)") or ""
    local host = authority:gsub("^[^@]*@", ""):gsub(":[^:%]]*$", "")
    if host == "" then
        return nil, "missing host in url"
    elseif not scheme then
        return nil, "missing scheme in url"
    end
    return true
end

--- Splits a URL into what a service has: protocol, host, port, path.
-- The port follows from the scheme when it is left out (80, https 443).
-- @tparam string url
-- @treturn table|nil `{ protocol =, host =, port =, path = }`
-- @treturn nil|string message
function _M.url(url)
    local parsed, err = address.parse_url(url)
    if not parsed then
        return nil, err
    elseif parsed.userinfo then
        return nil, "must not have a user name or password"
    elseif parsed.target:find("[?#]") then
        return nil, "must not have a query or a fragment"
    end
    return {
        protocol = parsed.scheme,
        host = parsed.host,
        port = parsed.port or address.default_port(parsed.scheme) or 80,
        path = parsed.target ~= "" and parsed.target or nil,
    }
end

return _M
