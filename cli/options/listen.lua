--- Reads listen addresses with the words behind them, in nginx's and Kong's notation.

local address = require("sluice.address")

local _M = {}

-- Words that stand alone, beside those with a value (`VALUED`).
local FLAGS = {
    "ssl",
    "http2",
    "proxy_protocol",
    "reuseport",
    "deferred",
    "bind",
    "ask_client_certificate",
}

local BACKLOG_DIGITS = 9
local PORT_DIGITS = 5
local MAX_PORT = 65535

-- What nginx takes behind `so_keepalive=`: on, off, or idle, interval and count, each may be empty.
local function read_keepalive(text)
    local is_right = text == "on"
        or text == "off"
        or (text:find("^%d*[smhd]?:%d*[smhd]?:%d*$") and text ~= "::")
    return is_right and text or nil
end

local VALUED = {
    backlog = function(text)
        local number = text:find("^%d+$") and #text <= BACKLOG_DIGITS and tonumber(text)
        return number and number > 0 and number or nil
    end,
    ipv6only = function(text)
        return (text == "on" or text == "off") and text or nil
    end,
    so_keepalive = read_keepalive,
}

-- Whether digits are the number of a port.
local function is_port(digits)
    local port = #digits <= PORT_DIGITS and tonumber(digits) or 0
    return port >= 1 and port <= MAX_PORT
end

-- Adds one word to what is known of an address; false when it is none, or there twice.
local function add_word(listen, word)
    if listen[word] == false then
        listen[word] = true
        return true
    end
    local name, text = word:match("^([%w_]+)=(.+)$")
    local value = VALUED[name] and listen[name] == nil and VALUED[name](text)
    listen[name or word] = value or listen[name or word]
    return value ~= nil and value ~= false
end

--- Reads one address: "host:port", and words in any order.
-- @tparam string text for example "[::1]:8443 ssl http2 reuseport backlog=64"
-- @treturn table|nil `host`, `port`; `ssl`, `http2`, `proxy_protocol`, `reuseport`, `deferred`,
--   `bind`, `ask_client_certificate`: booleans; `backlog` (a number), `ipv6only` ("on" or "off"),
--   `so_keepalive` (nginx's text): nil where not given. Nil when it is no address
function _M.parse(text)
    local place, words = text:match("^(%S+)(.*)$")
    if not place then
        return nil
    end
    local any_port = place:match("^%*:(%d+)$")
    local found = address.parse(any_port and "localhost:" .. any_port or place)
    local port = found and found.port or 0
    if port == 0 or (found.type == "name" and found.host ~= "localhost") then
        return nil
    end
    local listen = { host = any_port and "*" or found.host, port = port }
    for _, flag in ipairs(FLAGS) do
        listen[flag] = false
    end
    for word in words:gmatch("%S+") do
        if not add_word(listen, word) then
            return nil
        end
    end
    local is_wrong = (listen.ask_client_certificate and not listen.ssl)
        or (listen.ipv6only and not listen.host:find(":", 1, true))
    return not is_wrong and listen or nil
end

-- nginx takes a connection of one port, whatever its address, for one listener's.
local function ports_agree(items)
    local asks = {}
    for _, item in ipairs(items) do
        local listen = _M.parse(item)
        local is_asking = listen.ask_client_certificate
        if asks[listen.port] ~= nil and asks[listen.port] ~= is_asking then
            return false
        end
        asks[listen.port] = is_asking
    end
    return true
end

-- What one that is no address lacks, where that is plain: its host, its port, brackets, or a port
-- that there is. Only the proxy, which asks for certificates of clients, is for everybody.
local function lack(item, is_proxy)
    local place = item:match("^%S+") or ""
    local digits = place:match("^:?(%d+)$") or place:match(":(%d+)$")
    local found = address.parse(place)
    local as_ssl, tls = item:gsub("%stls%f[%s%z]", " ssl")
    if tls == 1 and _M.parse(as_ssl) then
        return ("the word ssl for TLS; write %s"):format(as_ssl)
    elseif found and found.type == "ipv6" and place:sub(1, 1) ~= "[" then
        return "an IPv6 address in brackets, with its port; write it as in [::1]:8000"
    elseif digits and not is_port(digits) then
        return "a port from 1 to 65535"
    elseif digits and #place <= #digits + 1 then
        local host = is_proxy and "0.0.0.0" or "127.0.0.1"
        return ("an address with the port; write %s:%s"):format(host, digits)
    elseif found and not found.port and (found.type ~= "name" or found.host == "localhost") then
        return ("an address with its port; write %s:%d"):format(place, is_proxy and 8000 or 8001)
    end
    return nil
end

--- Reads a list of addresses. Whether two of them are one cli.options.settings looks at.
-- @tparam {string,...} items one address each
-- @tparam table option a row of cli.options: `asks`, `off`
-- @treturn {string,...}|nil the addresses, with single blanks; nil and what would be right
-- @treturn nil|string
-- @treturn nil|boolean whether that lists all words
function _M.read(items, option)
    local expected = "addresses such as 127.0.0.1:8000 or [::1]:8000, each once, with commas"
        .. "; ssl, http2, proxy_protocol, "
        .. (option.asks and "ask_client_certificate, " or "")
        .. "reuseport, backlog=N, deferred, bind, ipv6only=on and so_keepalive=on may follow an "
        .. "address"
        .. (option.off and "; or off" or "")
    local found = {}
    for i, item in ipairs(items) do
        local listen = _M.parse(item)
        if listen and listen.ask_client_certificate and not option.asks then
            return nil, "addresses without ask_client_certificate, which is for proxy_listen alone"
        elseif not listen then
            local said = lack(item, option.asks)
            return nil, said or expected, not said
        end
        found[i] = item:gsub("%s+", " ")
    end
    if #found == 0 then
        return nil, expected, true
    elseif not ports_agree(found) then
        return nil, "ask_client_certificate on all addresses of a port, or on none"
    end
    return found
end

return _M
