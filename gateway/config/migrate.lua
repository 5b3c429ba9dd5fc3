--- Older `_format_version`s to the present one.
-- Before 3.0 a route's path was a regex when it had a character that plain
-- paths seldom have, and was percent-decoded when it was compiled.
-- @module gateway.config.migrate

local router_path = require("gateway.schema.path")
local text = require("gateway.schema.text")

local char = string.char
local plain = text.plain

local RESERVED = "[!#$%%&'()*+,/:;=?@%[%]]"
local REGEX_META = "[.^{}\\|-]"
local is_plain = text.made_of("[%w._~/%%-]")
-- What a message shows of a path.
local MAX_SHOWN = 100

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

-- What to say of a path that has a character of a regex. Before a name and its value, a `?` was to
-- begin a query.
local function warning_of(path)
    local before = path:match("^([^?]*)%?[%w_.-]+=")
    if before then
        local line = "matches no request, as a path has no query; write '%s'"
        return line:format(plain(before, MAX_SHOWN))
    end
    return ("'%s' looks like a regex, but without a leading ~ it is a fixed path"):format(path)
end

--- What is probably not meant of a route's paths, once they have the present form.
-- @tparam table route checked
-- @treturn {table,...} `{ field =, message = }`
function _M.warnings(route)
    local found = {}
    for i, path in ipairs(route.paths or {}) do
        if path:sub(1, 1) ~= "~" and _M.looks_like_regex(path) then
            found[#found + 1] = {
                field = ("paths[%d]"):format(i - 1),
                message = warning_of(path),
            }
        end
    end
    return found
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

return _M
