--- What is wrong with a text that is no YAML, in words of somebody who writes such files.
-- libyaml names its own rules and places ("mapping values are not allowed in this context"); this
-- says what stands there, and what would be valid.
-- @module gateway.config.yaml_errors

local entities = require("gateway.entities")
local schema = require("gateway.schema")
local source_line = require("gateway.config.source_line")

local format = string.format

-- Bytes of the text that a message shows.
local MAX_FOUND = 20
-- Bytes of a line in which quotes are looked for: each is looked for to the end of the line.
local MAX_LINE = 1000

local _M = {}

local function what_stands(rest)
    local word = rest:match("^%S+")
    return word and format("'%s'", word:sub(1, MAX_FOUND)) or "the end of the line"
end

-- What stands at an error.
local function rest_of(source, err)
    return select(2, source_line.split(source_line.text(source, err.line), err.column))
end

-- Calls `look(number, line, from)` for each line before one: its text, and its first byte.
local function each_before(source, number, look)
    local at = 0
    for from, line in source:gmatch("()([^\r\n]*)\r?\n?") do
        at = at + 1
        if at >= number then
            return
        end
        look(at, line, from)
    end
end

-- The last line before one that has something, and its text.
local function line_before(source, number)
    local found, text = 1, ""
    each_before(source, number, function(at, line)
        if line:find("^%s*[^%s#]") then
            found, text = at, line
        end
    end)
    return found, text
end

-- Where the key of a line stands, behind the signs of lists.
local function key_column(line)
    return #line:match("^[%s-]*") + 1
end

local function tab(_, err)
    return "tab in indentation; use spaces", err.line, err.column
end

local function start_of_token(source, err)
    local rest = rest_of(source, err)
    if rest:sub(1, 1) == "\t" then
        return tab(source, err)
    end
    local sign = rest:match("^[%z\1-\127\192-\255][\128-\191]*") or ""
    return format("'%s' cannot begin a text; put the text in quotes", sign)
end

-- What lacks the blank behind the sign of a list, if that is so: not '---', nor a number.
local function lacks_blank(rest)
    local item = rest:match("^%-([%a_/\"'{%[][^%s:]*)")
    return item and format("write '- %s', with a space after the dash", item:sub(1, MAX_FOUND))
end

-- What lacks the ': ' behind a key.
local function lacks_colon(rest)
    local message = lacks_blank(rest)
    if message then
        return message
    end
    local is_joined = rest:find("^[%w_]+:%S")
    return is_joined and "expected a space after ':'"
        or format("expected ': ' after %s", what_stands(rest))
end

-- Whether some kind of entities has a field of this name.
local function is_field(name)
    for _, kind in ipairs(entities.kinds) do
        if schema.fields(entities.get(kind))[name] then
            return true
        end
    end
    return false
end

-- Whether a line was to be a key with its value, or a key that others stand below: an item of a
-- list is a text as well if it is one word, and several words are a text unless they begin as an
-- entity's field does.
local function lacks_its_colon(line)
    local signs, rest = line:match("^([%s-]*)(.*)$")
    local first = rest:match("^([%w_]+)%s+[^%s:#][^:]*$")
    return first and is_field(first)
        or rest:find("^[%w_]+:[^%s/][^:]*$")
        or (not signs:find("-", 1, true) and rest:find("^[%w_]+%s*$"))
end

-- A second key in a line, or one in a line that goes on with the text of the line before.
local function unexpected_colon(source, err)
    local line = source_line.text(source, err.line)
    local head = source_line.split(line, err.column)
    if head:find(":%s") then
        return "unexpected ': ' in a text; put the text in quotes"
    end
    local before, text_before = line_before(source, err.line)
    local dash = text_before:match("^%s*()%-%S") or 1
    local message = lacks_blank(text_before:sub(dash))
    if message then
        return message, before, dash
    elseif lacks_its_colon(text_before) then
        local column = key_column(text_before)
        return lacks_colon(text_before:sub(column)), before, column
    end
    message = format(
        "unexpected indentation: line %d already has a value (is a ':' missing there?)",
        before
    )
    return message, err.line, key_column(line)
end

-- The list whose signs stand in a column above a line: the line of its last item, nil where there
-- is none; and whether a key can stand in that column too.
local function list_above(source, number, column)
    local item, is_of_keys = nil, false
    each_before(source, number, function(at, line)
        local indentation = line:match("^%s*()[^%s#]") or column + 1
        if indentation == column and line:find("^%-%s", indentation) then
            item = at
        elseif indentation <= column then
            item, is_of_keys = nil, key_column(line) == column
        end
    end)
    return item, is_of_keys
end

local function no_colon(source, err)
    local line, column = err.context_line or err.line, err.context_column or err.column
    local rest = rest_of(source, { line = line, column = column })
    local message = lacks_colon(rest)
    local item, is_of_keys = list_above(source, line, column)
    if item and not lacks_blank(rest) then
        local dash = format("'- ' before %s, as in line %d", what_stands(rest), item)
        message = is_of_keys and message .. ", or " .. dash or "expected " .. dash
    end
    return message, line, column
end

-- What goes on in a column: the items of a list, or the keys of a mapping.
local function expected(source, err, what)
    local column = err.context_column
    local message = lacks_blank(rest_of(source, err))
    if message then
        return message
    elseif err.column == column then
        local found = what_stands(rest_of(source, err))
        return format("expected %s as in line %d, found %s", what, err.context_line, found)
    end
    return format("expected %s in column %d, as in line %d", what, column, err.context_line)
end

