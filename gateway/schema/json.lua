--- Writes JSON for the admin listener.
--
-- Debian's lua-cjson writes every empty table as `{}`, while a client of Kong that reads a
-- list needs `[]`. Keys are sorted, so that equal responses are equal texts.
-- @module gateway.schema.json

local cjson = require("cjson")
local text_rules = require("gateway.schema.text")

local concat = table.concat
local floor = math.floor
local format = string.format
local gsub = string.gsub
local sort = table.sort

local NULL = cjson.null
-- Items of a list between two pauses.
local STRIDE = 16
local ESCAPES = {
    ['"'] = '\\"',
    ["\\"] = "\\\\",
    ["\b"] = "\\b",
    ["\f"] = "\\f",
    ["\n"] = "\\n",
    ["\r"] = "\\r",
    ["\t"] = "\\t",
}

local array_mt = { __jsontype = "array" }

local _M = { null = NULL }

local write

local function escape(char)
    return ESCAPES[char] or format("\\u%04x", char:byte())
end

local function write_string(out, text)
    if not text_rules.utf8(text) then
        -- What a client sent comes back in some messages; JSON is UTF-8.
        text = gsub(text, "[\128-\255]", "?")
    end
    out[#out + 1] = '"' .. gsub(text, '[%c"\\]', escape) .. '"'
end

local function write_number(out, number)
    if number ~= number or number == math.huge or number == -math.huge then
        out[#out + 1] = "null"
    elseif floor(number) == number and number > -2 ^ 53 and number < 2 ^ 53 then
        out[#out + 1] = format("%d", number)
    else
        out[#out + 1] = format("%.14g", number)
    end
end

local function write_array(out, array)
    out[#out + 1] = "["
    for i = 1, #array do
        if i > 1 then
            out[#out + 1] = ","
        end
        if out.pause and i % STRIDE == 0 then
            out.pause()
        end
        write(out, array[i])
    end
    out[#out + 1] = "]"
end

local function write_object(out, object)
    local keys = {}
    for key in pairs(object) do
        keys[#keys + 1] = key
    end
    sort(keys)
    out[#out + 1] = "{"
    for i, key in ipairs(keys) do
        if i > 1 then
            out[#out + 1] = ","
        end
        write_string(out, key)
        out[#out + 1] = ":"
        write(out, object[key])
    end
    out[#out + 1] = "}"
end

write = function(out, value)
    local kind = type(value)
    if kind == "string" then
        write_string(out, value)
    elseif kind == "number" then
        write_number(out, value)
    elseif kind == "boolean" then
        out[#out + 1] = value and "true" or "false"
    elseif kind == "table" then
        local meta = getmetatable(value)
        if value[1] ~= nil or (meta and meta.__jsontype == "array") then
            write_array(out, value)
        else
            write_object(out, value)
        end
    else
        out[#out + 1] = "null"
    end
end

--- Marks a table as an array, also when it is empty.
-- @tparam table list
-- @treturn table the same table
-- @phases any
function _M.array(list)
    return setmetatable(list, array_mt)
end

--- Encodes a value. The cost is linear in the value's size.
-- Functions become null; keys of objects must be strings, tables without a cycle.
-- @tparam any value
-- @tparam[opt] function pause called every few items of a list, may yield
-- @treturn string
-- @phases any
function _M.encode(value, pause)
    local out = { pause = pause }
    write(out, value)
    return concat(out)
end

--- Appends a value's JSON to an array of pieces: for what is printed and never one text. Many
-- texts that look alike are slow to make, as LuaJIT hashes 16 bytes of a long one.
-- @tparam table out
-- @tparam any value
-- @phases any
_M.append = write

return _M
