--- The lines of a text that has an error: what a message says of one, and shows of it.
-- Columns count characters, from 1, as libyaml's do.
-- @module gateway.config.source_line

local format = string.format

local CHARACTER = "^[%z\1-\127\192-\255][\128-\191]*()"
-- Characters that are shown of a line, and how many of those stand behind the error.
local WIDTH, BEHIND = 72, 24

local _M = {}

--- The text of a line.
-- @tparam string source
-- @tparam number number from 1
-- @treturn string without its end; "" beyond the last
function _M.text(source, number)
    local at = 1
    for _ = 2, number do
        at = source:find("\n", at, true)
        if not at then
            return ""
        end
        at = at + 1
    end
    local line = source:match("^[^\r\n]*", at)
    return at == 1 and (line:gsub("^\239\187\191", "")) or line
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

--- The column of a byte.
-- @tparam string line
-- @tparam number offset from 1, one more than the line has at most
-- @treturn number
function _M.column(line, offset)
    local _, continued = line:sub(1, offset - 1):gsub("[\128-\191]", "")
    return offset - continued
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
