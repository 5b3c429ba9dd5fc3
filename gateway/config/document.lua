--- A declarative file's text to Lua tables, whether YAML or JSON.
-- @module gateway.config.document

local cjson = require("cjson")
local json_lines = require("gateway.config.json_lines")
local json_text = require("gateway.config.json_text")
local placeholder = require("sluice.placeholder")
local source_line = require("gateway.config.source_line")
local yaml = require("gateway.config.yaml")

local format = string.format

local _M = {}

--- Bytes of a file that the admin listener takes: a million routes. Larger ones are a command's to
-- load, in a process of its own.
_M.MAX_BYTES = 128 * 1024 * 1024

-- What cjson expects, and finds.
local EXPECTED = {
    ["array end"] = "']'",
    ["colon"] = "':'",
    ["comma or array end"] = "',' or ']'",
    ["comma or object end"] = "',' or '}'",
    ["object key string"] = "a key in double quotes",
    ["object key string or object end"] = "a key in double quotes or '}'",
    ["value"] = "a value",
    ["comma or end"] = "',' or the end of the list or object",
}
local FOUND = {
    T_ARR_BEGIN = "'['",
    T_ARR_END = "']'",
    T_BOOLEAN = "a boolean",
    T_COLON = "':'",
    T_COMMA = "','",
    T_END = "the end of the file",
    T_NULL = "null",
    T_NUMBER = "a number",
    T_OBJ_BEGIN = "'{'",
    T_OBJ_END = "'}'",
    T_STRING = "a text",
    ["invalid token"] = "an invalid token",
}

local function explain_json(message)
    local expected, found = message:match("^Expected (.-) but found (.*)$")
    expected = expected or message:match("^Expected (.*)$")
    if not expected then
        return message
    end
    found = found and ", found " .. (FOUND[found] or found) or ""
    return "expected " .. (EXPECTED[expected] or expected) .. found
end

-- The comma before what closes a list or an object at a byte; nil where there is none.
local function trailing_comma(source, at)
    local closes = source:find("^[]}]", at)
    repeat
        at = at - 1
    until at < 1 or not source:find("^%s", at)
    return closes and source:sub(at, at) == "," and at or nil
end

local function decode_json(source, pause)
    -- To cjson the text ends there, whatever follows.
    local nul = source:find("\0", 1, true)
    if nul then
        return nil, { message = "a NUL byte", offset = nul }
    end
    local value, err = json_text.decode(source, pause)
    if err then
        local comma = err.offset and trailing_comma(source, err.offset)
        err.message = comma and "trailing comma; delete it" or explain_json(err.message)
        err.offset = comma or err.offset
    end
    return value, err
end

--- The format that a text begins as.
-- @tparam string source
-- @treturn string "json" or "yaml"
function _M.kind_of(source)
    return source:find("^%s*[{%[]") and "json" or "yaml"
end

--- The format that a file's name promises.
-- @tparam string path
-- @treturn string|nil "json", "yaml", or nil when the name says nothing
function _M.format_of(path)
    local extension = path:lower():match("%.(%w+)$")
    if extension == "yml" then
        return "yaml"
    end
    return (extension == "json" or extension == "yaml") and extension or nil
end

--- Reads a whole file.
-- @tparam string path
-- @treturn string|nil
-- @treturn nil|string the system's reason, with the path
function _M.read(path)
    local file, err = io.open(path, "rb")
    if not file then
        return nil, err
    end
    local source, read_err = file:read("*a")
    file:close()
    if not source then
        return nil, format("%s: %s", path, read_err)
    end
    return source
end

-- Whether a text that cannot be read begins with the mark of UTF-16, or as ASCII in it. libyaml
-- reads one with the mark.
local function is_utf16(source)
    return source:find("^\255\254")
        or source:find("^\254\255")
        or source:find("^%Z%z%Z%z")
        or source:find("^%z%Z%z%Z")
end

local function refuse(message)
    return nil, message, { message = message }
end

--- Decodes a text.
-- @tparam string source
-- @tparam[opt] string kind "yaml" or "json"; by the text itself when absent
-- @tparam[opt] table opts those of gateway.config.yaml; and `list_of`: what a list at the top is a
-- list of, a kind of entities
-- @treturn table|nil the mapping at the top; null inside is `cjson.null`
-- @treturn nil|string reason, beginning with `line L, column C: ` when known
-- @treturn nil|table `{ message =, line =, column =, path = }`: the reason by itself, and the place
-- and the path of the field that it is about, when known
function _M.decode(source, kind, opts)
    kind = kind or _M.kind_of(source)
    local value, err
    if kind == "json" then
        source = source:gsub("^\239\187\191", "")
        value, err = decode_json(source, opts and opts.pause)
        if opts and opts.lines and type(value) == "table" then
            json_lines.add(opts.lines, source, value, opts.pause)
        end
    else
        value, err = yaml.decode(source, opts)
    end
    if err and is_utf16(source) then
        return refuse("the file is UTF-16; save it as UTF-8")
    elseif err then
        if err.offset then
            err.line, err.column = source_line.place(source, err.offset)
            if err.first then
                local line = source_line.place(source, err.first)
                err.message = format("%s, first in line %d", err.message, line)
            end
        end
        if err.line then
            local line = source_line.text(source, err.line)
            local message, column = placeholder.in_line(line, err.column)
            err.message, err.column = message or err.message, column or err.column
        end
        local where = err.line and format("line %d, column %d: ", err.line, err.column) or ""
        return nil, where .. err.message, err
    end
    local list_of = opts and opts.list_of
    if list_of and type(value) == "table" then
        if value[1] ~= nil then
            value = { _format_version = "3.0", [list_of] = value }
        elseif next(value) ~= nil and value._format_version == nil then
            return refuse(format("kind expects a list of %s, found a mapping", list_of))
        end
    end
    if value == cjson.null then
        return refuse("the file is empty")
    elseif type(value) ~= "table" or value[1] ~= nil then
        return refuse("expected a mapping at the top, such as `services:`")
    end
    return value
end

return _M
