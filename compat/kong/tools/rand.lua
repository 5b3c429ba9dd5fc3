--- Kong's random bytes and texts.
-- @module kong.tools.rand

local rand = require("resty.openssl.rand")

local byte = string.byte
local concat = table.concat
local sub = string.sub

local CHARACTERS = 32
local ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
-- Bytes beyond are left out: all characters are equally likely.
local LIMIT = 256 - 256 % #ALPHABET

local _M = {}

--- Random bytes, fit for secrets.
-- @tparam number count
-- @treturn string|nil
-- @treturn string|nil
-- @phases any
function _M.get_rand_bytes(count)
    return rand.bytes(count)
end

--- 32 random letters and digits, fit for secrets.
-- @treturn string
-- @phases any
function _M.random_string()
    local out = {}
    while #out < CHARACTERS do
        local bytes = assert(rand.bytes(CHARACTERS))
        for i = 1, CHARACTERS do
            local code = byte(bytes, i)
            if code < LIMIT and #out < CHARACTERS then
                local at = code % #ALPHABET + 1
                out[#out + 1] = sub(ALPHABET, at, at)
            end
        end
    end
    return concat(out)
end

return _M
