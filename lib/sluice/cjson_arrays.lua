--- A `cjson` with what OpenResty's has and Debian's has not: `array_mt`, `empty_array_mt`,
-- `empty_array`, `decode_array_with_array_mt`, `encode_empty_table_as_object`, and 16 digits.
--
-- C does the work wherever none of these is used. A value is looked through first, and one that has
-- such a metatable is written here. Each instance has settings of its own, so that what one user
-- switches is no other's.
-- @module sluice.cjson_arrays
-- @usage
-- local cjson = require("sluice.cjson_arrays").new()
-- cjson.encode(setmetatable({}, cjson.array_mt)) -- []

local cjson = require("cjson")
local cjson_safe = require("cjson.safe")

local abs = math.abs
local byte = string.byte
local concat = table.concat
local error = error
local find = string.find
local floor = math.floor
local format = string.format
local getmetatable = getmetatable
local gsub = string.gsub
local next = next
local pairs = pairs
local pcall = pcall
local rawget = rawget
local setmetatable = setmetatable
local sub = string.sub
local tostring = tostring
local type = type

local _M = {}

local NULL = cjson.null
local QUOTE, BACKSLASH = byte('"\\', 1, 2)
local MAX_DEPTH = 1000
-- What C can write of a number.
local C_DIGITS, MAX_DIGITS = 14, 16
-- The first whole number that has more.
local LONG = 1e14

-- One for all instances, as there: libraries compare them.
local ARRAY = { __name = "json array" }
local EMPTY_ARRAY = { __name = "empty json array" }
-- Equal to itself alone, and no table.
local EMPTY = newproxy(false)

--- Encodes as an array, whatever it has: `cjson.array_mt`.
_M.array_mt = ARRAY
--- Encodes as an array where it is empty: `cjson.empty_array_mt`.
_M.empty_array_mt = EMPTY_ARRAY

--- An array without elements: `cjson.empty_array`.
_M.empty_array = EMPTY

-- C's errors, without the line here.
local function checked(ok, found)
    if not ok then
        error(found, 0)
    end
    return found
end

-- Encoding ----------------------------------------------------------------------------------------

-- Whether C cannot write a value as it has to be.
local function is_special(self, value, depth)
    if value == EMPTY then
        return true
    elseif type(value) == "number" then
        local is_short = floor(value) == value and abs(value) < LONG
        return self.digits > C_DIGITS and not is_short
    elseif type(value) ~= "table" then
        return false
    elseif depth > MAX_DEPTH then
        -- C has the words for it.
        return false
    end
    local mt = getmetatable(value)
    if mt == ARRAY or (mt == EMPTY_ARRAY and next(value) == nil) then
        return true
    elseif not self.empty_is_object and next(value) == nil then
        return true
    end
    for _, inner in pairs(value) do
        if is_special(self, inner, depth + 1) then
            return true
        end
    end
    return false
end

local write

