--- Older `_format_version`s to the present one.
-- Before 3.0 a route's path was a regex when it had a character that plain
-- paths seldom have, and was percent-decoded when it was compiled.
-- @module gateway.config.migrate

local router_path = require("gateway.router.path")
local text = require("gateway.schema.text")

local char = string.char
local concat = table.concat
local ipairs = ipairs
local pairs = pairs
local tonumber = tonumber
local type = type

local RESERVED = "[!#$%%&'()*+,/:;=?@%[%]]"
local REGEX_META = "[.^{}\\|-]"
local is_plain = text.made_of("[%w._~/%%-]")

local _M = {}

local function decode(hex)
    local c = char(tonumber(hex, 16))
    if c:find(RESERVED) then
        return "%" .. hex:upper()
    end
    return c:find(REGEX_META) and "\\" .. c or c
end

--- Whether a path has characters that made it a regex before 3.0.
-- @tparam string path
-- @treturn boolean
function _M.looks_like_regex(path)
    return not is_plain(path)
end

local function migrate_path(path)
    if type(path) ~= "string" or path:sub(1, 1) ~= "/" then
        return path
    elseif _M.looks_like_regex(path) then
        return "~" .. path:gsub("%%(%x%x)", decode)
    end
    return router_path.normalize(path)
end

--- Brings the paths of a route of format 1.1 or 2.1 into the present form.
-- What is not an array of strings is left for the validation to report.
-- @tparam any paths the raw field
-- @return a new array, or the field unchanged
function _M.paths(paths)
    if type(paths) ~= "table" then
        return paths
    end
    local out = {}
    for i, path in ipairs(paths) do
        out[i] = migrate_path(path)
    end
    return next(paths) and #out == 0 and paths or out
end

--- The values of one header, which went out in one line.
local function one_line(values)
    for key, value in pairs(type(values) == "table" and values or {}) do
        if type(key) ~= "number" or type(value) ~= "string" then
            return values
        end
    end
    return type(values) == "table" and values[1] and concat(values, ", ") or values
end

--- Brings a plugin's configuration of format 1.1 or 2.1 into the present form: before 3.0 a header
-- of http-log had an array of values.
-- @tparam any name the plugin's
-- @tparam any config the raw field
-- @return a new table, or the field unchanged
function _M.plugin_config(name, config)
    if name ~= "http-log" or type(config) ~= "table" or type(config.headers) ~= "table" then
        return config
    end
    local out = {}
    for key, value in pairs(config) do
        out[key] = value
    end
    out.headers = {}
    for header, values in pairs(config.headers) do
        out.headers[header] = one_line(values)
    end
    return out
end

return _M
