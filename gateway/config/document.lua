--- A declarative file's text to Lua tables, whether YAML or JSON.
-- @module gateway.config.document

local cjson = require("cjson")
local json_text = require("gateway.config.json_text")
local yaml = require("gateway.config.yaml")

local format = string.format
local io = io
local type = type

local _M = {}

--- Bytes of a file that the admin listener takes: a million routes. Larger ones are a command's to
-- load, in a process of its own.
_M.MAX_BYTES = 128 * 1024 * 1024

local function line_and_column(source, offset)
    local line, start = 1, 1
    for at in source:gmatch("()\n") do
        if at >= offset then
            break
        end
        line, start = line + 1, at + 1
    end
    return line, offset - start + 1
end

local function decode_json(source, pause)
    -- To cjson the text ends there, whatever follows.
    local nul = source:find("\0", 1, true)
    if nul then
        return nil, { message = "a NUL byte", offset = nul }
    end
    return json_text.decode(source, pause)
end

local function sniff(source)
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

--- Decodes a text.
-- @tparam string source
-- @tparam[opt] string kind "yaml" or "json"; by the text itself when absent
-- @tparam[opt] table opts those of gateway.config.yaml; and `list_of`: what a list at the top is a
-- list of, a kind of entities
-- @treturn table|nil the mapping at the top; null inside is `cjson.null`
-- @treturn nil|string reason, beginning with `line L, column C: ` when known
-- @treturn nil|string path of the field that it is about, when known
function _M.decode(source, kind, opts)
    kind = kind or sniff(source)
    local value, err
    if kind == "json" then
        value, err = decode_json((source:gsub("^\239\187\191", "")), opts and opts.pause)
    else
        value, err = yaml.decode(source, opts)
    end
    if err then
        local line, column = err.line, err.column
        if err.offset then
            line, column = line_and_column(source, err.offset)
        end
        local where = line and format("line %d, column %d: ", line, column) or ""
        return nil, where .. err.message, err.path
    end
    local list_of = opts and opts.list_of
    if list_of and type(value) == "table" and value[1] ~= nil then
        value = { _format_version = "3.0", [list_of] = value }
    end
    if value == cjson.null then
        return nil, "empty document"
    elseif type(value) ~= "table" or value[1] ~= nil then
        return nil, "expected a mapping at the top"
    end
    return value
end

return _M
