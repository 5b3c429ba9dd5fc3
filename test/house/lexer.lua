--- As much of Lua's grammar as looking after the house needs: tokens.
--
-- Comments and strings are told from code, so that a `require` in a comment, an
-- example or the text of an nginx.conf is none.
--
-- @usage
-- lexer.tokens('local a = require("b") -- c')
-- --> { { kind = "name", text = "local", line = 1 }, ...,
-- --    { kind = "string", text = "b", line = 1 }, { kind = "sign", text = ")", line = 1 } }

local _M = {}

--- The end of a long bracket that opens at `at`, and what is within.
local function long_bracket(source, at)
    local level = source:match("^%[(=*)%[", at)
    if not level then
        return nil
    end
    local first = at + #level + 2
    local close = "]" .. level .. "]"
    local from, to = source:find(close, first, true)
    return (to or #source) + 1, source:sub(first, (from or #source + 1) - 1)
end

--- The end of a quoted string that opens at `at`, and its text as written.
local function quoted(source, at)
    local quote = source:sub(at, at)
    local pos = at + 1
    while pos <= #source do
        local c = source:sub(pos, pos)
        if c == "\\" then
            pos = pos + 2
        elseif c == quote then
            break
        else
            pos = pos + 1
        end
    end
    return pos + 1, source:sub(at + 1, pos - 1)
end

--- @treturn number where the next token starts
-- @treturn string|nil kind: "comment", "string", "name", "sign"
-- @treturn string|nil text
local function next_token(source, at)
    if source:find("^%-%-", at) then
        local after, text = long_bracket(source, at + 2)
        if after then
            return after, "comment", text
        end
        local stop = source:find("\n", at, true) or #source + 1
        return stop, "comment", source:sub(at + 2, stop - 1)
    end
    if source:find("^%[=*%[", at) then
        local after, text = long_bracket(source, at)
        return after, "string", text
    end
    if source:find("^[\"']", at) then
        local after, text = quoted(source, at)
        return after, "string", text
    end
    local name, after = source:match("^([%a_][%w_]*)()", at)
    if name then
        return after, "name", name
    end
    local number
    number, after = source:match("^([%d][%w.]*)()", at)
    if number then
        return after, "number", number
    end
    local dots
    dots, after = source:match("^(%.%.+)()", at)
    if dots then
        return after, "sign", dots
    end
    return at + 1, "sign", source:sub(at, at)
end

local function count_lines(text)
    local _, lines = text:gsub("\n", "")
    return lines
end

--- Split Lua source into tokens.
-- @tparam string source
-- @treturn table array of `{ kind, text, line, last_line }`, comments included
function _M.tokens(source)
    local tokens, at, line = {}, 1, 1
    while true do
        local blank, after = source:match("^(%s*)()", at)
        line, at = line + count_lines(blank), after
        if at > #source then
            return tokens
        end
        local stop, kind, text = next_token(source, at)
        local last_line = line + count_lines(source:sub(at, stop - 1))
        tokens[#tokens + 1] = { kind = kind, text = text, line = line, last_line = last_line }
        line, at = last_line, stop
    end
end

return _M