local function no_item(source, err)
    local rest = rest_of(source, err)
    local key = key_column(source_line.text(source, err.context_line))
    if err.column > err.context_column and rest:sub(1, 1) ~= "-" then
        return expected(source, err, format("a key in column %d or '-'", key))
    end
    return expected(source, err, "'-'")
end

local function no_key(source, err)
    return expected(source, err, "a key")
end

local function not_closed(sign)
    return function(source, err)
        return format(
            "expected ',' or '%s' for the '%s' in line %d, found %s",
            sign == "[" and "]" or "}",
            sign,
            err.context_line,
            what_stands(rest_of(source, err))
        )
    end
end

local function no_end_of_quotes(_, err)
    return "no closing quote", err.context_line or err.line, err.context_column or err.column
end

-- Where a quoted text begins in a line, from a byte on; nil where none does.
local function quote_in(line, at)
    if #line > MAX_LINE or line:find("^%s*#") then
        return nil
    end
    local found = at == 1 and line:match("^[%s-]*()[\"']") or line:match(":%s+()[\"']", at)
    if line:find("^[%s-]*[%[{]") or line:find(":%s+[%[{]") then
        local within = line:match("[%[{,]%s*()[\"']", at)
        found = within and (not found or within < found) and within or found
    end
    local comment = line:find("%s#", at)
    return found and not (comment and comment < found) and found or nil
end

-- The closing quote of the text whose opening quote is a byte; the byte behind the end where there
-- is none.
local function closing(source, at)
    local pattern = source:sub(at, at) == "'" and "'" or '["\\]'
    at = source:find(pattern, at + 1)
    while at and (source:sub(at, at) == "\\" or source:sub(at, at + 1) == "''") do
        at = source:find(pattern, at + 2)
    end
    return at or #source + 1
end

-- The indentation that the lines of a literal text exceed, where a line begins one.
local function literal_below(line)
    local comment = line:find("%s#")
    local text = comment and line:sub(1, comment - 1) or line
    local sign = text:find("[|>][%d+-]*%s*$")
    local head = sign and text:sub(1, sign - 1) or ""
    if not sign or not head:find("[:-]%s+$") then
        return nil
    end
    return #line:match(head:find(":") and "^[%s-]*" or "^ *")
end

-- The quote that is not closed in its line, if the text from there ends right before the error: the
-- quote that ends it has something behind it, since it was to begin a text.
local function runaway_quote(source, err)
    local is_quoted = (err.context or ""):find("quoted scalar", 1, true)
    local number = is_quoted and err.context_line or err.line
    local column = is_quoted and err.context_column or err.column
    local literal, opening, last, found, end_line
    each_before(source, number + 1, function(at, line, from)
        local behind, byte_after = 1, from + #line
        if end_line or (last and last >= byte_after) then
            return
        elseif last and source:find("^[ \t]*[^%s,%]}:#]", last + 1) then
            local is_before = at < number or last < from + #source_line.split(line, column)
            end_line, found = at, at >= number - 1 and is_before and opening or nil
            return
        elseif last then
            behind, last = last - from + 2, nil
        elseif literal and (not line:find("%S") or #line:match("^ *") > literal) then
            return
        end
        local quote = quote_in(line, behind)
        while quote do
            opening = from + quote - 1
            last = closing(source, opening)
            if last >= byte_after then
                return
            end
            quote, last = quote_in(line, last - from + 2), nil
        end
        literal = literal_below(line)
    end)
    return found, end_line
end

local function no_value(source, err)
    return "expected a value, found " .. what_stands(rest_of(source, err))
end

local function no_end(source, err)
    return "expected the end of the document, found " .. what_stands(rest_of(source, err))
end

local function no_name(_, err)
    local sign = err.context:find("alias", 1, true) and "*" or "&"
    return format("'%s' cannot begin a text; put the text in quotes", sign), err.line, err.column
end

-- problem of libyaml -> message, and line and column where they are others
local EXPLAINED = {
    ["block sequence entries are not allowed in this context"] = function()
        return "'-' cannot follow in this line; begin another"
    end,
    ["could not find expected ':'"] = no_colon,
    ["did not find expected '-' indicator"] = no_item,
    ["did not find expected ',' or ']'"] = not_closed("["),
    ["did not find expected ',' or '}'"] = not_closed("{"),
    ["did not find expected <document start>"] = no_end,
    ["did not find expected alphabetic or numeric character"] = no_name,
    ["did not find expected key"] = no_key,
    ["did not find expected node content"] = no_value,
    ["found a tab character that violates indentation"] = tab,
    ["found a tab character where an indentation space is expected"] = tab,
    ["found character that cannot start any token"] = start_of_token,
    ["found unexpected document indicator"] = no_end_of_quotes,
    ["found unexpected end of stream"] = no_end_of_quotes,
    ["found unknown escape character"] = function()
        return "unknown escape in double quotes; use single quotes, or '\\\\'"
    end,
    ["mapping values are not allowed in this context"] = unexpected_colon,
}

--- Explains an error of libyaml.
-- @tparam string source
-- @tparam table err `message`, `line` and `column` of libyaml, nil where it has none; `context`
-- with `context_line` and `context_column`
-- @treturn table `{ message =, line =, column = }`
function _M.explain(source, err)
    local explain = err.line and EXPLAINED[err.message]
    local message, line, column
    local quote, end_line = nil, nil
    if err.line then
        quote, end_line = runaway_quote(source, err)
    end
    if quote then
        message = format("no closing quote in this line; the next one is in line %d", end_line)
        line, column = source_line.place(source, quote)
    elseif explain then
        message, line, column = explain(source, err)
    end
    message = message or err.message:gsub("^did not find expected", "expected")
    return { message = message, line = line or err.line, column = column or err.column }
end

return _M
