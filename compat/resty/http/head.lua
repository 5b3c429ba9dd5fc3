--- Heads of requests as resty.http sends them.
-- @module resty.http.head

local http_headers = require("resty.http_headers")

local concat = table.concat
local ipairs = ipairs
local ngx = ngx
local pairs = pairs
local pcall = pcall
local tostring = tostring
local type = type

local VERSIONS = { [1.0] = " HTTP/1.0\r\n", [1.1] = " HTTP/1.1\r\n" }

local EXPECTS_BODY = { POST = true, PUT = true, PATCH = true }

local _M = {}

--- Whether a table of fields says that a body is in chunks.
-- @tparam table headers
-- @treturn boolean
-- @phases any
function _M.is_chunked(headers)
    local encoding = headers["Transfer-Encoding"]
    if type(encoding) == "table" then
        encoding = concat(encoding, ",")
    end
    return encoding ~= nil and encoding:lower():find("chunked", 1, true) ~= nil
end

-- The length of a body that nobody has given one, or why there is none.
local function length_of(body, method)
    if type(body) == "function" then
        return nil, "Request body is a function but a length or chunked encoding is not specified"
    elseif type(body) == "table" then
        local length = 0
        for _, piece in ipairs(body) do
            length = length + #tostring(piece)
        end
        return length
    elseif body ~= nil then
        return #tostring(body)
    elseif EXPECTS_BODY[method] then
        return nil,
            "Request body is nil but "
                .. method
                .. ' method expects a body. Use an empty string "" if you want to send an '
                .. "empty body."
    end
    return nil
end

-- The trace that the request in hand is part of, where there is one.
local function own_trace()
    local has_request, trace = pcall(function()
        return ngx.var.http_traceparent
    end)
    return has_request and trace or nil
end

local function host_field(client)
    if client.host:sub(1, 5) == "unix:" then
        return nil,
            "Unable to generate a useful Host header for a unix domain socket. Please provide one."
    end
    local is_default = not client.port or client.port == (client.ssl and 443 or 80)
    return is_default and client.host or client.host .. ":" .. client.port
end

--- The fields of a request: those that were given, and what they lack.
-- @tparam table client
-- @tparam table params of `request`
-- @treturn table|nil of resty.http_headers
-- @treturn string|nil what is missing
-- @phases any
function _M.fields(client, params)
    local headers = http_headers.new()
    for name, value in pairs(params.headers or {}) do
        headers[name] = value
    end
    headers["Proxy-Authorization"] = headers["Proxy-Authorization"] or client.http_proxy_auth
    if _M.is_chunked(headers) then
        -- Both lengths of a body at once are how requests are smuggled (RFC 9112 6.1).
        headers["Content-Length"] = nil
    elseif not headers["Content-Length"] then
        local length, err = length_of(params.body, params.method:upper())
        if err then
            return nil, err
        end
        headers["Content-Length"] = length
    end
    if not headers["Host"] then
        local host, err = host_field(client)
        if not host then
            return nil, err
        end
        headers["Host"] = host
    end
    headers["User-Agent"] = headers["User-Agent"] or client._USER_AGENT
    if params.version == 1.0 and not headers["Connection"] then
        headers["Connection"] = "Keep-Alive"
    end
    headers["traceparent"] = headers["traceparent"] or own_trace()
    return headers
end

-- Nothing that is put into a line may end it.
local function add_field(lines, name, value)
    name, value = tostring(name), tostring(value)
    if name:find("[%c:%s]") or name == "" or value:find("[\r\n%z]") then
        return nil, "invalid header '" .. name:gsub("%c", "?") .. "'"
    end
    lines[#lines + 1] = name .. ": " .. value .. "\r\n"
    return true
end

--- The text of a request's head.
-- @tparam table client
-- @tparam table params of `request`, `headers` of `fields`
-- @treturn string|nil
-- @treturn string|nil "invalid ..." names what would break the head
-- @phases any
function _M.format(client, params)
    local query = params.query or ""
    if type(query) == "table" then
        query = ngx.encode_args(query)
    end
    if query ~= "" and query:sub(1, 1) ~= "?" then
        query = "?" .. query
    end
    local target = (client.path_prefix or "") .. params.path .. query
    if not params.method:find("^[%w!#$%%&'*+.^_`|~-]+$") then
        return nil, "invalid method"
    elseif target:find("[%c ]") then
        return nil, "invalid path: it has a space or a control character"
    end
    local version = VERSIONS[params.version]
    if not version then
        return nil, "invalid version: 1.0 or 1.1 expected"
    end
    local lines = { params.method:upper() .. " " .. target .. version }
    for name, value in pairs(params.headers) do
        for _, one in ipairs(type(value) == "table" and value or { value }) do
            local ok, err = add_field(lines, name, one)
            if not ok then
                return nil, err
            end
        end
    end
    lines[#lines + 1] = "\r\n"
    return concat(lines)
end

return _M
