--- lua-resty-string's random bytes.
-- @module resty.random

local rand = require("resty.openssl.rand")

local _M = { _VERSION = "0.16" }

--- Random bytes; all are fit for secrets, asked for as such or not.
-- @tparam number count
-- @treturn string|nil
-- @phases any
function _M.bytes(count)
    return (rand.bytes(count))
end

return _M
