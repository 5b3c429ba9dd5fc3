--- Host names and IP addresses, with a port and in URLs: the one place that takes them apart and
-- writes them. Nothing here asks a resolver or yields.
-- @module sluice.address
-- @usage
-- local a = address.parse("[::1]:80") -- { type = "ipv6", host = "::1", port = 80 }
-- local url = address.parse_url("http://a/b?c") -- url.host == "a", url.target == "/b?c"

local concat, insert = table.concat, table.insert
local format = string.format
local ipairs = ipairs
local tonumber = tonumber

-- A name has 253 bytes (RFC 1035), an IPv6 address fewer; brackets and a port come to it. Beyond,
-- patterns that go back would cost the square of the length.
local MAX_LENGTH = 253 + #"[]:65535"

local MAX_PORT = 65535

local _M = {}

local function is_ipv4(text)
    local parts = { text:match("^(%d%d?%d?)%.(%d%d?%d?)%.(%d%d?%d?)%.(%d%d?%d?)$") }
    for _, part in ipairs(parts) do
        if tonumber(part) > 255 then
            return false
        end
    end
    return #parts == 4
end

-- Number of 16-bit groups in a part of an IPv6 address, nil when malformed.
local function count_groups(text)
    if text == "" then
        return 0
    end
    local n = 0
    for group in (text .. ":"):gmatch("([^:]*):") do
        if not group:find("^%x%x?%x?%x?$") then
            return nil
        end
        n = n + 1
    end
    return n
end

local function is_ipv6(text)
    -- an IPv4 tail stands for two groups
    local head, tail = text:match("^(.*:)([%d.]+%.[%d.]+)$")
    if head then
        if not is_ipv4(tail) then
            return false
        end
        text = head .. "0:0"
    end
    local left, right = text:match("^(.-)::(.*)$")
    if not left then
        return count_groups(text) == 8
    end
    local a, b = count_groups(left), count_groups(right)
    return a ~= nil and b ~= nil and a + b < 8
end

local function is_name(text)
    if not text:find("^[%w._-]+$") or text:find("^%.") or text:find("..", 1, true) then
        return false
    end
    return not (text:find("-.", 1, true) or text:find("-$"))
end

--- Takes `host`, `host:port`, `[ipv6]` or `[ipv6]:port` apart, and does not look what the host is.
-- @tparam string text
-- @treturn string|nil host without brackets; nil where more than a port follows the brackets
-- @treturn string|nil digits of the port, "" where the colon stands alone, nil without one
-- @treturn boolean|nil whether there were brackets
-- @phases all
function _M.split(text)
    local host, rest = text:match("^%[([^%]]*)%](.*)$")
    if host then
        local port = rest:match("^:(%d*)$")
        if rest ~= "" and not port then
            return nil
        end
        return host, port, true
    end
    local name, port = text:match("^([^:]*):(%d*)$")
    return name or text, port, false
end

local function type_of(host, is_bracketed)
    if is_bracketed or host:find(":", 1, true) then
        return is_ipv6(host) and "ipv6"
    elseif host:find("^[%d.]+$") then
        return is_ipv4(host) and "ipv4"
    end
    return is_name(host) and "name"
end

--- Splits and checks `name`, `name:port`, `ipv4`, `ipv4:port`, `ipv6`, `[ipv6]` or `[ipv6]:port`.
-- @tparam string text
-- @treturn table|nil `{ type = "name"|"ipv4"|"ipv6", host =, port = }`, host without brackets
-- @treturn nil|string "invalid address" or "invalid port number"
-- @phases all
function _M.parse(text)
    if #text > MAX_LENGTH then
        return nil, "invalid address"
    end
    local host, digits, is_bracketed = _M.split(text)
    local kind = host and digits ~= "" and type_of(host, is_bracketed)
    if not kind then
        return nil, "invalid address"
    end
    local port = tonumber(digits)
    if port and port > MAX_PORT then
        return nil, "invalid port number"
    end
    return { type = kind, host = host, port = port }
end

--- Whether only this machine reaches the address of a listener.
-- @tparam string host as nginx's `listen` has it, without brackets
-- @treturn boolean
-- @phases all
function _M.is_loopback(host)
    return host == "localhost" or host:find("^127%.") ~= nil or host:find("^[0:]*:0*1$") ~= nil
end

