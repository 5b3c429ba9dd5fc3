--- What a terminal takes for no command: entities and their names are anybody's, and so are paths.
--
-- It requires nothing: the command says with it also that it cannot load modules.
-- @module cli.terminal.plain

-- What ends a line or a cell.
local BREAKS = { ["\t"] = "\\t", ["\n"] = "\\n", ["\r"] = "\\r" }

-- Bytes that follow the first one of a character, and what the second one may be (RFC 3629, 4).
local function followers(first, second)
    if first < 0xC2 or first > 0xF4 or not second then
        return nil
    end
    local low, high = 0x80, 0xBF
    if first == 0xE0 then
        low = 0xA0
    elseif first == 0xED then
        high = 0x9F
    elseif first == 0xF0 then
        low = 0x90
    elseif first == 0xF4 then
        high = 0x8F
    end
    local is_right = second >= low and second <= high
    return is_right and (first >= 0xF0 and 3 or first >= 0xE0 and 2 or 1) or nil
end

-- A terminal of 8 bits takes a byte alone for what U+0080 to U+009F are.
local function without_strays(bytes)
    local count = followers(bytes:byte(1, 2))
    if not count or #bytes <= count then
        return ("?"):rep(#bytes)
    end
    return bytes:sub(1, count + 1) .. ("?"):rep(#bytes - count - 1)
end

local _M = {}

--- A text as it may be written to a terminal.
-- @tparam string text
-- @treturn string with a question mark for each control character but newlines and tabs, and for
-- bytes that are no UTF-8
function _M.text(text)
    text = text:gsub("[\128-\255][\128-\191]*", without_strays)
    return (text:gsub("[%z\1-\8\11-\31\127]", "?"):gsub("\194[\128-\159]", "?"))
end

--- The same in one line, for a cell of a table or a line of a list: no name ends it.
-- @tparam string text
-- @treturn string with `\n`, `\r` and `\t` for these characters
function _M.line(text)
    return _M.text((text:gsub("[\t\n\r]", BREAKS)))
end

--- Writes to standard error what is no complaint of ours, or a question.
-- @tparam string text with its end of line, where it has one
function _M.write_error(text)
    io.stderr:write(_M.text(text))
end

return _M
