--- What a terminal takes for no command: entities and their names are anybody's, and so are paths.
--
-- It requires nothing: the command says with it also that it cannot load modules.
-- @module cli.terminal.plain

-- What ends a line or a cell.
local BREAKS = { ["\t"] = "\\t", ["\n"] = "\\n", ["\r"] = "\\r" }

-- Bytes that follow the first one of a character; of any other byte: none.
local function followers(first)
    return first > 0xF4 and 0
        or first >= 0xF0 and 3
        or first >= 0xE0 and 2
        or first >= 0xC2 and 1
        or 0
end

-- A terminal of 8 bits takes a byte alone for what U+0080 to U+009F are.
local function without_strays(bytes)
    local count = followers(bytes:byte())
    if count == 0 or #bytes <= count then
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
    text = text:gsub("[\192-\255]?[\128-\191]+", without_strays)
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
