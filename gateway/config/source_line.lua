--- The lines of a text that has an error: what a message says of one, and shows of it.
-- Columns count characters, from 1, as libyaml's do, behind a byte order mark; lines end with LF,
-- CR or both, as in YAML 1.2 (5.4. Line Break Characters).
-- @module gateway.config.source_line

local format = string.format

local CHARACTER = "^[%z\1-\127\192-\255][\128-\191]*()"
-- Characters that are shown of a line, and how many of those stand behind the error.
local WIDTH, BEHIND = 72, 24

local _M = {}

-- Where the first line begins.
local function first_line(source)
    return source:match("^\239\187\191()") or 1
end

-- Where the next line begins behind a byte; nil: there is none.
local function next_line(source, at)
    local last = source:find("[\r\n]", at)
    return last and last + (source:sub(last, last + 1) == "\r\n" and 2 or 1)
end

--- The text of a line.
-- @tparam string source
-- @tparam number number from 1
-- @treturn string without its end; "" beyond the last
function _M.text(source, number)
    local at = first_line(source)
    for _ = 2, number do
        at = next_line(source, at)
        if not at then
            return ""
        end
    end
    return source:match("^[^\r\n]*", at)
end

--- Splits a line before a column.
-- @tparam string line
-- @tparam number column
-- @treturn string what stands before it
-- @treturn string the rest
function _M.split(line, column)
    local at = 1
    for _ = 2, column do
        at = line:match(CHARACTER, at) or at
    end
    return line:sub(1, at - 1), line:sub(at)
end

--- The place of a byte.
-- @tparam string source
-- @tparam number offset from 1, one more than the text has at most
-- @treturn number line
-- @treturn number column
function _M.place(source, offset)
    local line, start = 1, first_line(source)
    local after = next_line(source, start)
    while after and after <= offset do
        line, start = line + 1, after
        after = next_line(source, start)
    end
    local _, continued = source:sub(start, offset - 1):gsub("[\128-\191]", "")
    return line, offset - start + 1 - continued
end

--- A line and, below, a caret at its error.
-- @tparam string source
-- @tparam number number of the line
-- @tparam number column
-- @treturn string two lines
function _M.excerpt(source, number, column)
    local line = _M.text(source, number):gsub("\t", " ")
    if column > WIDTH - BEHIND then
        local cut = column - (WIDTH - BEHIND)
        line, column = "..." .. select(2, _M.split(line, cut + 4)), column - cut
    end
    local shown, more = _M.split(line, WIDTH + 1)
    if more ~= "" then
        shown = _M.split(line, WIDTH - 2) .. "..."
    end
    local margin = (" "):rep(#tostring(number))
    return format("%d | %s\n%s | %s^", number, shown, margin, (" "):rep(column - 1))
end

return _M
