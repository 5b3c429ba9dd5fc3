--- The rules that a field of a schema can carry.
-- Each is a function `(value, argument) -> true` or `nil, message`, and true where this version
-- is what does not support the value; a schema
-- names it as an attribute of the field (`between = { 0, 65535 }`). They run in
-- the order of `order`, after the type has been checked, and the first that
-- fails is reported. The words are those that users of Kong know.
-- @module gateway.schema.rules

local cjson = require("cjson")
local core = require("sluice.ffi.core")

local concat = table.concat
local format = string.format
local lower = string.lower

local NULL = cjson.null
local HEX4 = "%x%x%x%x"
local UUID_LENGTH = 36
local UUID = "^" .. table.concat({ HEX4 .. HEX4, HEX4, HEX4, HEX4, HEX4:rep(3) }, "%-") .. "$"

local _M = {}

local function text(value)
    return value == NULL and "null" or tostring(value)
end

--- A value in a message.
-- @function text
_M.text = text

local function texts(list)
    local out = {}
    for i, item in ipairs(list) do
        out[i] = text(item)
    end
    return concat(out, ", ")
end

--- Whether a list has a value.
-- @tparam table list
-- @param value
-- @treturn boolean
function _M.contains(list, value)
    for _, item in ipairs(list) do
        if item == value then
            return true
        end
    end
    return false
end

local function length(value)
    if type(value) == "string" or #value > 0 then
        return #value
    end
    local n = 0
    for _ in pairs(value) do
        n = n + 1
    end
    return n
end

local function quoted(words)
    local out = {}
    for i, word in ipairs(words) do
        out[i] = type(word) == "table" and "(" .. quoted(word) .. ")" or "'" .. text(word) .. "'"
    end
    return concat(out, ", ")
end

--- Quotes words for a message: `'a', 'b'`.
-- @tparam table words strings, or arrays of strings
-- @treturn string
_M.quoted = quoted

--- The id that a text stands for, where it is one: UUIDs in capitals are the same (RFC 4122,
-- section 3), and are stored in small letters.
-- @tparam string id
-- @treturn string the same where it is no UUID
function _M.normal_id(id)
    local normal = #id == UUID_LENGTH and lower(id) or id
    -- Most are in small letters, and the JIT compiles no pattern.
    return normal ~= id and id:find(UUID) and normal or id
end

_M.order = {
    "eq",
    "ne",
    "not_one_of",
    "one_of",
    "gt",
    "timestamp",
    "uuid",
    "between",
    "len_eq",
    "len_min",
    "len_max",
    "starts_with",
    "not_match",
    "match_none",
    "match",
    "match_all",
    "match_any",
    "contains",
    "custom_validator",
    -- Behind a validator of the field's own, which may say more.
    "is_regex",
    "mutually_exclusive_subsets",
    "supported",
}

local check = {}
_M.check = check

function check.eq(value, wanted)
    return value == wanted or nil, "value must be " .. text(wanted)
end

function check.ne(value, unwanted)
    return value ~= unwanted or nil, "value must not be " .. text(unwanted)
end

function check.one_of(value, list)
    if not _M.contains(list, value) then
        return nil, "expected one of: " .. texts(list)
    end
    return true
end

function check.not_one_of(value, list)
    if _M.contains(list, value) then
        return nil, "must not be one of: " .. texts(list)
    end
    return true
end

function check.gt(value, limit)
    return value > limit or nil, "value must be greater than " .. tostring(limit)
end

function check.timestamp(value)
    return value > 0 or nil, "expected a valid timestamp"
end

--- Whether a text is a UUID.
-- @tparam string value
-- @treturn boolean
function _M.is_uuid(value)
    return #value == UUID_LENGTH and value:find(UUID) ~= nil
end

function check.uuid(value)
    return value:find(UUID) ~= nil or nil, "expected a valid UUID"
end

function check.is_regex(value, is_wanted)
    local ok = not is_wanted or core.check_pattern(value, false)
    return ok or nil, "not a valid regex: " .. value
end

function check.between(value, limits)
    if value < limits[1] or value > limits[2] then
        return nil, format("value should be between %.14g and %.14g", limits[1], limits[2])
    end
    return true
end

function check.len_eq(value, n)
    return length(value) == n or nil, "length must be " .. n
end

function check.len_min(value, n)
    return length(value) >= n or nil, "length must be at least " .. n
end

function check.len_max(value, n)
    return length(value) <= n or nil, "length must be at most " .. n
end

function check.starts_with(value, prefix)
    return value:sub(1, #prefix) == prefix or nil, "should start with: " .. prefix
end

function check.match(value, pattern)
    return value:find(pattern) ~= nil or nil, "invalid value: " .. value
end

function check.not_match(value, pattern)
    return value:find(pattern) == nil or nil, "invalid value: " .. value
end

function check.match_all(value, list)
    for _, item in ipairs(list) do
        if not value:find(item.pattern) then
            return nil, item.err
        end
    end
    return true
end

function check.match_none(value, list)
    for _, item in ipairs(list) do
        if value:find(item.pattern) then
            return nil, item.err
        end
    end
    return true
end

function check.match_any(value, any)
    for _, pattern in ipairs(any.patterns) do
        if value:find(pattern) then
            return true
        end
    end
    return nil, any.err
end

function check.contains(list, wanted)
    return _M.contains(list, wanted) or nil, "expected to contain: " .. tostring(wanted)
end

function check.custom_validator(value, fn)
    local ok, message, is_unsupported = fn(value)
    return ok or nil, message or "failed validating: " .. text(value), is_unsupported
end

function check.mutually_exclusive_subsets(list, subsets)
    local of = {}
    for _, subset in ipairs(subsets) do
        for _, item in ipairs(subset) do
            of[item] = subset
        end
    end
    local hit, seen = {}, {}
    for _, item in ipairs(list) do
        local subset = of[item]
        if subset and not seen[subset] then
            seen[subset] = true
            hit[#hit + 1] = subset
        end
    end
    return #hit < 2 or nil, "these sets are mutually exclusive: " .. quoted(hit)
end

-- Ours: what Kong knows and this version cannot do yet must be said, not
-- ignored. `supported = false` refuses any value, a list names the good ones.
function check.supported(value, list)
    if not list then
        local empty = type(value) == "table" and length(value) == 0
        return empty or nil, "this field is not supported by this version", true
    end
    if _M.contains(list, value) then
        return true
    end
    local message = "'%s' is not supported by this version (supported: %s)"
    return nil, format(message, text(value), texts(list)), true
end

return _M
