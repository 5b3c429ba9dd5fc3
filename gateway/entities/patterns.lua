--- What the regular expressions of routes and plugins take in a worker that has compiled them.
--
-- A worker keeps all that are live: compiling takes up to a millisecond each, for which others
-- wait. So together they may take what it has room for. The same pattern of two routes is kept
-- once, and counts twice; those of routes whose service is disabled do not count, nor those of
-- plugins that are.
--
-- Which a plugin has, its handler says: `patterns(config)` returns an array of `{ text = (as its C
-- runs it), is_anchored = (as the paths of routes are, and not found anywhere), field = (of the
-- configuration) }`.
-- @module gateway.entities.patterns

local core = require("sluice.ffi.core")

local C = core.C
local ceil = math.ceil
local ipairs, pairs = ipairs, pairs

local MB = 1024 * 1024

local _M = {}

--- Bytes that they are counted in.
_M.UNIT = 128

--- Bytes that all routes and plugins may take.
_M.MOST = C.SLUICE_CORE_REGEXES_BYTES

local function take(pattern, is_path)
    return tonumber(C.sluice_core_regex_bytes(pattern, #pattern, is_path and 1 or 0))
end

-- One that is read from the store may be null.
local function items(list)
    return type(list) == "table" and list or {}
end

--- What those of a route take. Some microseconds for each, as compiling does.
-- @tparam table route checked by its schema
-- @treturn number bytes, of whole units; 0: it has none
function _M.bytes(route)
    local bytes = 0
    for _, path in ipairs(items(route.paths)) do
        if path:byte() == 0x7e then
            bytes = bytes + take(path:sub(2), true)
        end
    end
    for _, values in pairs(items(route.headers)) do
        for _, value in ipairs(values) do
            if value:sub(1, 2) == "~*" then
                bytes = bytes + take(value:sub(3), false)
            end
        end
    end
    return ceil(bytes / _M.UNIT) * _M.UNIT
end

--- The regular expressions of a plugin's configuration.
-- @tparam table handler of the plugin
-- @tparam table config checked by its schema
-- @treturn {table,...} what `patterns` of a native one says; of others it is any name
function _M.of_plugin(handler, config)
    return handler.native and handler.patterns and handler.patterns(config) or {}
end

--- What these take. Some microseconds for each, as compiling does.
-- @tparam {table,...} list of `of_plugin`
-- @treturn number bytes, of whole units
function _M.bytes_of_plugin(list)
    local bytes = 0
    for _, pattern in ipairs(list) do
        bytes = bytes + take(pattern.text, pattern.is_anchored)
    end
    return ceil(bytes / _M.UNIT) * _M.UNIT
end

--- In which field they take the most.
-- @tparam {table,...} list of `of_plugin`, one at least
-- @treturn string such as "config.deny"
function _M.field_of_plugin(list)
    local by_field, most = {}, nil
    for _, pattern in ipairs(list) do
        local field = pattern.field
        by_field[field] = (by_field[field] or 0) + take(pattern.text, pattern.is_anchored)
        if not most or by_field[field] > by_field[most] then
            most = field
        end
    end
    return "config." .. most
end

--- Why they are too much.
-- @tparam number bytes of all
-- @treturn string
function _M.too_much(bytes)
    local text = "the regular expressions of all routes and plugins take %.1f MB compiled with "
        .. "these; "
        .. "a worker keeps %d MB of them"
    -- Rounded up, so that it is not as much as it keeps.
    return text:format(ceil(bytes / MB * 10) / 10, _M.MOST / MB)
end

return _M
