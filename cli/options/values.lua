--- Reads the text of a setting as its type.
--
-- Each reader takes (text, option, base) and returns the typed value, or nil and what would be
-- right ("a whole number from 1 to 64"); the caller adds the option, its source and the text.
-- base is the directory that a relative path starts from.

local address = require("sluice.address")
local base64 = require("sluice.base64")
local listen = require("cli.options.listen")

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

local function read_path(text, option, base)
    if text == "" then
        if option.is_needed then
            return nil, "a path"
        end
        return ""
    end
    if text == "-" then
        return nil, "a path: a setting cannot be standard input (./- is a file of this name)"
    elseif text:find(PATH_UNSAFE) then
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

-- Any text of any lines, which others read.
local function read_document(text)
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

-- Words as nginx has them, where it is told of them as they are.
local function read_words(text, option)
    local words = {}
    for word in text:gmatch("%S+") do
        if not contains(option.values, word) or contains(words, word) then
            return nil, "any of " .. quoted_list(option.values) .. " (each once, with blanks)"
        end
        words[#words + 1] = word
    end
    if #words == 0 then
        return nil, "any of " .. quoted_list(option.values) .. " (each once, with blanks)"
    end
    return table.concat(words, " ")
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

-- Names of Lua's, with dots between their parts.
local function read_module_list(text)
    local names = split(text)
    for _, name in ipairs(names) do
        if not ("." .. name):gsub("%.[%w_-]+", ""):find("^$") then
            return nil, "names of Lua such as a.b, separated by commas"
        end
    end
    return names
end

-- "outer:inner, ..." as outer by inner.
local function read_port_maps(text)
    local maps = split(text)
    for _, map in ipairs(maps) do
        local outer, inner = map:match("^(%d+):(%d+)$")
        for _, port in ipairs({ outer or "0", inner or "0" }) do
            if #port > 5 or tonumber(port) < 1 or tonumber(port) > 65535 then
                return nil, "pairs of ports such as 80:8000, 443:8443"
            end
        end
    end
    return maps
end

-- Whether a text is one of PEM.
local PEM = "^%-%-%-%-%-BEGIN "

-- Files, or texts in their place; a file is what is no text.
local function read_pem_list(text, option, base)
    local items = split(text)
    for i, item in ipairs(items) do
        local decoded = not item:find(PEM) and base64.decode((item:gsub("%s", ""))) or item
        local path, expected = nil, nil
        if not decoded:find(PEM) then
            path, expected = read_path(item, option, base)
        end
        if expected then
            return nil, "files, or texts as PEM or base64 of that"
        end
        items[i] = path or decoded
    end
    return items
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
        return nil, ("%d to %d printable characters without blanks"):format(option.min, option.max)
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
    if text == "" and option.inherits then
        return text
    end
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
    if text == "" and option.inherits then
        return text
    end
    if contains(option.values, text) then
        return text
    end
    local rest = text:gsub("%${[%w_]+}", ""):gsub("%$[%w_]+", "")
    if rest:find("%$") then
        return nil, "a name after each $ (`$status`, `${status}`)"
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
        local least, what = option.min or 0, "a time such as 500ms, 60s or 1m30s, at most 24 days"
        if least > 1 then
            local line = "a time such as 60s or 1m30s, at least %gs, at most 24 days"
            what = line:format(least / 1000)
        elseif least == 1 then
            what = what .. ", more than 0"
        end
        return nil, what
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

local function read_listen(text, option)
    if option.off and text == "off" then
        return {}
    end
    return listen.read(split(text), option)
end

_M.readers = {
    boolean = read_boolean,
    buffers = read_buffers,
    cidr_list = read_cidr_list,
    count = read_count,
    document = read_document,
    enum = read_enum,
    host_list = read_host_list,
    integer = read_integer,
    listen = read_listen,
    module_list = read_module_list,
    name_list = read_name_list,
    log = read_log,
    log_format = read_log_format,
    path = read_path,
    path_list = read_path_list,
    pem_list = read_pem_list,
    port_maps = read_port_maps,
    secret = read_secret,
    size = read_size,
    text = read_text,
    time = read_time,
    word = read_word,
    word_list = read_word_list,
    words = read_words,
}

--- Reads the text of one option.
-- @tparam table option a row of cli.options
-- @tparam string text the value as it was written
-- @tparam string base directory that a relative path starts from
-- @treturn any|nil the typed value; nil and what would be right when the text is wrong
-- @treturn nil|string
-- @treturn nil|boolean whether that is long, and the same of other options of this type
function _M.read(option, text, base)
    return _M.readers[option.type](text, option, base)
end

--- The text of a typed value, as users write it.
-- @tparam table option a row of cli.options
-- @tparam any value nil: none is known
-- @treturn string "(unset)" where it is empty
function _M.text(option, value)
    if type(value) == "boolean" then
        return value and "on" or "off"
    elseif type(value) == "table" then
        local is_off = #value == 0 and option.off
        value = is_off and "off" or table.concat(value, ", ")
    end
    return (value == nil or value == "") and "(unset)" or tostring(value)
end

--- Whether a value is that of a setting which is not set.
-- @tparam any value typed
-- @treturn boolean
function _M.is_unset(value)
    return value == nil or value == "" or (type(value) == "table" and #value == 0)
end

_M.absolute = absolute

return _M
