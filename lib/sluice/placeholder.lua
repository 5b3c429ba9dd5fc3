--- Placeholders of templates, such as `{{ host }}` and `${PORT}`, in a text that is wrong: the
-- template was to be filled in first.
-- @module sluice.placeholder

local format = string.format

-- Those that no YAML or JSON can have outside of quotes. With a colon or a comma they are mappings
-- within others.
local BRACES = { "{({[^{}%c:,]*})}", "{(%%[^{}%c]*%%)}" }
-- In a value there are more.
local OTHERS = { "%${([%a_][^{}%c]*)}", "^<(%a[%w_. -]*)>$" }
-- A longer one is none.
local MAX_LENGTH = 80
-- What a name can have. The rest, such as a default value, may be a secret.
local NAME = "^[{%%%s-]*[%a_][%w_. -]*[%%}%s]*$"

local _M = {}

local function first_of(patterns, value)
    for _, pattern in ipairs(patterns) do
        local from, to, inside = value:find(pattern)
        if from and to - from < MAX_LENGTH then
            local found = value:sub(from, to)
            local shown = inside:find(NAME) and format("'%s' is a placeholder", found)
                or format(
                    "'%s' begins a placeholder",
                    found:match("^%${[%w_]+") or found:match("^{[{%%]")
                )
            return shown .. "; fill in the template first", from
        end
    end
    return nil
end

local function has_odd(value, sign)
    return select(2, value:gsub(sign, "")) % 2 == 1
end

--- What to say of a line of a text that cannot be read.
-- @tparam string line
-- @tparam number column where the reader has failed, counted from 1
-- @treturn string|nil message; nil where no placeholder stands there or before, outside of quotes
-- and comments
-- @treturn nil|number the column where it begins
function _M.in_line(line, column)
    local message, from = first_of(BRACES, line)
    local head = message and line:sub(1, from - 1)
    if not message or has_odd(head, '"') or has_odd(head, "'") or (" " .. head):find("%s#") then
        return nil
    end
    local at = select(2, head:gsub("[^\128-\191]", "")) + 1
    if at > column then
        return nil
    end
    return message, at
end

--- What to say of a value that a field cannot have.
-- @param value
-- @treturn string|nil message; nil where it has no placeholder
function _M.in_value(value)
    if type(value) ~= "string" then
        return nil
    end
    return (first_of(BRACES, value) or first_of(OTHERS, value))
end

return _M
