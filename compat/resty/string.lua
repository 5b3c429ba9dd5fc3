--- lua-resty-string's conversions.
-- @module resty.string

local format = string.format
local match = string.match
local tonumber = tonumber

local _M = { _VERSION = "0.16" }

local digits = {}
for code = 0, 255 do
    digits[string.char(code)] = format("%02x", code)
end

--- Bytes as hexadecimal digits.
-- @tparam string bytes
-- @treturn string
-- @phases any
function _M.to_hex(bytes)
    return (bytes:gsub(".", digits))
end

--- The number that decimal digits are; -1 of anything else.
-- @tparam string text
-- @treturn number
-- @phases any
function _M.atoi(text)
    return match(text, "^%d+$") and tonumber(text) or -1
end

return _M
