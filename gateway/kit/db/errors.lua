--- Errors of `kong.db`, as Kong's: a table with `code`, `name`, `message`, `strategy`, and `fields`
-- or `options`; as a text it is the message behind the strategy in brackets.
-- @module gateway.kit.db.errors
-- @usage
-- local err_t = errors.new("SCHEMA_VIOLATION", "postgres", message, fields)
-- return nil, tostring(err_t), err_t

local cjson = require("cjson")

local type = type

local _M = {}

--- Kong's numbers.
_M.codes = {
    INVALID_PRIMARY_KEY = 1,
    SCHEMA_VIOLATION = 2,
    PRIMARY_KEY_VIOLATION = 3,
    FOREIGN_KEY_VIOLATION = 4,
    UNIQUE_VIOLATION = 5,
    NOT_FOUND = 6,
    INVALID_OFFSET = 7,
    DATABASE_ERROR = 8,
    INVALID_SIZE = 9,
    INVALID_UNIQUE = 10,
    INVALID_OPTIONS = 11,
    OPERATION_UNSUPPORTED = 12,
    FOREIGN_KEYS_UNRESOLVED = 13,
    DECLARATIVE_CONFIG = 14,
    TRANSFORMATION_ERROR = 15,
    INVALID_FOREIGN_KEY = 16,
    INVALID_WORKSPACE = 17,
    INVALID_UNIQUE_GLOBAL = 18,
    REFERENCED_BY_OTHERS = 19,
}

--- Their names, by number.
_M.names = {
    "invalid primary key",
    "schema violation",
    "primary key violation",
    "foreign key violation",
    "unique constraint violation",
    "not found",
    "invalid offset",
    "database error",
    "invalid size",
    "invalid unique %s",
    "invalid options",
    "operation unsupported",
    "foreign keys unresolved",
    "invalid declarative configuration",
    "transformation error",
    "invalid foreign key",
    "invalid workspace",
    "invalid global query",
    "referenced by others",
}

local mt = {}

function mt:__tostring()
    local message = type(self.message) == "string" and self.message or self.name
    return self.strategy and ("[%s] %s"):format(self.strategy, message) or message
end

function mt.__concat(a, b)
    return tostring(a) .. tostring(b)
end

--- Makes one.
-- @tparam string|number word of `codes`, or its number
-- @tparam string strategy of `kong.db`
-- @tparam[opt] string message
-- @tparam[opt] table fields
-- @tparam[opt] string name another than Kong's
-- @treturn table
-- @phases any
function _M.new(word, strategy, message, fields, name)
    local code = type(word) == "number" and word or _M.codes[word]
    local err = {
        code = code,
        name = name or _M.names[code],
        message = message or cjson.null,
        strategy = strategy,
    }
    err[code == _M.codes.INVALID_OPTIONS and "options" or "fields"] = fields
    return setmetatable(err, mt)
end

local function quoted(value)
    return type(value) == "string" and ("%q"):format(value)
        or value == cjson.null and "null"
        or tostring(value)
end

--- A key in the words of an error: `{id="5c1f..."}`.
-- @tparam table key
-- @treturn string
-- @phases any
function _M.key(key)
    local names, parts = {}, {}
    for name in pairs(key) do
        names[#names + 1] = tostring(name)
    end
    table.sort(names)
    for i, name in ipairs(names) do
        local value = key[name]
        parts[i] = name .. "=" .. (type(value) == "table" and _M.key(value) or quoted(value))
    end
    return "{" .. table.concat(parts, ",") .. "}"
end

return _M
