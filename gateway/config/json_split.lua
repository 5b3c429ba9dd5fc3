--- Splits a declarative file in JSON into the elements of its lists and the rest, its *frame*,
-- without decoding it: what of it has not changed need not be read again (gateway.config.reuse).
--
-- It goes by quotes, brackets and commas alone, at some 2 ms a megabyte, and refuses what is no
-- plain object of lists of objects. Whether an element is JSON it does not know: where the frame
-- with some elements is, they are objects of their own there.
-- @module gateway.config.json_split

local crypto = require("sluice.ffi.libcrypto")
local ffi = require("ffi")

local byte = string.byte

-- With a name of ours: others may have declared it with types of their own.
ffi.cdef([[
void *gateway_split_find(const void *text, int byte, size_t size) __asm__("memchr");
]])

local C = ffi.C

local QUOTE, BACKSLASH, COMMA, COLON = byte('"\\,:', 1, 4)
local OPEN_OBJECT, CLOSE_OBJECT, OPEN_LIST, CLOSE_LIST = byte("{}[]", 1, 4)
local BLANKS = {}
for _, char in ipairs({ byte(" \t\r\n", 1, 4) }) do
    BLANKS[char] = true
end

-- Elements between two pauses.
local STRIDE = 64
-- Bytes of a digest that are kept.
local DIGEST_BYTES = 16

local bytes = ffi.typeof("const uint8_t *")

local _M = {}

-- Where a string ends that begins there: at its last quote; nil: nowhere.
local function string_end(text, at, size)
    while true do
        local found = C.gateway_split_find(text + at + 1, QUOTE, size - at - 1)
        if found == nil then
            return nil
        end
        at = tonumber(ffi.cast(bytes, found) - text)
        local before = at - 1
        while text[before] == BACKSLASH do
            before = before - 1
        end
        if (at - before) % 2 == 1 then
            return at
        end
    end
end

-- Where a list or an object ends, at its last bracket; nil: nowhere.
local function bracket_end(text, at, size)
    local depth = 0
    while at < size do
        local char = text[at]
        if char == QUOTE then
            at = string_end(text, at, size)
            if not at then
                return nil
            end
        elseif char == OPEN_OBJECT or char == OPEN_LIST then
            depth = depth + 1
        elseif char == CLOSE_OBJECT or char == CLOSE_LIST then
            depth = depth - 1
            if depth == 0 then
                return at
            end
        end
        at = at + 1
    end
    return nil
end

-- The next byte that is no blank, and its place; nil: the text ends before.
local function next_byte(text, at, size)
    while at < size and BLANKS[text[at]] do
        at = at + 1
    end
    if at < size then
        return text[at], at
    end
    return nil, at
end

-- Where a value ends that is no list to be split.
local function value_end(text, at, size)
    local char = text[at]
    if char == QUOTE then
        return string_end(text, at, size)
    elseif char == OPEN_OBJECT or char == OPEN_LIST then
        return bracket_end(text, at, size)
    end
    while at < size and not BLANKS[char] and char ~= COMMA and char ~= CLOSE_OBJECT do
        at = at + 1
        char = at < size and text[at] or COMMA
    end
    return at - 1
end

-- The elements of the list that begins there, and where it ends; nil: they are no objects.
local function split_list(text, at, size, pause)
    local list = { from = {}, size = {} }
    local char, first = next_byte(text, at + 1, size)
    at = first
    while char ~= CLOSE_LIST do
        local last = char == OPEN_OBJECT and bracket_end(text, at, size)
        if not last then
            return nil
        end
        local count = #list.from + 1
        list.from[count], list.size[count] = at, last + 1 - at
        char, at = next_byte(text, last + 1, size)
        if char == COMMA then
            char, at = next_byte(text, at + 1, size)
            if char == CLOSE_LIST then
                return nil
            end
        elseif char ~= CLOSE_LIST then
            return nil
        end
        if count % STRIDE == 0 then
            pause()
        end
    end
    return list, at
end

-- The key that begins there, and where its value does.
local function key_at(text, at, size)
    local last = text[at] == QUOTE and string_end(text, at, size)
    if not last then
        return nil
    end
    local char, colon = next_byte(text, last + 1, size)
    if char ~= COLON then
        return nil
    end
    local value, begin = next_byte(text, colon + 1, size)
    return value and ffi.string(text + at + 1, last - at - 1), begin
end

--- Splits a text.
-- @tparam cdata text `const uint8_t *`
-- @tparam number size its bytes
-- @tparam table is_split name -> whether the list of that name is to be split
-- @tparam function pause called every few elements; may throw
-- @treturn table|nil `lists`: name -> `{ from =, size = }`, arrays of places, from 0, and bytes;
-- `order`, their names as they stand; `frame`, one more text than lists: what stands around them.
-- nil: it is not to be split
function _M.split(text, size, is_split, pause)
    local found, from = { lists = {}, order = {}, frame = {} }, 0
    local char, at = next_byte(text, 0, size)
    if char ~= OPEN_OBJECT then
        return nil
    end
    repeat
        local _, first = next_byte(text, at + 1, size)
        if first >= size then
            return nil
        end
        local key, begin = key_at(text, first, size)
        if not key then
            return nil
        end
        if is_split[key] and text[begin] == OPEN_LIST then
            local list
            list, at = split_list(text, begin, size, pause)
            if not list or found.lists[key] then
                return nil
            end
            found.lists[key] = list
            found.order[#found.order + 1] = key
            found.frame[#found.frame + 1] = ffi.string(text + from, begin + 1 - from)
            from = at
        else
            at = value_end(text, begin, size)
        end
        if not at then
            return nil
        end
        char, at = next_byte(text, at + 1, size)
    until char ~= COMMA
    if char ~= CLOSE_OBJECT or next_byte(text, at + 1, size) then
        return nil
    end
    found.frame[#found.frame + 1] = ffi.string(text + from, size - from)
    return found
end

--- Whether a text has a byte.
-- @tparam cdata text
-- @tparam number size its bytes
-- @tparam number char
-- @treturn boolean
function _M.has_byte(text, size, char)
    return C.gateway_split_find(text, char, size) ~= nil
end

local digest = ffi.new("uint8_t[64]")
local context

--- Adds a digest of each element to the lists of `split`: `digests`, arrays of strings of 16 bytes.
-- @tparam cdata text
-- @tparam table found of `split`
-- @tparam function pause as of `split`
function _M.digest(text, found, pause)
    local sha256 = crypto.digest("sha256")
    context = context or ffi.gc(crypto.C.EVP_MD_CTX_new(), crypto.C.EVP_MD_CTX_free)
    for _, list in pairs(found.lists) do
        local digests = {}
        for i = 1, #list.from do
            crypto.C.EVP_DigestInit_ex(context, sha256, nil)
            crypto.C.EVP_DigestUpdate(context, text + list.from[i], list.size[i])
            crypto.C.EVP_DigestFinal_ex(context, digest, nil)
            digests[i] = ffi.string(digest, DIGEST_BYTES)
            if i % STRIDE == 0 then
                pause()
            end
        end
        list.digests = digests
    end
end

return _M
