--- Names to addresses through the system's resolver, when a configuration loads.
--
-- getaddrinfo honours /etc/hosts and nsswitch as users expect. It blocks: it runs
-- in nginx's master before there is traffic, or in a thread beside a worker.
-- @module gateway.control.resolver

local address = require("sluice.address")
local monotonic = require("sluice.clock").monotonic
local socket = require("posix.sys.socket")

-- For all names of a configuration: whoever waits for the thread waits as long.
local LIMIT_SECONDS = 30

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

--- Resolves names, one after the other. Blocks, for 30 seconds and the last name that is asked for
-- in them. Needs nothing of nginx, so that a thread can run it.
-- @tparam {string,...} hosts
-- @tparam[opt=30] number limit seconds, after which no further name is asked for
-- @treturn table host -> array of addresses, or the resolver's reason as a string
function _M.resolve_all(hosts, limit)
    limit = limit or LIMIT_SECONDS
    local found, ends = {}, monotonic() + limit
    for _, host in ipairs(hosts) do
        if monotonic() < ends or address.literal(host) then
            local addresses, err = _M.resolve(host)
            found[host] = addresses or err
        else
            found[host] = ("not asked: other names have taken %g seconds"):format(limit)
        end
    end
    return found
end

return _M
