--- Base64 (RFC 4648), with the alphabet of section 4 or that of section 5, which URLs take.
-- @module sluice.base64

local byte = string.byte
local char = string.char
local floor = math.floor

local VALUES = {}
for i = 0, 25 do
    VALUES[65 + i], VALUES[97 + i] = i, 26 + i
end
for i = 0, 9 do
    VALUES[48 + i] = 52 + i
end
for at, value in pairs({ ["+"] = 62, ["-"] = 62, ["/"] = 63, ["_"] = 63 }) do
    VALUES[byte(at)] = value
end

local _M = {}

--- Decodes a text, with or without its padding.
-- @tparam string text
-- @treturn string|nil nil where it is none
-- @phases all
function _M.decode(text)
    text = text:gsub("([^=])==?$", "%1")
    if #text % 4 == 1 then
        return nil
    end
    local bits, count, out = 0, 0, {}
    for i = 1, #text do
        local value = VALUES[byte(text, i)]
        if not value then
            return nil
        end
        bits, count = (bits * 64 + value) % 16777216, count + 6
        if count >= 8 then
            count = count - 8
            out[#out + 1] = char(floor(bits / 2 ^ count) % 256)
        end
    end
    return table.concat(out)
end

--- Decodes a text in the alphabet for URLs, without padding or with all of it, as the core does.
-- @tparam string text
-- @treturn string|nil nil where it is none
-- @phases all
function _M.decode_url(text)
    local letters, padding = text:match("^([%w_-]*)(=*)$")
    local is_padded = padding and #padding <= 2 and #text % 4 == 0
    return (padding == "" or is_padded) and _M.decode(letters) or nil
end

local ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

--- Encodes a text with the alphabet for URLs, without padding.
-- @tparam string text
-- @treturn string
-- @phases all
function _M.encode_url(text)
    local out = {}
    for at = 1, #text, 3 do
        local a, b, c = byte(text, at, at + 2)
        local bits = a * 65536 + (b or 0) * 256 + (c or 0)
        for digit = 1, b and (c and 4 or 3) or 2 do
            local place = floor(bits / 64 ^ (4 - digit)) % 64 + 1
            out[#out + 1] = ALPHABET:sub(place, place)
        end
    end
    return table.concat(out)
end

return _M
