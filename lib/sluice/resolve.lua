--- Names to addresses, for clients that we write: asks whoever has been set to know them.
--
-- The gateway sets its resolver, which knows the machine's hosts file and search domains. Where
-- nobody has, as in an nginx without the gateway, nginx's own `resolver` is left to ask.
-- @module sluice.resolve

local address = require("sluice.address")

local _M = {}

local ask

--- Sets who knows.
-- @tparam function|nil resolver `resolver(host, limit)` gives a list of addresses, IPv6 in
--   brackets, or nil and why not; it may yield, for at most `limit` seconds
-- @phases any
function _M.use(resolver)
    ask = resolver
end

--- The addresses of a host, or the host itself where nginx's sockets have to ask. Yields as the
-- resolver does.
-- @tparam string host name or address
-- @tparam number limit seconds to wait
-- @treturn {string,...}|nil
-- @treturn string|nil the resolver's reason
-- @phases as cosockets
function _M.addresses(host, limit)
    local known = address.literal(host)
    if known or not ask then
        return { known or host }
    end
    return ask(host, limit)
end

return _M
