--- Host names and IP addresses with an optional port, as they stand in fields.
-- @module gateway.schema.address
-- @usage
-- local a = address.parse("[::1]:80") -- { type = "ipv6", host = "::1", port = 80 }

local ipairs = ipairs
local tonumber = tonumber

-- A name has 253 bytes (RFC 1035), an IPv6 address fewer; brackets and a port come to it. Beyond,
-- patterns that go back would cost the square of the length.
local MAX_LENGTH = 253 + #"[]:65535"

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

local function parse_port(text)
    local port = tonumber(text)
    if not port or port > 65535 then
        return nil, "invalid port number"
    end
    return port
end

--- Splits and checks `name`, `name:port`, `ipv4`, `ipv4:port`, `ipv6`, `[ipv6]`
-- or `[ipv6]:port`. Names are not resolved.
-- @tparam string text
-- @treturn table|nil `{ type = "name"|"ipv4"|"ipv6", host =, port = }`, host without brackets
-- @treturn nil|string "invalid address" or "invalid port number"
function _M.parse(text)
    if #text > MAX_LENGTH then
        return nil, "invalid address"
    end
    local host, port_text = text:match("^%[([%x:.]+)%]:?(%d*)$")
    local bracketed = host ~= nil
    if bracketed then
        if text:sub(-1) == ":" or (port_text ~= "" and not text:find("]:", 1, true)) then
            return nil, "invalid address"
        end
    elseif text:find(":.*:") then
        host, port_text = text, ""
    else
        host, port_text = text:match("^([^:]*):(%d+)$")
        if not host then
            host, port_text = text, ""
        end
    end
    local kind
    if bracketed or host:find(":", 1, true) then
        kind = is_ipv6(host) and "ipv6"
    elseif host:find("^[%d.]+$") then
        kind = is_ipv4(host) and "ipv4"
    else
        kind = is_name(host) and "name"
    end
    if not kind then
        return nil, "invalid address"
    end
    local port, err
    if port_text ~= "" then
        port, err = parse_port(port_text)
        if not port then
            return nil, err
        end
    end
    return { type = kind, host = host, port = port }
end

--- Writes an address as `host:port`, IPv6 in brackets.
-- @tparam table address as returned by `parse`
-- @tparam number default_port used when the address has no port
-- @treturn string
function _M.format(address, default_port)
    local host = address.type == "ipv6" and "[" .. address.host .. "]" or address.host
    return host .. ":" .. (address.port or default_port)
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

return _M
