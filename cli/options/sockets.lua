--- What the kernel means by listen addresses: the sockets that nginx opens for them. Addresses are
-- compared as these, since one has several texts (`*`, `localhost`, `[0::1]`).

local address = require("sluice.address")
local listen_of = require("cli.options.listen")
local posix = require("posix.sys.socket")

local _M = {}

local MAPPED = ("0"):rep(20) .. "ffff"

-- Words with which nginx opens a socket also where a wildcard has the port (ngx_http_core_listen).
local BINDS = { "bind", "backlog", "deferred", "ipv6only", "reuseport", "so_keepalive" }

-- The addresses of a name, as nginx asks for them.
local function resolve(host)
    local found = posix.getaddrinfo(host, nil, {
        family = posix.AF_UNSPEC,
        socktype = posix.SOCK_STREAM,
        flags = posix.AI_ADDRCONFIG,
    })
    local ips = {}
    for _, info in ipairs(found or {}) do
        -- One of a link has its interface behind it, and is no loopback's.
        ips[#ips + 1] = address.is_ip(info.addr) and info.addr or nil
    end
    return ips
end

--- One socket.
-- @tparam string digits of the address, of sluice.address: 8 of IPv4, 32 of IPv6
-- @tparam number port
-- @treturn table `digits`, `port`; `key`, equal where both are; `is_any`: a wildcard
function _M.new(digits, port)
    return {
        digits = digits,
        port = port,
        key = digits .. ":" .. port,
        is_any = not digits:find("[^0]"),
    }
end

--- Whether a socket is one of IPv6.
-- @tparam table socket
-- @treturn boolean
function _M.is_ipv6(socket)
    return #socket.digits == 32
end

--- The sockets of one listen address: a name has one for each of its addresses. Blocks where it is
-- a name that is in no file of this machine.
-- @tparam string text as a setting has it, with the words behind it
-- @treturn {table,...} as `new` makes them, with `text` ("127.0.0.1:80"), `ip`; `given`: as it
--   was written; `said`: that, and what it means where it is a name; `is_dual`: takes IPv4 as
--   well; `is_shared`: with reuseport; `is_bound`: beside a wildcard, too. Empty where a name has
--   no address, or another version wrote what is none to this one
function _M.of(text)
    local listen = listen_of.parse(text)
    if not listen then
        return {}
    end
    local host = listen.host == "*" and "0.0.0.0" or listen.host
    local is_bound = false
    for _, word in ipairs(BINDS) do
        is_bound = is_bound or (listen[word] or false) ~= false
    end
    local found, seen = {}, {}
    local is_ip, given = address.is_ip(host), text:match("^%S+")
    for _, ip in ipairs(is_ip and { host } or resolve(host)) do
        local socket = _M.new(address.digits(ip), listen.port)
        socket.ip, socket.text = ip, address.bracket(ip) .. ":" .. listen.port
        socket.given = given
        socket.said = is_ip and given or ("%s (%s)"):format(given, socket.text)
        socket.is_dual = socket.is_any and listen.ipv6only == "off"
        socket.is_shared, socket.is_bound = listen.reuseport, is_bound
        found[#found + 1] = not seen[socket.key] and socket or nil
        seen[socket.key] = true
    end
    return found
end

--- The sockets of all listen addresses of some settings.
-- @tparam table settings `name` -> array of texts
-- @tparam {string,...} names of the settings to look at
-- @treturn {table,...} as of `of`, and the setting's `name`
function _M.all(settings, names)
    local all = {}
    for _, name in ipairs(names) do
        for _, text in ipairs(settings[name] or {}) do
            for _, socket in ipairs(_M.of(text)) do
                socket.name = name
                all[#all + 1] = socket
            end
        end
    end
    return all
end

-- nginx looks at a port of IPv4 and at that of IPv6 by itself.
local function place_of(socket)
    return #socket.digits .. ":" .. socket.port
end

--- Those that nginx opens: where a port has a wildcard, that takes the connections of the other
-- addresses, too.
-- @tparam table settings as of `all`
-- @tparam {string,...} names
-- @treturn {table,...} as `all` has them
function _M.opened(settings, names)
    local all, has_any, opened = _M.all(settings, names), {}, {}
    for _, socket in ipairs(all) do
        has_any[place_of(socket)] = has_any[place_of(socket)] or socket.is_any
    end
    for _, socket in ipairs(all) do
        local is_open = socket.is_any or socket.is_bound or not has_any[place_of(socket)]
        opened[#opened + 1] = is_open and socket or nil
    end
    return opened
end

-- An IPv4 address that IPv6 has in it is IPv4's.
local function plain(digits)
    return digits:sub(1, #MAPPED) == MAPPED and digits:sub(#MAPPED + 1) or digits
end

--- Whether the kernel keeps one of two listening sockets from being opened beside the other.
-- @tparam table a socket
-- @tparam table b socket
-- @treturn boolean
function _M.overlap(a, b)
    local one, other = plain(a.digits), plain(b.digits)
    if a.port ~= b.port then
        return false
    elseif #one == #other then
        return one == other or a.is_any or b.is_any
    end
    return (a.is_dual or b.is_dual) == true
end

return _M
