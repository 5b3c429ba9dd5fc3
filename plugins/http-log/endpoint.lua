--- The address that log entries go to: a URL and what follows from it.
-- @module plugins.http-log.endpoint

local format = string.format

local PORTS = { http = 80, https = 443 }

local _M = {}

--- Splits the URL of a log server (RFC 3986, of http and https).
-- @tparam string url `http[s]://[user:password@]host[:port][/path][?query]`
-- @treturn table|nil `{scheme, host, port, target, authority, userinfo}`; host without brackets,
--   target with the query, authority as a Host header has it
-- @treturn string|nil what is wrong, for a human
function _M.parse(url)
    local scheme, authority, target = url:match("^(%a+)://([^/?#%s]*)(.*)$")
    -- Looked for on their own: a pattern that goes back costs the square of the length.
    if not scheme or target:find("[#%s]") then
        return nil, url:find("://", 1, true) and "invalid url" or "missing scheme in url"
    end
    scheme = scheme:lower()
    if not PORTS[scheme] then
        return nil, format("scheme '%s' is not supported (expected http or https)", scheme)
    end
    local userinfo, host_port = authority:match("^(.*)@(.*)$")
    host_port = host_port or authority
    local host, port = host_port:match("^(%[[%x:.]+%]):?(%d*)$")
    if not host then
        host, port = host_port:match("^([^:]+)$"), ""
    end
    if not host then
        host, port = host_port:match("^([^:]+):(%d*)$")
    end
    if not host then
        return nil, "missing host in url"
    end
    port = port == "" and PORTS[scheme] or tonumber(port)
    if port > 65535 then
        return nil, "invalid port in url"
    end
    return {
        scheme = scheme,
        host = host:match("^%[(.*)%]$") or host,
        port = port,
        target = target:sub(1, 1) == "/" and target or "/" .. target,
        authority = port == PORTS[scheme] and host or host .. ":" .. port,
        userinfo = userinfo,
    }
end

return _M
