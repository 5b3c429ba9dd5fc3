--- How values of Kong's settings are read that are written in another way here.
--
-- Each reader takes the text, our setting that it is for, and `other(name)`, which gives the text
-- of another of Kong's settings. It returns setting -> text as it is written here; or nil and what
-- is wrong with it; and last what has no effect, if anything.

local grp = require("posix.grp")
local pwd = require("posix.pwd")

local _M = {}

-- A container of Kong's has these by default, and does without where they do not exist.
local DEFAULT_USER = "kong"

-- The most that the settings take: 24 days, and 2^31 - 1 requests.
local ENDLESS_TIME, ENDLESS_REQUESTS = "24d", "2147483647"

-- Kong's own format of the proxy's access log.
local KONG_LOG_FORMAT = '$remote_addr - $remote_user [$time_local] "$request" $status '
    .. '$body_bytes_sent "$http_referer" "$http_user_agent" kong_request_id: "$sluice_request_id"'

-- Words of `headers`, in lower case: ours are shorter where Kong's is a header's name.
local HEADERS = {
    server_tokens = "server_tokens",
    latency_tokens = "latency_tokens",
    via = "via",
    server = "server",
    ["x-kong-proxy-latency"] = "proxy_latency",
    ["x-kong-response-latency"] = "response_latency",
    ["x-kong-upstream-latency"] = "upstream_latency",
    ["x-kong-upstream-status"] = "upstream_status",
    ["x-kong-request-id"] = "request_id",
}
local ADMIN_LATENCY = "x-kong-admin-latency"

local function items(text)
    local found = {}
    for item in text:gmatch("[^,]+") do
        found[#found + 1] = item:match("^%s*(.-)%s*$")
    end
    return found
end

--- A number that Kong may find by itself: so does Sluice.
function _M.count(text, option)
    return text == "auto" and {} or { [option] = text }
end

--- nginx's user and group: a group of its own the workers do not have.
function _M.user(text, option)
    local user, group = text:match("^(%S+)%s*(%S*)$")
    if not user then
        return nil, "expected a user, or a user and its group"
    end
    local account = pwd.getpwnam(user)
    if user == DEFAULT_USER and not account then
        return {}
    end
    local own = account and grp.getgrgid(account.pw_gid)
    if group ~= "" and own and own.gr_name ~= group then
        return nil,
            ("the workers have the user's own group, %s; leave the group out"):format(own.gr_name)
    end
    return { [option] = user }
end

--- Kong's 0 is no limit.
function _M.endless_requests(text, option)
    return { [option] = text == "0" and ENDLESS_REQUESTS or text }
end

--- Kong's 0 is no limit.
function _M.endless_time(text, option)
    return { [option] = text == "0" and ENDLESS_TIME or text }
end

--- A list of plugins, of which `off` is none.
function _M.plugins(text, option)
    local names = {}
    for _, name in ipairs(items(text)) do
        if name == "off" and #names == 0 then
            return { [option] = "" }
        elseif name ~= "off" then
            names[#names + 1] = name
        end
    end
    return { [option] = table.concat(names, ", ") }
end

--- Headers, by name or as groups.
function _M.headers(text, option)
    local words, seen, dropped = {}, {}, nil
    for i, item in ipairs(items(text)) do
        local name = item:lower()
        if name == "off" and i == 1 then
            return { [option] = "off" }
        elseif name == ADMIN_LATENCY then
            dropped = "the Admin API sends no X-Kong-Admin-Latency"
        elseif name ~= "off" and not HEADERS[name] then
            return nil, ("'%s' is none of Kong's headers"):format(item)
        elseif name ~= "off" and not seen[name] then
            seen[name] = true
            words[#words + 1] = HEADERS[name]
        end
    end
    return { [option] = #words > 0 and table.concat(words, ", ") or "off" }, nil, dropped
end

--- The CAs of clients' certificates, for which nginx asks nobody unless it is told to.
function _M.client_ca(text, option, other)
    if other("nginx_admin_ssl_verify_client") then
        return { [option] = text }
    end
    return {}, nil, "clients are asked for no certificate without NGINX_ADMIN_SSL_VERIFY_CLIENT"
end

--- Whether clients have to have a certificate.
function _M.verify_client(text, option)
    if text == "optional_no_ca" then
        return nil, "'optional_no_ca' would accept every certificate; set it to on or optional"
    end
    return { [option] = text }
end

--- An error log.
function _M.error_log(text, option)
    if text == "off" then
        return { [option] = "/dev/null" }
    end
    return { [option] = text == "/dev/stderr" and "stderr" or text }
end

-- The text of a format in nginx's notation: words, and strings between quotes, one after another.
local function unquote(text)
    local parts, at = {}, 1
    while at <= #text do
        local quote = text:match("^%s*(['\"])", at)
        local from = text:find("%S", at)
        if not from then
            break
        end
        local stop = quote and from + 1 or text:find("%s", from) or #text + 1
        while quote and stop <= #text and text:sub(stop, stop) ~= quote do
            stop = stop + (text:sub(stop, stop) == "\\" and 2 or 1)
        end
        if quote and stop > #text then
            return nil
        end
        local part = quote and text:sub(from + 1, stop - 1) or text:sub(from, stop - 1)
        parts[#parts + 1] = quote and part:gsub("\\(['\"\\])", "%1") or part
        at = quote and stop + 1 or stop
    end
    return table.concat(parts)
end

-- The format that Kong's users inject, where it has that name.
local function injected_format(name, text)
    local own, rest = (text or ""):match("^%s*(%S+)%s+(.*)$")
    if own ~= name then
        return nil, ("there is no log_format '%s' (nginx_http_log_format)"):format(name)
    end
    local escape, after = rest:match("^escape=(%S+)%s+(.*)$")
    local format = unquote(after or rest)
    if not format or format == "" then
        return nil, "nginx_http_log_format is not complete"
    end
    local is_json = format:find("^%s*{") ~= nil
    if escape == "none" or (escape == "json" and not is_json) then
        return nil, ("nginx_http_log_format: escape=%s is only for JSON here"):format(escape)
    end
    return (
        format
            :gsub("%$kong_request_id", "$sluice_request_id")
            :gsub("%${kong_request_id}", "${sluice_request_id}")
    )
end

local FORMATS = { combined = "combined", kong_log_format = KONG_LOG_FORMAT }

--- An access log: a file, `off`, a device or a syslog; then a format's name, `buffer=` and
-- `flush=`.
function _M.access_log(text, option, other)
    local target, rest = text:match("^(%S+)%s*(.*)$")
    local found = { [option] = target }
    if target == "off" then
        return found
    end
    for word in rest:gmatch("%S+") do
        local name, value = word:match("^(%l+)=(.+)$")
        local is_buffer = option == "access_log" and (name == "buffer" or name == "flush")
        if is_buffer then
            found["access_log_" .. name] = value
        elseif name or found[option .. "_format"] then
            return nil, ("'%s' is not supported behind the file and its format"):format(word)
        else
            local format, err = FORMATS[word], nil
            if not format then
                format, err = injected_format(word, other("nginx_http_log_format"))
            end
            if not format then
                return nil, err
            end
            found[option .. "_format"] = format
        end
    end
    return found
end

return _M
