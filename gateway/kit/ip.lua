--- `kong.ip`: whose word on addresses is taken.
-- @module gateway.kit.ip

local trusted = require("gateway.kit.trusted")

local _M = {}

--- Whether an address is one of the setting `trusted_ips`.
-- @tparam string ip IPv4 or IPv6
-- @treturn boolean false also where it is no address
-- @phases any
function _M.is_trusted(ip)
    return trusted.has(ip)
end

return _M
