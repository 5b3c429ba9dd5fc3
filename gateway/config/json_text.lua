--- JSON text to Lua tables, with errors that say where. A large text is decoded piece by piece, so
-- that others have their turn meanwhile: cjson takes up to 40 ms a megabyte.
--
-- Where pieces end is told by quotes, brackets and commas alone. cjson gets each in brackets of its
-- own, and refuses what is no JSON.
-- @module gateway.config.json_text

local cjson = require("cjson")
local json_keys = require("gateway.config.json_keys")
local yaml = require("gateway.config.yaml")

local byte = string.byte
local find = string.find
local format = string.format
local sub = string.sub

local MAX_DEPTH = yaml.MAX_DEPTH
-- Bytes after which a piece ends.
local PIECE = 64 * 1024

local QUOTE, COMMA = byte('",', 1, 2)
local OPEN_OBJECT, CLOSE_OBJECT, OPEN_LIST, CLOSE_LIST = byte("{}[]", 1, 4)

local json = cjson.new()
json.decode_invalid_numbers(false)
json.decode_max_depth(MAX_DEPTH)

local _M = {}

local function refuse(message, offset)
    error({ message = message, offset = offset }, 0)
end

-- What a piece says; `offset` of its text in the whole, behind a head that is not of it.
local function decode_piece(head, text, tail, offset)
    local ok, value = pcall(json.decode, head .. text .. tail)
    if ok then
        return value
    end
    local message, at = value:match("^(.-) at character (%d+)")
    refuse(message or value, at and offset + tonumber(at) - #head - 1)
end

local function must_be_blank(source, from, to)
    local at = find(source, "[^ \t\r\n]", from)
    if at and at <= to then
        refuse("Expected comma or end", at)
    end
end

-- `self` holds the lists and objects that are open, outer ones first. Each has `at`, its bracket;
-- `comma`, the last one, or its bracket; `from`, where that begins which it has not taken yet. One
-- that is long, or holds such a one, has a `value`; `is_outer` while that in it is open, whose name
-- is `key`; `is_after` behind that, until a comma comes.

-- Takes the members from `open.from` to a place: one at least.
local function take(self, open, to)
    local text, value = sub(self.source, open.from, to), open.value
    local found
    if open.is_list then
        found = decode_piece("[", text, "]", open.from)
        for i = 1, #found do
            value[#value + 1] = found[i]
        end
    else
        found = decode_piece("{", text, "}", open.from)
        for key, item in pairs(found) do
            value[key] = item
        end
    end
    if next(found) == nil then
        refuse("Expected value", to + 1)
    end
    open.from = to + 2
    self.pause()
end

-- Gives a value to the innermost, and to those around it with what stands before it in them.
local function begin(self)
    for i = 1, self.depth do
        local open, inner = self[i], self[i + 1]
        open.value = open.value or {}
        if i < self.depth and not open.is_outer then
            if open.is_after then
                refuse("Expected comma or end", inner.at)
            elseif open.comma >= open.from then
                take(self, open, open.comma - 1)
            end
            if open.is_list then
                must_be_blank(self.source, open.from, inner.at - 1)
            else
                local name = sub(self.source, open.from, inner.at - 1)
                open.key = next(decode_piece("{", name, "null}", open.from))
            end
            open.is_outer = true
        end
    end
end

local function on_open(self, at, is_list)
    self.depth = self.depth + 1
    if self.depth > MAX_DEPTH then
        refuse(format("Found too many nested data structures (%d)", self.depth), at)
    end
    -- One table a depth: to make one for each small list would be most of the memory.
    local open = self[self.depth] or {}
    self[self.depth] = open
    open.at, open.comma, open.from, open.is_list = at, at, at + 1, is_list
    open.value, open.is_outer, open.is_after = nil, false, false
end

local function on_comma(self, at)
    local open = self[self.depth]
    if open.is_after then
        must_be_blank(self.source, open.from, at - 1)
        open.is_after, open.from = false, at + 1
    elseif at - open.from > self.piece then
        begin(self)
        take(self, open, at - 1)
    end
    open.comma = at
end

local function on_close(self, at, is_list)
    local open = self[self.depth]
    if open.is_list ~= is_list then
        refuse("Expected comma or end", at)
    end
    if open.value or self.depth == 1 or at - open.at > self.piece then
        begin(self)
        if open.is_after then
            must_be_blank(self.source, open.from, at - 1)
        elseif open.from > open.at + 1 or find(self.source, "[^ \t\r\n]", open.from) < at then
            take(self, open, at - 1)
        end
        local outer = self[self.depth - 1]
        if outer then
            outer.value[outer.is_list and #outer.value + 1 or outer.key] = open.value
            outer.is_outer, outer.is_after, outer.from = false, true, at + 1
        end
    end
    self.depth = self.depth - 1
    return open.value
end

-- Decodes what begins with a bracket.
local function walk(self)
    local source = self.source
    local at = find(source, "[^ \t\r\n]")
    local size = #source
    while at <= size do
        local char = byte(source, at)
        if char == QUOTE then
            at = json_keys.string_end(source, at) or refuse("Expected the end of a string", at)
        elseif char == OPEN_OBJECT or char == OPEN_LIST then
            on_open(self, at, char == OPEN_LIST)
        elseif char == COMMA then
            on_comma(self, at)
        elseif char == CLOSE_OBJECT or char == CLOSE_LIST then
            local value = on_close(self, at, char == CLOSE_LIST)
            if self.depth == 0 then
                local more = find(source, "[^ \t\r\n]", at + 1)
                return not more and value or refuse("Expected the end", more)
            end
        end
        at = at + 1
    end
    refuse("Expected comma or end but found T_END", size + 1)
end

local function decode(source, pause, piece)
    if #source <= piece or not find(source, "^[ \t\r\n]*[{%[]") then
        return decode_piece("", source, "", 1)
    end
    return walk({ source = source, pause = pause, piece = piece, depth = 0 })
end

local function go_on() end

--- Decodes a text without NUL bytes, in which no key of an object may have two values. Linear, some
-- 20 ms a megabyte.
-- @tparam string source
-- @tparam[opt] function pause called every few milliseconds, may yield; a table with `is_stop` that
-- it throws comes through
-- @tparam[opt] number piece bytes after which a piece ends, for tests
-- @treturn any|nil value; null is `cjson.null`
-- @treturn nil|table `{ message =, offset = from 1 }`, of a duplicate key with `path`, `key` and
-- `first`, another offset
function _M.decode(source, pause, piece)
    pause = pause or go_on
    local ok, value = pcall(decode, source, pause, piece or PIECE)
    if not ok then
        if type(value) ~= "table" or value.is_stop then
            error(value, 0)
        end
        return nil, value
    end
    local double = json_keys.find_double(source, pause)
    if not double then
        return value
    end
    double.message = format("duplicate key '%s'", double.key)
    return nil, double
end

return _M
