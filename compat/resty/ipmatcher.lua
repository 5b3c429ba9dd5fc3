--- lua-resty-ipmatcher's sets of IP addresses and ranges, with a value for each or without.
--
-- The most specific range that has an address counts. Building takes time with the number of
-- ranges, matching with the number of different lengths of prefixes.
-- @module resty.ipmatcher
-- @usage
-- local matcher = assert(ipmatcher.new({ "127.0.0.1", "10.0.0.0/8", "::1", "fe80::/32" }))
-- local found, err = matcher:match("10.1.2.3")

local bit = require("bit")
local ffi = require("ffi")

local error = error
local ipairs = ipairs
local pairs = pairs
local setmetatable = setmetatable
local sort = table.sort
local sub = string.sub
local tonumber = tonumber
local tostring = tostring
local type = type

-- By a name of its own: others in this Lua may have declared it, too.
ffi.cdef([[
    int compat_inet_pton(int family, const char *text, void *address) __asm__("inet_pton");
]])

local C = ffi.C

-- Linux's numbers, and bytes of an address.
local AF_INET, AF_INET6 = 2, 10
local V4_BYTES, V6_BYTES = 4, 16

local _M = { _VERSION = 0.3 }
local mt = { __index = _M }

local address = ffi.new("uint8_t[16]")
local key = ffi.new("uint8_t[16]")

-- Reads a text into `address`; its length in bytes, nil of what is no address.
local function read(text)
    -- C would stop at a zero byte, and an address has no 64 characters.
    if type(text) ~= "string" or #text > 64 or text:find("%z") then
        return nil
    elseif C.compat_inet_pton(AF_INET, text, address) == 1 then
        return V4_BYTES
    end
    text = text:match("^%[(.*)%]$") or text
    return C.compat_inet_pton(AF_INET6, text, address) == 1 and V6_BYTES or nil
end

-- The prefix of `address` of so many bits, as a string.
local function prefix(bits)
    local bytes = bit.rshift(bits, 3)
    local rest = bit.band(bits, 7)
    ffi.copy(key, address, bytes)
    if rest > 0 then
        key[bytes] = bit.band(address[bytes], bit.lshift(0xff, 8 - rest))
        bytes = bytes + 1
    end
    return ffi.string(key, bytes)
end

--- Splits a range.
-- @tparam string text "10.0.0.0/8", or an address
-- @treturn string the address
-- @treturn number|nil bits of the prefix; nil without a slash, and of what is no number
-- @phases any
function _M.split_ip(text)
    local ip, bits = text:match("^([^/]*)/(.*)$")
    if not ip then
        return text
    end
    return ip, tonumber(bits)
end

-- Groups of one number in host order, as lua-resty-ipmatcher gives them.
local function words(count)
    local found = {}
    for i = 0, count - 1 do
        local at = i * 4
        found[i + 1] = ((address[at] * 256 + address[at + 1]) * 256 + address[at + 2]) * 256
            + address[at + 3]
    end
    return found
end

--- The number of an IPv4 address.
-- @treturn number|false
-- @phases any
function _M.parse_ipv4(text)
    return read(text) == V4_BYTES and words(1)[1]
end

--- The four numbers of an IPv6 address.
-- @treturn table|false
-- @phases any
function _M.parse_ipv6(text)
    return read(text) == V6_BYTES and words(4)
end

-- Ranges of one family by the bits of their prefixes, and these bits from the longest.
local function new_family()
    return { lengths = {}, by_length = {} }
end

local function add(family, bits, value)
    local known = family.by_length[bits]
    if not known then
        known = {}
        family.by_length[bits] = known
        family.lengths[#family.lengths + 1] = bits
    end
    known[prefix(bits)] = value
end

local function add_text(self, text, value)
    if type(text) ~= "string" then
        return nil, "invalid ip address: " .. tostring(text)
    end
    local ip, bits = _M.split_ip(text)
    local bytes = read(ip)
    local has_bits = ip ~= text
    local is_whole = bits and bits % 1 == 0 and bits >= 0 and bits <= (bytes or 0) * 8
    if not bytes or (has_bits and not is_whole) then
        return nil, "invalid ip address: " .. (bytes and text or ip)
    end
    add(bytes == V4_BYTES and self.v4 or self.v6, bits or bytes * 8, value)
    return true
end

local function longest_first(a, b)
    return a > b
end

local function new(ips, has_values)
    if type(ips) ~= "table" then
        error("missing valid ip argument", 3)
    end
    local self = setmetatable({ v4 = new_family(), v6 = new_family() }, mt)
    for index, given in (has_values and pairs or ipairs)(ips) do
        local ok, err = add_text(self, has_values and index or given, not has_values or given)
        if not ok then
            return nil, err
        end
    end
    sort(self.v4.lengths, longest_first)
    sort(self.v6.lengths, longest_first)
    return self
end

--- Makes a set.
-- @tparam {string,...} ips addresses, and ranges in CIDR notation
-- @treturn table|nil
-- @treturn string|nil "invalid ip address: ..."
-- @phases any
function _M.new(ips)
    return new(ips, false)
end

--- Makes a set with a value for each range.
-- @tparam table ips address or range -> value
-- @treturn table|nil
-- @treturn string|nil "invalid ip address: ..."
-- @phases any
function _M.new_with_value(ips)
    return new(ips, true)
end

-- The value for what `address` has.
local function find(self, bytes)
    local family = bytes == V4_BYTES and self.v4 or self.v6
    for _, bits in ipairs(family.lengths) do
        local value = family.by_length[bits][prefix(bits)]
        if value ~= nil then
            return value
        end
    end
    return false
end

--- Looks whether an address is in the set.
-- @tparam string ip IPv6 also in brackets
-- @treturn any true, or the value of the range; false: it is not
-- @treturn string|nil "invalid ip address, not ipv4 and ipv6"
-- @phases any
function _M:match(ip)
    local bytes = read(ip)
    if not bytes then
        return false, "invalid ip address, not ipv4 and ipv6"
    end
    return find(self, bytes)
end

--- The same of an address in 4 or 16 bytes, such as `$binary_remote_addr`.
-- @phases any
function _M:match_bin(ip)
    local bytes = type(ip) == "string" and #ip or 0
    if bytes ~= V4_BYTES and bytes ~= V6_BYTES then
        return false, "invalid ip address, not ipv4 and ipv6"
    end
    ffi.copy(address, sub(ip, 1, bytes), bytes)
    return find(self, bytes)
end

return _M
