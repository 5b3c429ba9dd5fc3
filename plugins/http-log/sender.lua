--- Posts a text to the log server: one request over nginx's own sockets, connections kept.
-- @module plugins.http-log.sender

local pdk = require("gateway.plugin.pdk")

local ngx = ngx

-- Of a response's body, to use the connection again; what is longer is cut off with it.
local MAX_BODY_BYTES = 65536

-- Idle connections that a worker keeps to one log server.
local POOL_SIZE = 64

local MAX_HEADER_LINES = 200

local _M = {}

--- Connects to the first address that answers.
-- @treturn table|nil socket
-- @treturn string|nil why not
local function connect(endpoint, timeout_ms)
    local addresses, err = pdk.resolve(endpoint.host)
    if not addresses then
        return nil, ("%s cannot be resolved: %s"):format(endpoint.host, err)
    end
    local pool = { pool_size = POOL_SIZE }
    for _, address in ipairs(addresses) do
        local socket = ngx.socket.tcp()
        socket:settimeouts(timeout_ms, timeout_ms, timeout_ms)
        pool.pool = ("http-log|%s|%s|%s|%d"):format(
            endpoint.scheme,
            endpoint.host,
            address,
            endpoint.port
        )
        local ok
        ok, err = socket:connect(address, endpoint.port, pool)
        if ok and endpoint.scheme == "https" and socket:getreusedtimes() == 0 then
            -- Unverified, as in Kong: log servers often have certificates of their own.
            ok, err = socket:sslhandshake(false, endpoint.host, false)
        end
        if ok then
            return socket
        end
        socket:close()
        err = ("%s:%d: %s"):format(address, endpoint.port, err)
    end
    return nil, err
end

--- Reads the head of a response; interim ones are passed over.
-- @treturn number|nil status
-- @treturn table|string headers by their name in lower case; why there is no response
-- @treturn string|nil HTTP version
local function read_head(socket)
    while true do
        local line, err = socket:receive("*l")
        if not line then
            return nil, err
        end
        local version, status = line:match("^HTTP/(1%.%d) (%d%d%d)")
        if not version then
            return nil, "not an HTTP response"
        end
        local headers = {}
        for _ = 1, MAX_HEADER_LINES do
            line, err = socket:receive("*l")
            if not line then
                return nil, err
            elseif line == "" then
                break
            end
            local name, value = line:match("^([^:%s]+):%s*(.-)%s*$")
            if name then
                headers[name:lower()] = value
            end
        end
        if line ~= "" then
            return nil, "too many headers"
        end
        status = tonumber(status)
        if status >= 200 then
            return status, headers, version
        end
    end
end

--- Reads the chunks of a body and its trailers.
-- @treturn boolean whether all were read
local function pass_chunks(socket)
    local left = MAX_BODY_BYTES
    while true do
        local size = tonumber((socket:receive("*l") or ""):match("^%x+"), 16)
        if not size or size > left then
            return false
        elseif size == 0 then
            break
        end
        left = left - size
        if not socket:receive(size + 2) then
            return false
        end
    end
    for _ = 1, MAX_HEADER_LINES do
        local line = socket:receive("*l")
        if not line or line == "" then
            return line ~= nil
        end
    end
    return false
end

--- Reads the body of a response.
-- @treturn boolean whether the connection is good for another request
local function pass_body(socket, status, headers, version)
    local connection = (headers.connection or ""):lower()
    if connection:find("close", 1, true) or (version == "1.0" and connection ~= "keep-alive") then
        return false
    elseif status == 204 or status == 304 then
        return true
    elseif (headers["transfer-encoding"] or ""):lower() == "chunked" then
        return pass_chunks(socket)
    end
    local length = tonumber(headers["content-length"])
    if not length or length > MAX_BODY_BYTES then
        return false
    end
    return length == 0 or socket:receive(length) ~= nil
end

--- One request on a connection that is there.
-- @treturn number|nil status
-- @treturn string|nil why there is none
local function ask(socket, request, keepalive_ms)
    local sent, err = socket:send(request)
    if not sent then
        return nil, err
    end
    local status, headers, version = read_head(socket)
    if not status then
        return nil, headers
    end
    if pass_body(socket, status, headers, version) and keepalive_ms > 0 then
        socket:setkeepalive(keepalive_ms, POOL_SIZE)
    else
        socket:close()
    end
    return status
end

--- Sends one request and waits for its response. Yields.
-- @tparam table endpoint of plugins.http-log.endpoint
-- @tparam table request pieces of the whole request, head and body
-- @tparam number timeout_ms for connecting, for each write and for each read
-- @tparam number keepalive_ms 0 closes the connection
-- @treturn number|nil status
-- @treturn string|nil why there is none
-- @phases timers
function _M.send(endpoint, request, timeout_ms, keepalive_ms)
    while true do
        local socket, err = connect(endpoint, timeout_ms)
        if not socket then
            return nil, err
        end
        local was_kept = socket:getreusedtimes() > 0
        local status
        status, err = ask(socket, request, keepalive_ms)
        if status then
            return status
        end
        socket:close()
        -- A server may close a kept connection at any time: that is no failure of this request.
        -- Each turn uses one up.
        if not was_kept or err == "timeout" then
            return nil, ("%s:%d: %s"):format(endpoint.host, endpoint.port, err)
        end
    end
end

return _M
