--- Media types: `kong.tools.mime_type`.
-- @module kong.tools.mime_type

local find = string.find
local lower = string.lower
local sub = string.sub

local _M = {}

-- RFC 2045: what is neither a control character nor a separator.
local TOKEN = '^[^%c%s()<>@,;:\\"/%[%]?={}\128-\255]+'
local BLANKS = "^[ \t]*"

local function token_at(text, at)
    local from, to = find(text, TOKEN, at)
    if not from then
        return nil
    end
    return sub(text, from, to), to + 1
end

-- What stands between quotes, as it was written.
local function quoted_at(text, at)
    local i = at + 1
    while i <= #text do
        local char = sub(text, i, i)
        if char == "\\" and i < #text and text:byte(i + 1) < 128 then
            i = i + 2
        elseif char == '"' then
            return sub(text, at + 1, i - 1), i + 1
        elseif find(char, "%c") then
            return nil
        else
            i = i + 1
        end
    end
    return nil
end

local function parameter_at(text, at)
    local _, semicolon = find(text, BLANKS .. ";[ \t]*", at)
    if not semicolon then
        return nil
    end
    local name, value
    name, at = token_at(text, semicolon + 1)
    if not name or sub(text, at, at) ~= "=" then
        return nil
    elseif sub(text, at + 1, at + 1) == '"' then
        value, at = quoted_at(text, at + 1)
    else
        value, at = token_at(text, at + 1)
    end
    return name, value, at
end

--- Reads a media type, such as `text/html; charset=utf-8`.
-- @tparam string mime_type
-- @treturn string|nil type, in small letters; nil: it is none
-- @treturn string|nil subtype
-- @treturn table|nil parameters by their names in small letters
-- @phases any
function _M.parse_mime_type(mime_type)
    local kind, subtype, at
    kind, at = token_at(mime_type, 1)
    if not kind then
        return nil
    elseif sub(mime_type, at, at) == "/" then
        subtype, at = token_at(mime_type, at + 1)
    elseif kind:byte() == 42 then
        kind, subtype, at = "*", "*", 2
    end
    if not subtype then
        return nil
    end
    local parameters = {}
    while at <= #mime_type do
        local name, value, next_at = parameter_at(mime_type, at)
        if not value then
            return nil
        end
        parameters[lower(name)], at = value, next_at
    end
    return lower(kind), lower(subtype), parameters
end

--- Whether a media type stands for another one, too: `*/*` for all, `text/*` for all of text, and
-- `application/json` for `application/problem+json`.
-- @tparam table this `type`, `subtype`
-- @tparam table other the same
-- @treturn boolean
-- @raise one of them is no table
-- @phases any
function _M.includes(this, other)
    if type(this) ~= "table" then
        error("this must be a table", 2)
    elseif type(other) ~= "table" then
        error("other must be a table", 2)
    elseif this.type == "*" then
        return true
    elseif this.type ~= other.type then
        return false
    elseif this.subtype == other.subtype or this.subtype == "*" then
        return true
    elseif find(this.subtype, "+", 1, true) then
        return false
    end
    return sub(other.subtype, -#this.subtype - 1) == "+" .. this.subtype
end

return _M
