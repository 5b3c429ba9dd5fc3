--- SHA-256, as text.
-- @module sluice.sha256

local digest = require("openssl.digest")

local format = string.format

local _M = {}

local function hex_of(byte)
    return format("%02x", byte:byte())
end

--- The digest of a text.
-- @tparam string text
-- @treturn string 64 hexadecimal digits, in lower case
-- @phases all
function _M.hex(text)
    return (digest.new("sha256"):final(text):gsub(".", hex_of))
end

--- The digest of a text that comes in pieces.
-- @tparam function next_piece gives the next one, nil at the end; may throw
-- @treturn string as of `hex`
-- @phases all
function _M.hex_of_pieces(next_piece)
    local found = digest.new("sha256")
    for piece in next_piece do
        found:update(piece)
    end
    return (found:final():gsub(".", hex_of))
end

return _M
