--- Names to addresses through the system's resolver, when a configuration loads.
--
-- getaddrinfo honours /etc/hosts and nsswitch as users expect. It blocks: it runs
-- in nginx's master before there is traffic, or in a thread beside a worker.
-- @module gateway.control.resolver

local socket = require("posix.sys.socket")

local _M = {}

local function is_ipv4(host)
    return host:find("^%d+%.%d+%.%d+%.%d+$") ~= nil
end

--- Whether a host is an address and needs no resolving.
-- @tparam string host name, IPv4 address, or IPv6 address with or without brackets
-- @treturn boolean
function _M.is_address(host)
    return is_ipv4(host) or host:find(":", 1, true) ~= nil
end

--- Wraps an IPv6 address in brackets, as nginx and URLs write it.
-- @tparam string address
-- @treturn string
function _M.bracket(address)
    if address:find(":", 1, true) and address:sub(1, 1) ~= "[" then
        return "[" .. address .. "]"
    end
    return address
end

--- All addresses of a host, IPv6 in brackets, in the resolver's order. Blocks.
-- @tparam string host
-- @treturn {string,...}|nil
-- @treturn string the resolver's reason
function _M.resolve(host)
    if _M.is_address(host) then
        return { _M.bracket(host) }
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
        local address = info.addr and _M.bracket(info.addr)
        if address and not seen[address] and not address:find("%", 1, true) then
            seen[address] = true
            out[#out + 1] = address
        end
    end
    return out
end

--- Resolves names, one after the other. Blocks. Needs nothing of nginx, so that a
-- thread can run it.
-- @tparam {string,...} hosts
-- @treturn table host -> array of addresses, or the resolver's reason as a string
function _M.resolve_all(hosts)
    local answers = {}
    for _, host in ipairs(hosts) do
        local addresses, err = _M.resolve(host)
        answers[host] = addresses or err
    end
    return answers
end

return _M