--- Takes a URL apart (RFC 3986, section 3). Who it is for looks at the rest: what the scheme, the
-- host and the target may be.
-- @tparam string url
-- @treturn table|nil `{ scheme =, userinfo =, host =, port =, target = }`: scheme in lower case,
--   host without brackets, target all behind the authority; userinfo and port nil where there is
--   none
-- @treturn nil|string "missing scheme in url", "missing host in url" or "invalid address in url"
-- @phases all
function _M.parse_url(url)
    local scheme, rest = url:match("^(%a[%w+.-]*)://(.*)$")
    if not scheme then
        return nil, "missing scheme in url"
    end
    local authority, target = rest:match("^([^/?#]*)(.*)$")
    local userinfo, place = authority:match("^(.*)@(.*)$")
    local host, digits, is_bracketed = _M.split(place or authority)
    if host == "" then
        return nil, "missing host in url"
    elseif not host or (not is_bracketed and host:find(":", 1, true)) then
        return nil, "invalid address in url"
    end
    return {
        scheme = scheme:lower(),
        userinfo = userinfo,
        host = host,
        port = tonumber(digits),
        target = target,
    }
end

--- Wraps an IPv6 address in brackets, as nginx, URLs and Host headers write it.
-- @tparam string host with or without
-- @treturn string
-- @phases all
function _M.bracket(host)
    if host:find(":", 1, true) and host:sub(1, 1) ~= "[" then
        return "[" .. host .. "]"
    end
    return host
end

-- Ports that a URL or a Host header of the scheme leaves out.
local DEFAULT_PORTS = { http = 80, https = 443 }

--- The port of a scheme that names none.
-- @tparam string scheme
-- @treturn number|nil
-- @phases all
function _M.default_port(scheme)
    return DEFAULT_PORTS[scheme]
end

--- What a Host header says: the host, and the port where it is not the scheme's own.
-- @tparam string host with or without brackets
-- @tparam number port
-- @tparam string scheme
-- @treturn string
-- @phases all
function _M.authority(host, port, scheme)
    host = _M.bracket(host)
    return port == DEFAULT_PORTS[scheme] and host or host .. ":" .. port
end

--- Writes an address as `host:port`, IPv6 in brackets.
-- @tparam table address as returned by `parse`
-- @tparam number default_port used when the address has no port
-- @treturn string
function _M.format(address, default_port)
    return _M.bracket(address.host) .. ":" .. (address.port or default_port)
end

--- Whether a text is an IPv4 or IPv6 address without port or brackets.
-- @tparam string text
-- @treturn boolean
function _M.is_ip(text)
    return #text <= MAX_LENGTH and (is_ipv4(text) or is_ipv6(text))
end

--- Whether a text is an IP address or a range in CIDR notation.
-- @tparam string text
-- @treturn boolean
function _M.is_ip_or_cidr(text)
    local ip, bits = text:match("^([^/]+)/(%d%d?%d?)$")
    if not ip then
        return _M.is_ip(text)
    end
    bits = tonumber(bits)
    return _M.is_ip(ip) and bits <= (is_ipv4(ip) and 32 or 128)
end

--- The digits of an address.
-- @tparam string ip that `is_ip` takes
-- @treturn string hexadecimal, in small letters: 8 of IPv4, 32 of IPv6
-- @phases all
function _M.digits(ip)
    local head, a, b, c, d = ip:match("^(.-)(%d+)%.(%d+)%.(%d+)%.(%d+)$")
    if head == "" then
        return format("%02x%02x%02x%02x", a, b, c, d)
    elseif head then
        ip = format("%s%02x%02x:%02x%02x", head, a, b, c, d)
    end
    local left, right = ip:match("^(.-)::(.*)$")
    local groups = { {}, {} }
    for i, part in ipairs({ left or ip, right or "" }) do
        for group in part:gmatch("%x+") do
            insert(groups[i], ("0"):rep(4 - #group) .. group:lower())
        end
    end
    local between = ("0000"):rep(8 - #groups[1] - #groups[2])
    return concat(groups[1]) .. between .. concat(groups[2])
end

--- A host that needs no resolver, as nginx takes it.
-- @tparam string host name, IPv4 address, or IPv6 address with or without brackets
-- @treturn string|nil the address, IPv6 in brackets; nil of a name
-- @phases all
function _M.literal(host)
    local bare = _M.split(host)
    return bare and _M.is_ip(bare) and _M.bracket(bare) or nil
end

return _M
