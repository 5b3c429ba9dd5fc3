--- How much long regular expressions of routes take, compiled.
--
-- A worker keeps 32 MB of compiled patterns. Short ones, of at most 256 bytes, are compiled again
-- in less time than their request takes, so there may be any number of them. Long ones take up to
-- a millisecond, and a worker has little time for that: all of a file are to fit beside the short
-- ones.
-- @module gateway.entities.long_patterns

local core = require("sluice.ffi.core")

local format = string.format

local C = core.C

local MB = 1024 * 1024

local _M = {}
local methods = {}
local mt = { __index = methods }

--- Bytes that all together may take: three quarters of what a worker keeps.
_M.MOST = C.SLUICE_CORE_REGEXES_BYTES * 3 / 4

--- Begins to count.
-- @treturn table with `bytes`, of all, the same ones too
function _M.new()
    return setmetatable({ bytes = 0, distinct = 0, seen = {} }, mt)
end

-- What a pattern takes; 0: it is a short one, or is there already.
local function take(self, pattern, is_path)
    if #pattern <= C.SLUICE_CORE_FREE_BYTES or self.distinct > _M.MOST then
        return
    end
    local key = (is_path and "/" or "*") .. pattern
    local bytes = self.seen[key]
    if not bytes then
        bytes = tonumber(C.sluice_core_regex_bytes(pattern, #pattern, is_path and 1 or 0))
        self.seen[key] = bytes
        self.distinct = self.distinct + bytes
    end
    self.bytes = self.bytes + bytes
end

local function add_all(self, route)
    for i, path in ipairs(route.paths or {}) do
        if path:sub(1, 1) == "~" then
            take(self, path:sub(2), true)
            if self.distinct > _M.MOST then
                return format("paths[%d]", i - 1)
            end
        end
    end
    for name, values in pairs(route.headers or {}) do
        for _, value in ipairs(values) do
            if value:sub(1, 2) == "~*" then
                take(self, value:sub(3), false)
            end
        end
        if self.distinct > _M.MOST then
            return "headers." .. name
        end
    end
    return nil
end

--- Counts those of a route, unless it was too much before. Takes as long as to compile them.
-- @tparam table route checked by its schema
-- @treturn boolean|nil true
-- @treturn nil|string the field that is too much
-- @treturn nil|string why
function methods:add(route)
    if self.distinct > _M.MOST then
        return true
    end
    local field = add_all(self, route)
    if not field then
        return true
    end
    local message = "long regular expressions take %.1f MB with those before, compiled; "
        .. "a worker keeps %d MB of them"
    return nil, field, format(message, self.distinct / MB, _M.MOST / MB)
end

return _M
