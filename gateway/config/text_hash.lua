--- The hash by which the text of a declarative file is known.
-- @module gateway.config.text_hash

local sha256 = require("sluice.sha256")

-- Hexadecimal digits of a hash.
local LENGTH = 32
-- Bytes of a file that are read at a time.
local PIECE = 256 * 1024

local _M = {}

--- The hash of a text.
-- @tparam string text
-- @treturn string 32 hexadecimal digits
function _M.of(text)
    return sha256.hex(text):sub(1, LENGTH)
end

--- The hash of a file's text, which is not whole in memory at any time. Blocks on the file.
-- @tparam string path
-- @tparam function pause called before each piece; may throw
-- @treturn string|nil 32 hexadecimal digits
-- @treturn nil|string the system's reason, with the path
function _M.of_file(path, pause)
    local file, err = io.open(path, "rb")
    if not file then
        return nil, err
    end
    local ok, hex = pcall(sha256.hex_of_pieces, function()
        pause()
        return file:read(PIECE)
    end)
    file:close()
    if not ok then
        error(hex, 0)
    end
    return hex:sub(1, LENGTH)
end

return _M
