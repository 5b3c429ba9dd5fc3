--- The parts of a URI that a request needs.
-- @module resty.http.uri

local ngx = ngx
local tonumber = tonumber

local PORTS = { http = 80, https = 443 }
local MAX_PORT = 65535

local _M = {}

-- The scheme of the request in hand, for a URI that leaves it out.
local function own_scheme()
    local known, scheme = pcall(function()
        return ngx.var.scheme
    end)
    return known and PORTS[scheme] and scheme or nil
end

--- Takes a URI apart.
-- @tparam string uri of http or https; `//host/path` has the scheme of the request in hand
-- @tparam[opt=true] boolean query_in_path
-- @treturn table|nil {scheme, host, port, path, query}; IPv6 in brackets
-- @treturn string|nil "bad uri: ...", "schemaless URIs require a request context: ..."
-- @phases any
function _M.parse(uri, query_in_path)
    local scheme, rest = uri:match("^(%a+)://(.*)$")
    scheme = scheme and scheme:lower()
    if not scheme then
        rest = uri:match("^//(.*)$")
    end
    local authority, target = (rest or ""):match("^([^/?#]*)([^#]*)")
    local host, port = authority:match("^(%[[%x:.]+%]):?(%d*)$")
    if not host then
        host, port = authority:match("^([^%[%]:@%s%c]+):?(%d*)$")
    end
    local number = port ~= "" and tonumber(port) or nil
    if not host or (scheme and not PORTS[scheme]) or (number and number > MAX_PORT) then
        return nil, "bad uri: " .. uri
    end
    if not scheme then
        scheme = own_scheme()
        if not scheme then
            return nil, "schemaless URIs require a request context: " .. uri
        end
    end
    local path, query = target:match("^([^?]*)%??(.*)$")
    path = path == "" and "/" or path
    if query_in_path ~= false then
        path = query == "" and path or path .. "?" .. query
        query = nil
    end
    return { scheme, host, number or PORTS[scheme], path, query }
end

return _M
