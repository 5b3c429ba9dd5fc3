--- Names to addresses through the system's resolver.
--
-- getaddrinfo honours /etc/hosts and nsswitch as users expect. It blocks: it runs in the command
-- before nginx is started, and in threads of the control worker (gateway.upstream.queries).
-- @module gateway.upstream.resolver

local address = require("sluice.address")
local monotonic = require("sluice.clock").monotonic
local socket = require("posix.sys.socket")

local _M = {}

--- All addresses of a host, IPv6 in brackets, in the resolver's order. Blocks.
-- @tparam string host
-- @treturn {string,...}|nil
-- @treturn string the resolver's reason
function _M.resolve(host)
    local literal = address.literal(host)
    if literal then
        return { literal }
    end
    local found, err = socket.getaddrinfo(host, nil, {
        family = socket.AF_UNSPEC,
        socktype = socket.SOCK_STREAM,
    })
    if not found or #found == 0 then
        return nil, err or "no address"
    end
    local out, seen = {}, {}
    for _, info in ipairs(found) do
        -- A link-local address without its interface cannot be connected to.
        local ip = info.addr and address.bracket(info.addr)
        if ip and not seen[ip] and not ip:find("%", 1, true) then
            seen[ip] = true
            out[#out + 1] = ip
        end
    end
    return out
end

--- Resolves names, one after the other. Blocks, for so many seconds and the last name that is asked
-- for in them. Needs nothing of nginx, so that a thread can run it.
-- @tparam {string,...} hosts
-- @tparam number limit seconds, after which no further name is asked for
-- @treturn table host -> array of addresses, or the resolver's reason as a string; nil where it was
--   not asked for
function _M.resolve_all(hosts, limit)
    local found, ends = {}, monotonic() + limit
    for i, host in ipairs(hosts) do
        if i == 1 or monotonic() < ends or address.literal(host) then
            local addresses, err = _M.resolve(host)
            found[host] = addresses or err
        end
    end
    return found
end

return _M
