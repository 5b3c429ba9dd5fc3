--- What a terminal takes for no command: entities and their names are anybody's, and so are paths.
--
-- It requires nothing: the command says with it also that it cannot load modules.
-- @module cli.terminal.plain

-- What ends a line or a cell.
local BREAKS = { ["\t"] = "\\t", ["\n"] = "\\n", ["\r"] = "\\r" }

local _M = {}

--- A text as it may be written to a terminal.
-- @tparam string text
-- @treturn string with a question mark for each control character but newlines and tabs
function _M.text(text)
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
