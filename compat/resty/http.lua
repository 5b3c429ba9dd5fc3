--- lua-resty-http's client on nginx's sockets, with bounds: a server can hold it for no longer, and
-- make it read no more, than docs/modules.md says.
--
-- Interface and words are those of lua-resty-http 0.17.2.
-- @module resty.http
-- @usage
-- local res, err = require("resty.http").new():request_uri("https://example.com/", {})

local connecting = require("resty.http_connect")
local downstream = require("resty.http.downstream")
local head = require("resty.http.head")
local response = require("resty.http.response")
local stream = require("resty.http.stream")
local uris = require("resty.http.uri")

local ipairs = ipairs
local ngx = ngx
local pairs = pairs
local rawget = rawget
local setmetatable = setmetatable
local type = type

local _M = {
    _VERSION = "0.17.2",
    _USER_AGENT = "Sluice (Lua) ngx_lua/" .. ngx.config.ngx_lua_version,
}

local mt = { __index = _M }

local DEFAULTS = { __index = { method = "GET", path = "/", version = 1.1 } }

-- Of a body that is read as a whole, and of one piece of others.
local MAX_BODY_BYTES = 64 * 1024 * 1024

local is_debugging = false

local function copy(table)
    local out = {}
    for key, value in pairs(table) do
        out[key] = value
    end
    return out
end

-- The life of a client ---------------------------------------------------------------------------

--- Makes a client.
-- @treturn table|nil
-- @treturn string|nil the socket's reason
-- @phases as cosockets
function _M.new(_)
    local sock, err = ngx.socket.tcp()
    if not sock then
        return nil, err
    end
    local self = { sock = sock, keepalive = true, max_body_bytes = MAX_BODY_BYTES }
    self.stream = stream.new(self)
    return setmetatable(self, mt)
end

--- Logs heads of requests at level debug.
-- @tparam boolean is_on
-- @phases any
function _M.debug(is_on)
    is_debugging = is_on == true
end

--- The time of each step, in milliseconds.
-- @phases any
function _M:set_timeout(ms)
    return self:set_timeouts(ms, ms, ms)
end

--- The times of connecting, sending and reading, in milliseconds.
-- @phases any
function _M:set_timeouts(connect_ms, send_ms, read_ms)
    if not self.sock then
        return nil, "not initialized"
    end
    self.timeouts = { connect_ms, send_ms, read_ms }
    return self.sock:settimeouts(connect_ms, send_ms, read_ms)
end

--- How long a body may be that is read as a whole; not in lua-resty-http.
-- @tparam number bytes default 64 MB
-- @phases any
function _M:set_max_body_bytes(bytes)
    self.max_body_bytes = bytes
end

--- Connects: a table of options, or a host and a port (deprecated there). Yields.
-- @treturn true|nil
-- @treturn string|nil
-- @treturn any the TLS session
-- @phases as cosockets
function _M:connect(options, ...)
    if type(options) == "table" then
        return connecting.connect(self, options)
    end
    return self:tcp_only_connect(options, ...)
end

--- Connects to a host and a port, or to `unix:...`, and does no more. Yields.
-- @phases as cosockets
function _M:tcp_only_connect(host, port, ...)
    if not self.sock then
        return nil, "not initialized"
    end
    self.host, self.port = host, type(port) == "number" and port or nil
    self.keepalive, self.ssl, self.unread = true, false, nil
    self.path_prefix, self.http_proxy_auth = nil, nil
    self.stream:reset()
    return self.sock:connect(host, port, ...)
end

--- Lets the connection be used again, or closes it where that cannot be.
-- @treturn number|nil 1; 2: it was closed
-- @treturn string|nil "connection must be closed", or the socket's reason
-- @phases as cosockets
function _M:set_keepalive(...)
    if not self.sock then
        return nil, "not initialized"
    end
    -- What the next one would get in place of an answer.
    local is_dirty = self.unread or self.stream.rest ~= ""
    if self.keepalive and not is_dirty then
        return self.sock:setkeepalive(...)
    end
    local closed, err = self.sock:close()
    if closed then
        return 2, "connection must be closed"
    end
    return closed, err
