--- An entity as the store keeps it: JSON, the same text for the same entity.
--
-- Keys are sorted and numbers exact: Debian's cjson writes 14 digits, which a plugin's large
-- integer does not survive. A table without elements is written as `{}` unless its metatable has
-- `__jsontype` "array"; to Lua and to the schemas both are the same when read.
-- @module gateway.store.entity_text

local cjson = require("cjson")

local concat = table.concat
local error = error
local floor = math.floor
local format = string.format
local getmetatable = getmetatable
local gsub = string.gsub
local pairs = pairs
local pcall = pcall
local sort = table.sort
local type = type

local NULL = cjson.null
local MAX_DEPTH = 100
local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n" }

local json = cjson.new()
json.decode_invalid_numbers(false)

local _M = {}

local write

local function escape(char)
    return ESCAPES[char] or format("\\u%04x", char:byte())
end

local function number_text(number)
    if floor(number) == number and number > -2 ^ 53 and number < 2 ^ 53 then
        return format("%d", number)
    elseif number - number ~= 0 then
        error("not a finite number", 0)
    end
    return format("%.17g", number)
end

local function write_list(out, list, depth)
    out[#out + 1] = "["
    for i = 1, #list do
        out[#out + 1] = i > 1 and "," or nil
        write(out, list[i], depth)
    end
    out[#out + 1] = "]"
end

local function write_map(out, map, depth)
    local keys = {}
    for key in pairs(map) do
        if type(key) ~= "string" then
            error("a key that is no string", 0)
        end
        keys[#keys + 1] = key
    end
    sort(keys)
    out[#out + 1] = "{"
    for i = 1, #keys do
        out[#out + 1] = i > 1 and "," or nil
        write(out, keys[i], depth)
        out[#out + 1] = ":"
        write(out, map[keys[i]], depth)
    end
    out[#out + 1] = "}"
end

write = function(out, value, depth)
    local kind = type(value)
    if kind == "string" then
        out[#out + 1] = '"' .. gsub(value, '[%c"\\]', escape) .. '"'
    elseif kind == "number" then
        out[#out + 1] = number_text(value)
    elseif kind == "boolean" then
        out[#out + 1] = value and "true" or "false"
    elseif value == NULL then
        out[#out + 1] = "null"
    elseif kind ~= "table" then
        error("a " .. kind, 0)
    elseif depth == MAX_DEPTH then
        error("deeper than " .. MAX_DEPTH, 0)
    else
        local meta = getmetatable(value)
        local is_list = #value > 0 or (meta and meta.__jsontype == "array")
        return (is_list and write_list or write_map)(out, value, depth + 1)
    end
end

--- Writes an entity. Names that begin with `__` at the top (what the configuration notes beside an
-- entity) are left out.
-- @tparam table entity checked by its schema
-- @treturn string|nil
-- @treturn nil|string what cannot be written
function _M.encode(entity)
    local own, out = {}, {}
    for key, value in pairs(entity) do
        if type(key) ~= "string" or key:sub(1, 2) ~= "__" then
            own[key] = value
        end
    end
    local ok, err = pcall(write, out, own, 0)
    if not ok then
        return nil, err
    end
    return concat(out)
end

--- Reads a text of `encode`, or any JSON object.
-- @tparam string text
-- @treturn table|nil
function _M.decode(text)
    local ok, entity = pcall(json.decode, text)
    return ok and type(entity) == "table" and entity or nil
end

return _M
