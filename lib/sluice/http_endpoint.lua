--- The address of an HTTP server that we ask: a URL, and what follows from it.
-- @module sluice.http_endpoint

local address = require("sluice.address")

local format = string.format

local _M = {}

--- Splits a URL (RFC 3986, of http and https).
-- @tparam string url `http[s]://[user:password@]host[:port][/path][?query]`
-- @treturn table|nil `{scheme, host, port, target, authority, userinfo}`; host without brackets,
--   target with the query, authority as a Host header has it
-- @treturn string|nil what is wrong, for a human
function _M.parse(url)
    local parsed, err = address.parse_url(url)
    if not parsed then
        return nil, err
    elseif url:find("[#%s]") then
        return nil, "invalid url"
    end
    local scheme, host, target = parsed.scheme, parsed.host, parsed.target
    local port = parsed.port or address.default_port(scheme)
    if not address.default_port(scheme) then
        return nil, format("scheme '%s' is not supported (expected http or https)", scheme)
    elseif port > 65535 then
        return nil, "invalid port in url"
    end
    return {
        scheme = scheme,
        host = host,
        port = port,
        target = target:sub(1, 1) == "/" and target or "/" .. target,
        authority = address.authority(host, port, scheme),
        userinfo = parsed.userinfo,
    }
end

return _M