end

--- How often the connection was used before.
-- @phases as cosockets
function _M:get_reused_times()
    if not self.sock then
        return nil, "not initialized"
    end
    return self.sock:getreusedtimes()
end

--- Closes the connection.
-- @phases as cosockets
function _M:close()
    if not self.sock then
        return nil, "not initialized"
    end
    return self.sock:close()
end

--- TLS on a connection of `tcp_only_connect`. Yields.
-- @phases as cosockets
function _M:ssl_handshake(...)
    if not self.sock then
        return nil, "not initialized"
    end
    self.ssl = true
    return self.sock:sslhandshake(...)
end

--- Takes a URI apart.
-- @treturn table|nil {scheme, host, port, path, query}
-- @treturn string|nil "bad uri: ..."
-- @phases any
function _M.parse_uri(_, uri, query_in_path)
    return uris.parse(uri, query_in_path)
end

-- Proxies ----------------------------------------------------------------------------------------

--- The proxies of this client: http_proxy, https_proxy, no_proxy and their authorization.
-- @phases any
function _M:set_proxy_options(options)
    self.proxy_opts = copy(options)
end

--- The proxy that a host has.
-- @treturn string|nil
-- @phases any
function _M:get_proxy_uri(scheme, host)
    return (connecting.proxy_of(self.proxy_opts, scheme, host))
end

--- Connects to a proxy, and through it to a host of https; TLS is the caller's. Yields.
-- @treturn number|nil 1
-- @treturn string|nil
-- @phases as cosockets
function _M:connect_proxy(proxy_uri, scheme, host, port, authorization)
    local parsed, err = uris.parse(proxy_uri, false)
    if not parsed then
        return nil, err
    elseif parsed[1] ~= "http" then
        return nil, "protocol " .. parsed[1] .. " not supported for proxy connections"
    end
    local connected
    connected, err = self:tcp_only_connect(parsed[2], parsed[3])
    if not connected or scheme ~= "https" then
        return connected, err
    end
    local destination = host .. ":" .. port
    local res
    res, err = self:request({
        method = "CONNECT",
        path = destination,
        headers = { Host = destination, ["Proxy-Authorization"] = authorization },
    })
    if not res then
        return nil, err
    elseif res.status < 200 or res.status > 299 then
        return nil, "failed to establish a tunnel through a proxy: " .. res.status
    end
    return connected
end

-- Requests ---------------------------------------------------------------------------------------

local function send_body(sock, sent)
    if type(sent) ~= "function" then
        if sent == nil then
            return true
        end
        return sock:send(sent)
    end
    while true do
        local piece, err, partial = sent()
        if piece then
            local ok
            ok, err = sock:send(piece)
            if not ok then
                return nil, err
            end
        elseif err ~= nil then
            return nil, err, partial
        else
            return true
        end
    end
end

--- Sends a request, without its body where it expects 100. Yields.
-- @tparam table params as of `request`; gets what it lacks
-- @treturn true|nil
-- @treturn string|nil
-- @phases as cosockets
function _M:send_request(params)
    setmetatable(params, DEFAULTS)
    local headers, text, err
    headers, err = head.fields(self, params)
    if headers then
        params.headers = headers
        text, err = head.format(self, params)
    end
    if not text then
        return nil, err
    elseif is_debugging then
        ngx.log(ngx.DEBUG, "\n", text)
    end
    local sent, partial
    sent, err = self.sock:send(text)
    if sent and headers["Expect"] ~= "100-continue" then
        sent, err, partial = send_body(self.sock, params.body)
    end
    if not sent then
        -- The server takes what comes next for the rest of this request.
        self.keepalive = false
        return nil, err, partial
    end
    return true
