--- lua-resty-string's digests, on the system's libcrypto.
-- @module resty.sha

local digest = require("resty.openssl.digest")

local _M = {}

--- Makes the module of a digest: `new()` gives an object with `update(text)`, `final()`, `reset()`.
-- @tparam string name
-- @treturn table
-- @phases any
function _M.of(name)
    return {
        _VERSION = "0.16",
        new = function()
            return digest.new(name)
        end,
    }
end

return _M
