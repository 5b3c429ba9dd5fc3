--- Reads the text of a setting as its type.
--
-- Each reader takes (text, option, base) and returns the typed value, or nil and what would be
-- right ("a whole number from 1 to 64"); the caller adds the option, its source and the text.
-- base is the directory that a relative path starts from.

local address = require("sluice.address")

local _M = {}

-- nginx reads a configuration token between quotes, and LuaJIT splits its search path at ";"
-- and "?": a path with one of these would mean something else there.
local PATH_UNSAFE = "[%c\"'$;{}?\\]"

local TIME_UNITS_MS = {
    ms = 1,
    s = 1000,
    m = 60000,
    h = 3600000,
    d = 86400000,
    w = 604800000,
    M = 2592000000,
    y = 31536000000,
}
local TIME_ORDER = { y = 1, M = 2, w = 3, d = 4, h = 5, m = 6, s = 7, ms = 8 }
local TIME_LIMIT_MS = 2147483647

local SIZE_UNITS = { [""] = 1, k = 1024, m = 1048576, g = 1073741824 }

local function split(text)
    local items = {}
    for item in (text .. ","):gmatch("([^,]*),") do
        item = item:match("^%s*(.-)%s*$")
        if item ~= "" then
            items[#items + 1] = item
        end
    end
    return items
end

local function contains(list, item)
    for _, other in ipairs(list) do
        if other == item then
            return true
        end
    end
    return false
end

local function quoted_list(items)
    return table.concat(items, ", ")
end

-- Resolves "." and ".." by text alone, as the path may not exist yet.
local function absolute(text, base)
    local path = text:sub(1, 1) == "/" and text or (base .. "/" .. text)
    local parts = {}
    for part in path:gmatch("[^/]+") do
        if part == ".." then
            parts[#parts] = nil
        elseif part ~= "." then
            parts[#parts + 1] = part
        end
    end
    return "/" .. table.concat(parts, "/")
end

local function read_integer(text, option)
    local number = text:match("^%d+$") and #text <= 12 and tonumber(text)
    if not number or number < option.min or number > option.max then
        return nil, ("a whole number from %d to %d"):format(option.min, option.max)
    end
    return number
end

local function read_count(text, option)
    if text == "auto" then
        return text
    end
    local number, expected = read_integer(text, option)
    if not number then
        return nil, "auto, or " .. expected
    end
    return number
end

local function read_path(text, _, base)
    if text == "" then
        return ""
    end
    if text:find(PATH_UNSAFE) then
        return nil, "a path without control characters and any of \" ' $ ; { } ? \\"
    end
    return absolute(text, base)
end

local function read_path_list(text, option, base)
    local paths = split(text)
    for i, item in ipairs(paths) do
        local path, expected = read_path(item, option, base)
        if not path then
            return nil, expected
        end
        paths[i] = path
    end
    return paths
end

local function read_text(text)
    if text:find("%c") then
        return nil, "text without control characters"
    end
    return text
end

local function read_word(text)
    if not text:match("^[%w_.-]+$") then
        return nil, "letters, digits, dashes, dots and underscores"
    end
    return text
end

local function read_enum(text, option)
    if not contains(option.values, text) then
        return nil, "one of " .. quoted_list(option.values)
    end
    return text
end

local function read_word_list(text, option)
    if text == "off" then
        return {}
    end
    local words = split(text)
    for i, word in ipairs(words) do
        if not contains(option.values, word) or contains({ unpack(words, 1, i - 1) }, word) then
            words = {}
        end
    end
    if #words == 0 then
        return nil, "off, or any of " .. quoted_list(option.values) .. " (each once, with commas)"
    end
    return words
end

local function read_name_list(text)
    local names = split(text)
    for _, name in ipairs(names) do
        if not name:find("^[%w_-]+$") then
            return nil, "names of letters, digits, - and _, separated by commas"
        end
    end
    return names
end

-- Names as a Host header has them, without port; letters in one case.
local function read_host_list(text)
    local names = split(text:lower())
    for _, name in ipairs(names) do
        if not name:find("^[%w_.-]*[%w_-]$") or name:find("^[%d.]+$") then
            return nil, "host names without a port, separated by commas"
        end
    end
    return names
end

-- What stands in a header; the messages about it do not show it.
local function read_secret(text, option)
    if text ~= "" and (text:find("[^!-~]") or #text < option.min or #text > option.max) then
        return nil,
            ("from %d to %d letters, digits and signs, no blanks"):format(option.min, option.max)
    end
    return text
end

local function read_boolean(text)
    if text == "on" or text == "true" then
        return true
    end
    if text == "off" or text == "false" then
        return false
    end
    return nil, "on or off"
end

-- nginx's words for a syslog's parameters (ngx_syslog_parse_args); those of the facilities and
-- severities are its own to check.
local SYSLOG_PARAMETERS = {
    server = "^[%w_.:/%[%]-]+$",
    facility = "^%l+%d?$",
    severity = "^%l+$",
    tag = "^[%w_]+$",
}
local SYSLOG_TAG_MAX = 32

-- Whether "server=...,facility=..." is right.
local function is_syslog(parameters)
    local given = {}
    for word in (parameters .. ","):gmatch("([^,]*),") do
        local name, value = word:match("^(%l+)=(.+)$")
        name = name or word
        local pattern = SYSLOG_PARAMETERS[name]
        local is_right = word == "nohostname" or (pattern and value and value:find(pattern))
        if given[name] or not is_right then
            return false
        end
        given[name] = value or true
    end
    return given.server ~= nil and (not given.tag or #given.tag <= SYSLOG_TAG_MAX)
end

-- A file relative to the prefix stays relative: nginx -p and the prefix's owner decide.
local function read_log(text, option)
    if contains(option.values, text) then
        return text
    end
    if option.syslog and text:find("^syslog:") then
        if not is_syslog(text:sub(#"syslog:" + 1)) then
            return nil,
                "syslog:server=ADDRESS, followed by any of ,facility=WORD ,severity=WORD ,tag=WORD "
                    .. ",nohostname"
        end
        return text
    end
    if text == "" or text:find(PATH_UNSAFE) or text:find("%s") or text:find("^%a+:") then
        local syslog = option.syslog and ", or syslog:server=ADDRESS" or ""
        return nil, "a file, or one of " .. quoted_list(option.values) .. syslog
    end
    return text
end

-- An nginx log format, or a word for one. Whether there are such variables nginx says.
local function read_log_format(text, option)
    if contains(option.values, text) then
        return text
    end
    local rest = text:gsub("%${[%w_]+}", ""):gsub("%$[%w_]+", "")
    if rest:find("%$") then
        return nil, "a name behind each $ (`$status`, `${status}`)"
    elseif text == "" or text:find("%c") then
        return nil, "a line of text without control characters"
    elseif rest == text then
        return nil, quoted_list(option.values) .. ", or a format with variables (`$status`)"
    end
    return text
end

--- Milliseconds of an nginx time.
-- @tparam string text such as "60s", "1m30s", "500ms", "75" (seconds)
-- @treturn number|nil nil when it is none
local function time_ms(text)
    if text:match("^%d+$") then
        return tonumber(text) * 1000
    end
    local total, last, rest = 0, 0, text
    while rest ~= "" do
        local digits, unit, tail = rest:match("^(%d+)(%a+)(.*)$")
        local order = TIME_ORDER[unit]
        if not order or order <= last then
            return nil
        end
        total = total + tonumber(digits) * TIME_UNITS_MS[unit]
        last, rest = order, tail
    end
    return text ~= "" and total or nil
end

local function read_time(text, option)
    local ms = time_ms(text)
    if not ms or ms > TIME_LIMIT_MS or ms < (option.min or 0) then
        local least = option.min and ", more than 0" or ""
        return nil, "a time such as 500ms, 60s or 1m30s, at most 24 days" .. least
    end
    return text
end

--- Bytes of an nginx size.
-- @tparam string text such as "8k", "1m", "512"
-- @treturn number|nil nil when it is none
local function size_bytes(text)
    local digits, unit = text:lower():match("^(%d+)([kmg]?)$")
    if not digits or #digits > 12 then
        return nil
    end
    return tonumber(digits) * SIZE_UNITS[unit]
end

_M.size_bytes = size_bytes

local function read_size(text, option)
    local bytes = size_bytes(text)
    if not bytes then
        return nil, "a size such as 512, 8k or 1m"
    end
    if bytes < (option.min or 0) then
        return nil, ("a size of at least %d bytes"):format(option.min)
    end
    if bytes > (option.max or math.huge) then
        return nil, ("a size of at most %d bytes"):format(option.max)
    end
    return text:lower()
end

local function read_buffers(text)
    local count, size = text:match("^(%d+)%s+(%w+)$")
    local bytes = size and size_bytes(size)
    if not bytes or tonumber(count) < 1 or tonumber(count) > 1024 or bytes < 256 then
        return nil, 'a number and a size, such as "4 8k"'
    end
    return ("%d %s"):format(tonumber(count), size:lower())
end

local function read_cidr_list(text)
    local networks = split(text)
    for _, network in ipairs(networks) do
        if not address.is_ip_or_cidr(network) then
            return nil, "addresses or networks such as 10.0.0.0/8, ::1, separated by commas"
        end
    end
    return networks
end

--- Splits "host:port flags" of a listen address.
-- @tparam string text for example "[::1]:8443 ssl http2 reuseport backlog=64"
-- @treturn table|nil { host, port, reuseport, ssl, http2, ask_client_certificate, backlog }: nil
--   when it is none
function _M.parse_listen(text)
    local place, flags = text:match("^(%S+)(.*)$")
    if not place then
        return nil
    end
    local any_port = place:match("^%*:(%d+)$")
    local found = address.parse(any_port and "localhost:" .. any_port or place)
    local port = found and found.port or 0
    if port == 0 or (found.type == "name" and found.host ~= "localhost") then
        return nil
    end
    local listen = {
        host = any_port and "*" or found.host,
        port = port,
        reuseport = false,
        ssl = false,
        http2 = false,
        ask_client_certificate = false,
    }
    for flag in flags:gmatch("%S+") do
        local backlog = flag:match("^backlog=(%d+)$")
        if listen[flag] == false then
            listen[flag] = true
        elseif backlog and not listen.backlog and #backlog <= 9 and tonumber(backlog) > 0 then
            listen.backlog = tonumber(backlog)
        else
            return nil
        end
    end
    if listen.ask_client_certificate and not listen.ssl then
        return nil
    end
    return listen
end

-- nginx takes a connection of one port, whatever its address, for one listener's.
local function ports_agree(items)
    local asks = {}
    for _, item in ipairs(items) do
        local listen = _M.parse_listen(item)
        local is_asking = listen.ask_client_certificate
        if asks[listen.port] ~= nil and asks[listen.port] ~= is_asking then
            return false
        end
        asks[listen.port] = is_asking
    end
    return true
end

local function read_listen(text, option)
    if option.off and text == "off" then
        return {}
    end
    local expected = "addresses such as 127.0.0.1:8000 or [::1]:8000, each once, with commas"
        .. (option.tls and "; ssl, http2, ask_client_certificate" or "")
        .. "; reuseport and backlog=N may follow an address"
        .. (option.off and "; or off" or "")
    local items, seen = split(text), {}
    for i, item in ipairs(items) do
        local listen = _M.parse_listen(item)
        local key = listen and (listen.host .. " " .. listen.port)
        local needs_tls = listen and (listen.ssl or listen.http2)
        if item:find(" proxy_protocol%f[%s%z]") then
            return nil,
                "addresses without proxy_protocol, which Sluice does not take: let the balancer in "
                    .. "front speak HTTP and send X-Real-IP, and name it in trusted_ips"
        elseif not listen or seen[key] or (needs_tls and not option.tls) then
            return nil, expected
        end
        seen[key] = true
        items[i] = item:gsub("%s+", " ")
    end
    if #items == 0 then
        return nil, expected
    elseif not ports_agree(items) then
        return nil, "ask_client_certificate behind all addresses of a port, or none"
    end
    return items
end

_M.readers = {
    boolean = read_boolean,
    buffers = read_buffers,
    cidr_list = read_cidr_list,
    count = read_count,
    enum = read_enum,
    host_list = read_host_list,
    integer = read_integer,
    listen = read_listen,
    name_list = read_name_list,
    log = read_log,
    log_format = read_log_format,
    path = read_path,
    path_list = read_path_list,
    secret = read_secret,
    size = read_size,
    text = read_text,
    time = read_time,
    word = read_word,
    word_list = read_word_list,
}

--- Reads the text of one option.
-- @tparam table option a row of cli.options
-- @tparam string text the value as it was written
-- @tparam string base directory that a relative path starts from
-- @treturn any|nil the typed value; nil and what would be right when the text is wrong
function _M.read(option, text, base)
    return _M.readers[option.type](text, option, base)
end

_M.absolute = absolute

return _M
