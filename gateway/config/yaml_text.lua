--- JSON of the store as YAML in block style, for people to read and edit.
--
-- Numbers and strings are taken as they are written, so that nothing is lost on the way: a string
-- is plain where YAML cannot take it for anything else, a block where it has lines, such as a
-- certificate, else quoted as in JSON; what YAML 1.1 does not print is escaped.
-- @module gateway.config.yaml_text

local cjson = require("cjson")
local string_buffer = require("string.buffer")

local byte = string.byte
local char = string.char
local find = string.find
local format = string.format
local gsub = string.gsub
local lower = string.lower
local rep = string.rep
local sub = string.sub

local QUOTE, COLON = byte('":', 1, 2)
local OPEN_OBJECT, OPEN_LIST = byte("{[", 1, 2)

-- What YAML takes for something else than a string, in any case of letters.
local RESERVED = {}
for word in ("true false yes no on off null y n"):gmatch("%S+") do
    RESERVED[word] = true
end

-- Bytes of a key that can stand before its colon; libyaml takes 1024 characters, quotes included.
local MAX_SIMPLE_KEY = 1000

local _M = {}

-- Where the next thing begins.
local function skip(text, at)
    return find(text, "[^ \n\r\t]", at)
end

-- A string with its quotes, and where it has ended.
local function string_at(text, at)
    local from = at + 1
    while true do
        local stop = find(text, '["\\]', from)
        if byte(text, stop) == QUOTE then
            return sub(text, at, stop), stop + 1
        end
        from = stop + 2
    end
end

-- What a reader of YAML refuses, or takes for the end of a line or for nothing: U+0080 to U+009F,
-- U+2028 and U+2029, U+FEFF, U+FFFE and U+FFFF (YAML 1.1, 5.1 and 5.4). Patterns of their bytes.
local UNPRINTABLE =
    { "\194[\128-\159]", "\226\128[\168\169]", "\239\187\191", "\239\191[\190\191]" }

local ESCAPES = {
    ["\226\128\168"] = "\\u2028",
    ["\226\128\169"] = "\\u2029",
    ["\239\187\191"] = "\\ufeff",
    ["\239\191\190"] = "\\ufffe",
    ["\239\191\191"] = "\\uffff",
}
for code = 0x80, 0x9f do
    ESCAPES[char(0xc2, code)] = format("\\u%04x", code)
end

local function printable(quoted)
    if find(quoted, "[\194\226\239]") then
        for _, pattern in ipairs(UNPRINTABLE) do
            quoted = gsub(quoted, pattern, ESCAPES)
        end
    end
    return quoted
end

local function is_plain(inner)
    return find(inner, "^[%a_/][%w_./-]*$") ~= nil and not RESERVED[lower(inner)]
end

-- Lines that a block can hold, with one newline at the end or none.
local function is_block(value)
    return find(value, "^[\33-\126][\n\32-\126]*$") ~= nil and not find(value, "\n\n$")
end

local function put_block(out, value, indent)
    local has_end = sub(value, -1) == "\n"
    out:put(has_end and "|" or "|-")
    for line in (has_end and value or value .. "\n"):gmatch("(.-)\n") do
        out:put("\n", line ~= "" and rep(" ", indent) or "", line)
    end
end

-- `indent` of its lines; nil: it stands in one.
local function put_string(out, quoted, indent)
    local inner = sub(quoted, 2, -2)
    if is_plain(inner) then
        out:put(inner)
        return
    end
    local value = indent and find(inner, "\\n", 1, true) and cjson.decode("[" .. quoted .. "]")[1]
    if value and is_block(value) then
        put_block(out, value, indent)
    else
        out:put(printable(quoted))
    end
end

-- With its colon, in a column.
local function put_key(out, quoted, column)
    quoted = printable(quoted)
    if #quoted <= MAX_SIMPLE_KEY then
        put_string(out, quoted)
        out:put(":")
    else
        out:put("? ")
        put_string(out, quoted)
        out:put("\n", rep(" ", column), ":")
    end
end

local put_value

-- The members of an object or a list from a place on, the first where the line stands already.
-- Where that has ended.
local function put_members(out, text, at, indent, is_list)
    local is_first = true
    repeat
        if not is_first then
            out:put("\n", rep(" ", indent))
        end
        is_first = false
        if is_list then
            out:put("- ")
            at = put_value(out, text, at, indent + 2, true)
        else
            local key
            key, at = string_at(text, at)
            put_key(out, key, indent)
            at = skip(text, at)
            assert(byte(text, at) == COLON, "no colon")
            at = put_value(out, text, skip(text, at + 1), indent, false)
        end
        at = skip(text, at)
        local is_last = sub(text, at, at) ~= ","
        at = not is_last and skip(text, at + 1) or at + 1
    until is_last
    return at
end

-- A value; `in_list`: it stands behind a dash, else behind a colon. Where it has ended.
put_value = function(out, text, at, indent, in_list)
    local first = byte(text, at)
    local blank = in_list and "" or " "
    if first == QUOTE then
        local quoted, stop = string_at(text, at)
        out:put(blank)
        put_string(out, quoted, in_list and indent or indent + 2)
        return stop
    elseif first ~= OPEN_OBJECT and first ~= OPEN_LIST then
        local stop = find(text, "[,%]}%s]", at)
        out:put(blank, sub(text, at, stop - 1))
        return stop
    end
    local is_list = first == OPEN_LIST
    local inner = skip(text, at + 1)
    if find(text, "^[%]}]", inner) then
        out:put(blank, is_list and "[]" or "{}")
        return inner + 1
    end
    local deeper = (in_list or is_list) and indent or indent + 2
    if not in_list then
        out:put("\n", rep(" ", deeper))
    end
    return put_members(out, text, inner, deeper, is_list)
end

--- Writes a declarative file in YAML.
-- @tparam string text JSON of an object that is not empty, as gateway.store.copies exports it
-- @treturn string
function _M.of_json(text)
    local out = string_buffer.new()
    put_value(out, text, skip(text, 1), 0, true)
    out:put("\n")
    return out:get()
end

return _M
