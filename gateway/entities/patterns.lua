--- What the regular expressions of routes take in a worker that has compiled them.
--
-- A worker keeps all that are live: compiling takes up to a millisecond each, for which others
-- wait. So together they may take what it has room for. The same pattern of two routes is kept
-- once, and counts twice; those of a service that is disabled do not.
-- @module gateway.entities.patterns

local core = require("sluice.ffi.core")

local C = core.C
local ceil = math.ceil
local ipairs, pairs = ipairs, pairs

local MB = 1024 * 1024

local _M = {}

--- Bytes that they are counted in.
_M.UNIT = 128

--- Bytes that all routes may take.
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

--- Why they are too much.
-- @tparam number bytes of all
-- @treturn string
function _M.too_much(bytes)
    local text = "the regular expressions of all routes take %.1f MB compiled with these; "
        .. "a worker keeps %d MB of them"
    -- Rounded up, so that it is not as much as it keeps.
    return text:format(ceil(bytes / MB * 10) / 10, _M.MOST / MB)
end

return _M
