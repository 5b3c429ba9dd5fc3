--- A radix tree of ranges of addresses, as sluice_ip_restriction_tree.c walks it: words of 32 bits.
--
-- The first word is an entry. An entry is the place of a node, in words, or with the highest bit
-- that of a leaf. A node is its depth, which says the digit (of 4 bits) that it looks at, and a bit
-- for each value that has an entry; the entries follow. A leaf is how many bits count, and the
-- bits. Digits in which all below a node agree have no node: what was skipped is compared at the
-- leaf.
-- @module plugins.ip-restriction.tree

local address = require("sluice.address")
local packed = require("sluice.ffi.packed")

local byte, format, sub = string.byte, string.format, string.sub
local floor = math.floor

local LEAF = 2 ^ 31
-- Of a digit in hexadecimal.
local DIGIT_BITS = 4

local _M = {}

local function digit(range, at)
    return tonumber(sub(range.digits, at + 1, at + 1), 16)
end

--- The digits with all bits cleared that do not count.
local function masked(digits, bits)
    local whole = floor(bits / DIGIT_BITS)
    if whole == #digits then
        return digits
    end
    local rest = 2 ^ (DIGIT_BITS - bits % DIGIT_BITS)
    local last = floor(tonumber(sub(digits, whole + 1, whole + 1), 16) / rest) * rest
    return sub(digits, 1, whole) .. format("%x", last) .. ("0"):rep(#digits - whole - 1)
end

--- Takes an address or a range apart. What is IPv4 in IPv6 (RFC 4291, 2.5.5.2) is IPv4.
-- @tparam string text
-- @treturn table `{ digits =, bits = }`: 8 or 32 hexadecimal digits
function _M.range(text)
    local ip, bits = text:match("^([^/]+)/(%d+)$")
    local digits = address.digits(ip or text)
    bits = tonumber(bits) or #digits * DIGIT_BITS
    if bits >= 96 and sub(digits, 1, 24) == ("0"):rep(20) .. "ffff" then
        digits, bits = sub(digits, 25), bits - 96
    end
    return { digits = masked(digits, bits), bits = bits }
end

local function contains(outer, inner)
    return outer.bits <= inner.bits and masked(inner.digits, outer.bits) == outer.digits
end

--- In order, without those that are in another.
local function disjoint(ranges)
    table.sort(ranges, function(a, b)
        if a.digits ~= b.digits then
            return a.digits < b.digits
        end
        return a.bits < b.bits
    end)
    local kept = {}
    for _, range in ipairs(ranges) do
        local last = kept[#kept]
        if not (last and contains(last, range)) then
            kept[#kept + 1] = range
        end
    end
    return kept
end

local function add_leaf(words, range)
    local place = #words
    words[place + 1] = range.bits
    for at = 1, #range.digits, 8 do
        words[#words + 1] = tonumber(sub(range.digits, at, at + 7), 16)
    end
    return LEAF + place
end

--- How many digits two have in common at their beginning.
local function common(a, b)
    for at = 1, #a do
        if byte(a, at) ~= byte(b, at) then
            return at - 1
        end
    end
    return #a
end

--- The values of the digit at a depth that a range has: several, where it ends within the digit.
local function values(range, depth)
    local first = digit(range, depth)
    local open = (depth + 1) * DIGIT_BITS - range.bits
    return first, first + (open > 0 and 2 ^ open or 1) - 1
end

local add

local function add_node(words, ranges, first, last)
    local depth = common(ranges[first].digits, ranges[last].digits)
    local place, mask, entries = #words, 0, {}
    local i = first
    while i <= last do
        local from, to = values(ranges[i], depth)
        local stop = i
        while stop < last and digit(ranges[stop + 1], depth) == from do
            stop = stop + 1
        end
        for value = from, to do
            mask = mask + 2 ^ value
            entries[#entries + 1] = { i, stop }
        end
        i = stop + 1
    end
    words[place + 1] = depth * 2 ^ 16 + mask
    for at = 1, #entries do
        words[place + 1 + at] = 0
    end
    local before, entry
    for at, group in ipairs(entries) do
        if group[1] ~= before then
            before, entry = group[1], add(words, ranges, group[1], group[2])
        end
        words[place + 1 + at] = entry
    end
    return place
end

-- The entry of some of the ranges.
function add(words, ranges, first, last)
    if first == last then
        return add_leaf(words, ranges[first])
    end
    return add_node(words, ranges, first, last)
end

--- The tree of ranges of one family.
-- @tparam {table,...} ranges of `range`; they are sorted
-- @treturn string "" where there are none
function _M.bytes(ranges)
    if #ranges == 0 then
        return ""
    end
    local kept, words = disjoint(ranges), { 0 }
    words[1] = add(words, kept, 1, #kept)
    local out = packed.new()
    for _, word in ipairs(words) do
        out:number(word)
    end
    return out:bytes()
end

return _M