local function write_list(self, out, list, count, depth)
    out[#out + 1] = "["
    for i = 1, count do
        if i > 1 then
            out[#out + 1] = ","
        end
        local value = rawget(list, i)
        if value == nil then
            out[#out + 1] = "null"
        else
            write(self, out, value, depth + 1)
        end
    end
    out[#out + 1] = "]"
end

local function write_map(self, out, map, depth)
    local is_first = true
    out[#out + 1] = "{"
    for key, value in pairs(map) do
        if type(key) ~= "string" and type(key) ~= "number" then
            error("Cannot serialise table: table key must be a number or string", 0)
        end
        out[#out + 1] = is_first and "" or ","
        out[#out + 1] = self.c.encode(tostring(key))
        out[#out + 1] = ":"
        write(self, out, value, depth + 1)
        is_first = false
    end
    out[#out + 1] = "}"
end

-- The length of what has the keys 1 to n alone, as C finds it; nil: it is a map.
local function length_of(self, value)
    local highest, count = 0, 0
    for key in pairs(value) do
        if type(key) ~= "number" or key < 1 or floor(key) ~= key then
            return nil
        end
        highest = key > highest and key or highest
        count = count + 1
    end
    local sparse = self.sparse
    if sparse.ratio > 0 and highest > count * sparse.ratio and highest > sparse.safe then
        if not sparse.convert then
            error("Cannot serialise table: excessively sparse array", 0)
        end
        return nil
    end
    return highest
end

-- How long what is an array for sure is.
local function highest_of(list)
    local highest = 0
    for key in pairs(list) do
        if type(key) == "number" and key > highest and floor(key) == key then
            highest = key
        end
    end
    return highest
end

local function write_table(self, out, value, depth)
    if depth > self.max_depth then
        error(format("Cannot serialise, excessive depth (%d)", depth), 0)
    end
    local mt = getmetatable(value)
    if mt == ARRAY then
        return write_list(self, out, value, highest_of(value), depth)
    elseif next(value) == nil then
        local is_list = mt == EMPTY_ARRAY or not self.empty_is_object
        out[#out + 1] = is_list and "[]" or "{}"
        return nil
    end
    local length = length_of(self, value)
    if length then
        return write_list(self, out, value, length, depth)
    end
    return write_map(self, out, value, depth)
end

write = function(self, out, value, depth)
    if value == EMPTY then
        out[#out + 1] = "[]"
    elseif type(value) == "table" then
        write_table(self, out, value, depth)
    elseif type(value) == "number" and self.digits > C_DIGITS and value - value == 0 then
        out[#out + 1] = format("%." .. self.digits .. "g", value)
    else
        out[#out + 1] = checked(pcall(self.c.encode, value))
    end
end

local function encode(self, value)
    local text
    if is_special(self, value, 0) then
        local out = {}
        write(self, out, value, 1)
        text = concat(out)
    else
        text = checked(pcall(self.c.encode, value))
    end
    if not self.escapes_slashes then
        text = gsub(text, "\\(.)", { ["/"] = "/" })
    end
    return text
end

-- Decoding ----------------------------------------------------------------------------------------

-- Behind a string that begins at a quote.
local function behind_string(text, at)
    at = at + 1
    while true do
        local found = find(text, '["\\]', at)
        if not found then
            return #text + 1
        elseif byte(text, found) == QUOTE then
            return found + 1
        end
        at = found + (byte(text, found) == BACKSLASH and 2 or 1)
    end
end

-- The text with a word in each array that has nothing: C's tables do not tell it from an object.
local function with_marks(text, mark)
    local out, from, at = {}, 1, 1
    while true do
        local found = find(text, '["%[]', at)
        if not found then
            break
        elseif byte(text, found) == QUOTE then
            at = behind_string(text, found)
        else
            local _, last = find(text, "^%s*%]", found + 1)
            if last then
                out[#out + 1] = sub(text, from, found)
                out[#out + 1] = mark
                from = last
            end
            at = (last or found) + 1
        end
    end
    if from == 1 then
        return text
    end
    out[#out + 1] = sub(text, from)
    return concat(out)
end

-- A word that a text does not have.
local function word_for(text)
    local number = 0
    local word
    repeat
        word = "array" .. number
        number = number + 1
    until not find(text, word, 1, true)
    return word
end

local function mark_arrays(value, word)
    if type(value) ~= "table" then
        return
    end
    local first = value[1]
    if first ~= nil then
        setmetatable(value, ARRAY)
        if first == word then
            value[1] = nil
            return
        end
    end
    for _, inner in pairs(value) do
        mark_arrays(inner, word)
    end
end

local function decode(self, text)
    if not self.marks_arrays or type(text) ~= "string" then
        return checked(pcall(self.c.decode, text))
    end
    local word = word_for(text)
    local value = checked(pcall(self.c.decode, with_marks(text, '"' .. word .. '"')))
    mark_arrays(value, word)
    return value
end

-- Instances ---------------------------------------------------------------------------------------

-- A switch of C's, whose value has to be known here, too.
local function with_sparse(self)
    return function(convert, ratio, safe)
        local now = self.sparse
        if convert ~= nil then
            now.convert = convert
        end
        now.ratio, now.safe = ratio or now.ratio, safe or now.safe
        return self.c.encode_sparse_array(now.convert, now.ratio, now.safe)
    end
end

local function with_digits(self)
    return function(digits)
        if digits ~= nil then
            if type(digits) ~= "number" or digits < 1 or digits > MAX_DIGITS then
                local message = "bad argument #1 to 'encode_number_precision' "
                    .. "(expected integer between 1 and 16)"
                error(message, 2)
            end
            self.digits = floor(digits)
            self.c.encode_number_precision(self.digits < C_DIGITS and self.digits or C_DIGITS)
        end
        return self.digits
    end
end

local function with_depth(self)
    return function(depth)
        self.max_depth = self.c.encode_max_depth(depth)
        return self.max_depth
    end
end

local function flag(self, name)
    return function(value)
        if value ~= nil then
            self[name] = value == true or value == "on"
        end
        return self[name]
    end
end

-- Calls a function in the way of an instance: errors are thrown, where the caller stands, or
-- returned behind nil.
local function finished(is_safe, fn, self)
    return function(value)
        local ok, found = pcall(fn, self, value)
        if ok then
            return found
        elseif is_safe then
            return nil, found
        end
        return error(found, 2)
    end
end

--- A new instance. Does not yield.
-- @tparam[opt=false] boolean is_safe errors are returned behind nil, as `cjson.safe` does
-- @treturn table the interface of lua-cjson 2.1.0 of OpenResty
-- @phases any
function _M.new(is_safe)
    local self = {
        c = cjson.new(),
        digits = C_DIGITS,
        max_depth = MAX_DEPTH,
        sparse = { convert = false, ratio = 2, safe = 10 },
        empty_is_object = true,
        marks_arrays = false,
        escapes_slashes = true,
    }
    local found = {
        _NAME = cjson._NAME,
        _VERSION = cjson._VERSION,
        null = NULL,
        array_mt = ARRAY,
        empty_array_mt = EMPTY_ARRAY,
        empty_array = EMPTY,
        encode_empty_table_as_object = flag(self, "empty_is_object"),
        decode_array_with_array_mt = flag(self, "marks_arrays"),
        encode_escape_forward_slash = flag(self, "escapes_slashes"),
        encode_number_precision = with_digits(self),
        encode_sparse_array = with_sparse(self),
        encode_max_depth = with_depth(self),
    }
    for name, value in pairs(self.c) do
        found[name] = found[name] == nil and value or found[name]
    end
    found.encode = finished(is_safe, encode, self)
    found.decode = finished(is_safe, decode, self)
    found._NAME = is_safe and cjson_safe._NAME or found._NAME
    function found.new()
        return _M.new(is_safe)
    end
    return found
end

return _M
