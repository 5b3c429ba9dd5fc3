--- The types of fields: what is one of each, and its name in messages.
-- @module gateway.schema.types

local cjson = require("cjson")

local floor = math.floor

local NULL = cjson.null

local _M = {}

--- type -> "a boolean", "an array"
_M.NAMES = {
    any = "any value",
    array = "an array",
    boolean = "a boolean",
    foreign = "a reference",
    ["function"] = "a function",
    integer = "an integer",
    json = "JSON",
    map = "a map",
    number = "a number",
    record = "a record",
    set = "a set",
    string = "a string",
}

local function is_sequence(value)
    if type(value) ~= "table" then
        return false
    end
    local n = 0
    for _ in pairs(value) do
        n = n + 1
    end
    return n == #value
end

--- Whether a value counts as left out.
function _M.is_null(value)
    return value == nil or value == NULL
end

--- Whether a value is of a type; of what is in it nothing is said.
-- @param value
-- @tparam string wanted a type of fields
-- @treturn boolean
function _M.has(value, wanted)
    if wanted == "array" or wanted == "set" then
        return is_sequence(value)
    elseif wanted == "map" then
        return type(value) == "table"
    elseif wanted == "record" then
        return type(value) == "table" and value[1] == nil
    elseif wanted == "integer" then
        return type(value) == "number" and floor(value) == value and value - value == 0
    elseif wanted == "number" then
        return type(value) == "number" and value - value == 0
    end
    return wanted == "any" or wanted == "foreign" or wanted == "json" or type(value) == wanted
end

return _M
