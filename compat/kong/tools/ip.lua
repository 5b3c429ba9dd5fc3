--- Addresses, ranges and host names: `kong.tools.ip`.
-- @module kong.tools.ip

local ipmatcher = require("resty.ipmatcher")

local find = string.find
local format = string.format
local match = string.match
local sub = string.sub
local tonumber = tonumber
local type = type

local _M = {}

local is_v4, is_v6 = ipmatcher.parse_ipv4, ipmatcher.parse_ipv6

-- Whether a text is an address of one of two kinds.
local function is_address(text, first, second)
    if type(text) ~= "string" then
        return false
    end
    return (first(text) or (second and second(text)) or false) and true
end

-- Whether a text is a range, with at most so many bits.
local function is_range(text, parse, most)
    if type(text) ~= "string" then
        return false
    end
    local address, bits = match(text, "^(..+)/(%d%d?%d?)$")
    -- no zeroes in front
    if not address or (#bits > 1 and sub(bits, 1, 1) == "0") then
        return false
    end
    return tonumber(bits) <= most and is_address(address, parse)
end

--- Whether a text is an IPv4 address. As all of these it throws nothing.
-- @treturn boolean
-- @phases any
function _M.is_valid_ipv4(text)
    return is_address(text, is_v4)
end

--- Whether a text is an IPv6 address, without brackets.
-- @treturn boolean
-- @phases any
function _M.is_valid_ipv6(text)
    return is_address(text, is_v6)
end

--- Whether a text is an address.
-- @treturn boolean
-- @phases any
function _M.is_valid_ip(text)
    return is_address(text, is_v4, is_v6)
end

--- Whether a text is a range of IPv4 addresses.
-- @treturn boolean
-- @phases any
function _M.is_valid_cidr_v4(text)
    return is_range(text, is_v4, 32)
end

--- Whether a text is a range of IPv6 addresses.
-- @treturn boolean
-- @phases any
function _M.is_valid_cidr_v6(text)
    return is_range(text, is_v6, 128)
end

--- Whether a text is a range.
-- @treturn boolean
-- @phases any
function _M.is_valid_cidr(text)
    return _M.is_valid_cidr_v4(text) or _M.is_valid_cidr_v6(text)
end

--- Whether a text is an IPv4 address or a range of them.
-- @treturn boolean
-- @phases any
function _M.is_valid_ip_or_cidr_v4(text)
    return _M.is_valid_ipv4(text) or _M.is_valid_cidr_v4(text)
end

--- Whether a text is an IPv6 address or a range of them.
-- @treturn boolean
-- @phases any
function _M.is_valid_ip_or_cidr_v6(text)
    return _M.is_valid_ipv6(text) or _M.is_valid_cidr_v6(text)
end

--- Whether a text is an address or a range.
-- @treturn boolean
-- @phases any
function _M.is_valid_ip_or_cidr(text)
    return _M.is_valid_ip(text) or _M.is_valid_cidr(text)
end

--- What a text can only be, valid or not.
-- @tparam string name with a port or without
-- @treturn string "ipv6" with two colons, "ipv4" of digits and dots, else "name"
-- @phases any
function _M.hostname_type(name)
    local _, colons = name:gsub(":", "")
    if colons > 1 then
        return "ipv6"
    end
    return match(name, "^[%d.:]*$") and match(name, "[%d.]") and "ipv4" or "name"
end

local INVALID_PORT = "invalid port number"
local MAX_PORT = 65535

--- An IPv4 address without zeroes in front, and its port.
-- @tparam string address
-- @treturn string|nil
-- @treturn number|string|nil the port; or what is wrong
-- @phases any
function _M.normalize_ipv4(address)
    local host, port = match(address, "^([%d.]+):(%d+)$")
    local a, b, c, d = match(host or address, "^(%d%d?%d?)%.(%d%d?%d?)%.(%d%d?%d?)%.(%d%d?%d?)$")
    a, b, c, d = tonumber(a), tonumber(b), tonumber(c), tonumber(d)
    if not a or a > 255 or b > 255 or c > 255 or d > 255 then
        return nil, "invalid ipv4 address: " .. address
    end
    port = tonumber(port)
    if port and port > MAX_PORT then
        return nil, INVALID_PORT
    end
    return format("%d.%d.%d.%d", a, b, c, d), port
end

-- All eight groups of an address that may have "::".
local function groups_of(text)
    text = text:gsub("^:", "0:"):gsub(":$", ":0")
    if find(text, "::", 1, true) then
        local _, colons = text:gsub(":", "")
        text = text:gsub("::", ":" .. ("0:"):rep(8 - colons), 1)
    end
    local groups = {}
    for group in (text .. ":"):gmatch("(.-):") do
        if not match(group, "^%x%x?%x?%x?$") then
            return nil
        end
        groups[#groups + 1] = ("0"):rep(4 - #group) .. group:lower()
    end
    return #groups == 8 and groups or nil
end

--- An IPv6 address with all of its digits, and its port.
-- @tparam string address in brackets where it has a port
-- @treturn string|nil without brackets
-- @treturn number|string|nil the port; or what is wrong
-- @phases any
function _M.normalize_ipv6(address)
    local inside, behind = match(address, "^(%b[])(.*)$")
    local port
    if inside and behind ~= "" then
        port = tonumber(match(behind, "^:(%d+)$"))
        if not port then
            return nil, "invalid ipv6 address"
        elseif port > MAX_PORT then
            return nil, INVALID_PORT
        end
    end
    local groups = groups_of(inside and sub(inside, 2, -2) or address)
    if not groups then
        return nil, "invalid ipv6 address: " .. address
    end
    return table.concat(groups, ":"), port
end

-- Each part between dots; the last may be empty, as of "example.".
local function are_parts_valid(name)
    local parts = {}
    for part in (name .. "."):gmatch("([^.]*)%.") do
        parts[#parts + 1] = part
    end
    for i, part in ipairs(parts) do
        if part:sub(-1) == "-" or (part == "" and i < #parts) then
            return false
        end
    end
    return true
end

--- A host's name, and its port.
-- @tparam string address
-- @treturn string|nil
-- @treturn number|string|nil the port; or what is wrong
-- @phases any
function _M.check_hostname(address)
    local name, port = match(address, "^(.*):(%d+)$")
    name, port = name or address, tonumber(port)
    if port and port > MAX_PORT then
        return nil, INVALID_PORT
    elseif not match(name, "^[%w._-]+$") or not are_parts_valid(name) then
        return nil, "invalid hostname: " .. address
    end
    return name, port
end

local CHECKS = {
    ipv4 = _M.normalize_ipv4,
    ipv6 = _M.normalize_ipv6,
    name = _M.check_hostname,
}

--- An address or a name in its parts.
-- @tparam string address with a port or without
-- @treturn table|nil `host`, `type` ("ipv4", "ipv6", "name"), `port`
-- @treturn string|nil what is wrong
-- @phases any
function _M.normalize_ip(address)
    local kind = _M.hostname_type(address)
    local host, port = CHECKS[kind](address)
    if not host then
        return nil, port
    end
    return { type = kind, host = host, port = port }
end

--- An address or a name as an URL has it: IPv6 in brackets.
-- @tparam string|table|nil host what `normalize_ip` returns, or a text; nil is handed on
-- @tparam[opt] number|string port where the table has none; what is handed on behind nil
-- @treturn string|nil
-- @treturn string|nil what is wrong
-- @phases any
function _M.format_host(host, port)
    local kind
    if host == nil then
        return host, port
    elseif type(host) == "table" then
        port, kind, host = host.port or port, host.type, host.host
    elseif type(host) ~= "string" then
        return nil, "cannot format type '" .. type(host) .. "'"
    end
    kind = kind or _M.hostname_type(host)
    if kind == "ipv6" and not find(host, "[", 1, true) then
        local groups, err = _M.normalize_ipv6(host)
        if not groups then
            return nil, err
        end
        host = "[" .. groups .. "]"
    end
    return host .. (port and ":" .. port or "")
end

return _M