end

--- Reads the head of the response to a request that was sent. Yields.
-- @tparam table params of `send_request`
-- @treturn table|nil status, reason, headers, has_body, body_reader, read_body, read_trailers
-- @treturn string|nil the socket's reason, what is wrong with the response, or which bound it broke
-- @phases as cosockets
function _M:read_response(params)
    return response.read(self, params, function()
        return send_body(self.sock, params.body)
    end)
end

--- Sends a request on a connection and reads the head of its response. Yields.
-- @tparam table params version, method, path, query, headers, body
-- @treturn table|nil of `read_response`
-- @treturn string|nil
-- @phases as cosockets
function _M:request(params)
    params = copy(params)
    local sent, err = self:send_request(params)
    if not sent then
        return nil, err
    end
    return self:read_response(params)
end

--- Sends requests one behind the other. Each response is read when one of its fields is asked
-- for, in their order. Yields.
-- @tparam {table,...} requests
-- @treturn {table,...}|nil
-- @treturn string|nil
-- @phases as cosockets
function _M:request_pipeline(requests)
    local responses = {}
    for i, given in ipairs(requests) do
        local params = copy(given)
        if params.headers and params.headers["Expect"] == "100-continue" then
            return nil, "Cannot pipeline request specifying Expect: 100-continue"
        end
        local sent, err = self:send_request(params)
        if not sent then
            return nil, err
        end
        responses[i] = setmetatable({ params = params, response_read = false }, {
            __index = function(answer, key)
                if not rawget(answer, "response_read") then
                    answer.response_read = true
                    local found, failed = self:read_response(params)
                    if not found then
                        ngx.log(ngx.ERR, failed)
                    end
                    for name, value in pairs(found or {}) do
                        answer[name] = value
                    end
                end
                return rawget(answer, key)
            end,
        })
    end
    return responses
end

-- What `request_uri` connects and asks with.
local function params_of(self, uri, given)
    local params = copy(given or {})
    local parsed, err = uris.parse(uri, false)
    if not parsed then
        return nil, err
    end
    params.scheme, params.host, params.port = parsed[1], parsed[2], parsed[3]
    params.path = params.path or parsed[4]
    params.query = params.query or parsed[5]
    params.ssl_server_name = params.ssl_server_name or params.host
    local proxies = params.proxy_opts or self.proxy_opts
    local authorization = params.headers and params.headers["Proxy-Authorization"]
    if proxies then
        params.proxy_opts = copy(proxies)
        if authorization then
            params.proxy_opts.http_proxy_authorization = authorization
            params.proxy_opts.https_proxy_authorization = authorization
        end
    end
    return params
end

--- One request to a URI, from connecting to the end of the body. Yields.
-- @tparam string uri
-- @tparam[opt] table params of `connect` and `request`, and keepalive, keepalive_timeout,
--   keepalive_pool
-- @treturn table|nil status, reason, headers, body
-- @treturn string|nil
-- @phases as cosockets
function _M:request_uri(uri, params)
    local ok, err, res
    params, err = params_of(self, uri, params)
    if params then
        ok, err = self:connect(params)
    end
    if not ok then
        return nil, err
    end
    res, err = self:request(params)
    if res and res.has_body then
        res.body, err = res:read_body()
    elseif res then
        res.body = ""
    end
    if not res or not res.body then
        self:close()
        return nil, err
    end
    if params.keepalive == false then
        ok, err = self:close()
    else
        ok, err = self:set_keepalive(params.keepalive_timeout, params.keepalive_pool)
    end
    if not ok then
        -- The server has closed it meanwhile: the response is whole all the same.
        ngx.log(ngx.INFO, err)
    end
    return res
end

_M.get_client_body_reader = downstream.get_client_body_reader
_M.proxy_request = downstream.proxy_request
_M.proxy_response = downstream.proxy_response
_M.transfer_encoding_is_chunked = head.is_chunked

return _M
