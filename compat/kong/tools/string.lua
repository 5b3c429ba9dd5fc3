--- Kong's functions for texts.
-- @module kong.tools.string

local crypto = require("sluice.ffi.libcrypto")
local stringx = require("pl.stringx")

local byte = string.byte
local error = error
local format = string.format
local ipairs = ipairs
local match = string.match
local sub = string.sub
local tonumber = tonumber
local tostring = tostring
local type = type

local UNITS = { k = { "KiB", 2 ^ 10 }, m = { "MiB", 2 ^ 20 }, g = { "GiB", 2 ^ 30 } }

local _M = {
    --- Penlight's `join(separator, list)`.
    join = stringx.join,
    --- Penlight's `split(text, separator, plain, count)`.
    split = stringx.split,
}

--- A text without white space around it. Takes time with its length.
-- @tparam any value nil is ""
-- @treturn string
-- @phases any
function _M.strip(value)
    if value == nil then
        return ""
    end
    local text = tostring(value)
    local from = text:find("%S")
    return from and match(sub(text, from), "^(.*%S)") or ""
end

-- How many bytes follow a first byte, and what the first of them may be (Unicode, table 3-7).
local function sequence(first)
    if first < 0x80 then
        return 0
    elseif first >= 0xc2 and first <= 0xdf then
        return 1, 0x80, 0xbf
    elseif first >= 0xe0 and first <= 0xef then
        return 2, first == 0xe0 and 0xa0 or 0x80, first == 0xed and 0x9f or 0xbf
    elseif first >= 0xf0 and first <= 0xf4 then
        return 3, first == 0xf0 and 0x90 or 0x80, first == 0xf4 and 0x8f or 0xbf
    end
    return nil
end

--- Whether a text is UTF-8.
-- @tparam any value
-- @treturn boolean
-- @treturn number|nil where it is not
-- @phases any
function _M.validate_utf8(value)
    local text = tostring(value)
    local at = 1
    while at <= #text do
        local more, low, high = sequence(byte(text, at))
        if not more then
            return false, at
        end
        for i = 1, more do
            local code = byte(text, at + i)
            if not code or code < (i == 1 and low or 0x80) or code > (i == 1 and high or 0xbf) then
                return false, at
            end
        end
        at = at + 1 + more
    end
    return true
end

--- Bytes in a unit.
-- @tparam number bytes
-- @tparam[opt="b"] string unit b, k, m or g
-- @tparam[opt=2] number scale digits behind the point
-- @treturn string such as "5.24 MiB"
-- @raise "scale must be ...", "invalid unit ..."
-- @phases any
function _M.bytes_to_str(bytes, unit, scale)
    local name = (unit or ""):lower()
    if name == "" or name == "b" then
        return format("%d", bytes)
    end
    scale = scale or 2
    if type(scale) ~= "number" or scale < 0 then
        error("scale must be equal or greater than 0", 2)
    end
    local found = UNITS[name]
    if not found then
        error(format("invalid unit '%s' (expected 'k/K', 'm/M', or 'g/G')", unit), 2)
    end
    return format("%." .. scale .. "f %s", bytes / found[2], found[1])
end

--- Bytes of a size as nginx.conf has it, such as "10m".
-- @tparam string text
-- @treturn number 0 of what is none
-- @phases any
function _M.parse_ngx_size(text)
    if type(text) ~= "string" then
        error("Parameter #1 must be a string", 2)
    end
    local unit = UNITS[sub(text, -1):lower()]
    local number = tonumber(unit and sub(text, 1, -2) or text) or 0
    return number * (unit and unit[2] or 1)
end

local function decode(value)
    if type(value) ~= "string" then
        return value
    end
    local url = value:gsub("[+/]", { ["+"] = "-", ["/"] = "_" })
    return crypto.decode_base64url(url) or value
end

--- What base64 stands for, also base64url; of a list each, in place. What is none stays.
-- @tparam any value
-- @treturn any
-- @phases any
function _M.try_decode_base64(value)
    if type(value) ~= "table" then
        return decode(value)
    end
    for i, one in ipairs(value) do
        value[i] = decode(one)
    end
    return value
end

--- Underscores for dashes.
-- @phases any
function _M.replace_dashes(text)
    return (text:gsub("-", "_"))
end

--- The same in small letters.
-- @phases any
function _M.replace_dashes_lower(text)
    return (text:lower():gsub("-", "_"))
end

return _M
