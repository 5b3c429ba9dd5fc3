--- Posts a text to the log server: one request over nginx's own sockets, connections kept. The log
-- server may be hostile: one deadline stands over all, and what is read has bounds.
-- @module plugins.http-log.sender

local http_response = require("sluice.http_response")
local pdk = require("gateway.plugin.pdk")
local seconds = require("sluice.clock").monotonic

local ceil = math.ceil
local ngx = ngx

-- Of a response's body, to use the connection again; what is longer is cut off with it.
local MAX_BODY_BYTES = 65536

-- Idle connections that a worker keeps to one log server.
local POOL_SIZE = 64

-- nginx gives each write the whole of its time again when a part of it went out: so a request goes
-- out in slices, and the deadline is looked at between them.
local SLICE_BYTES = 65536

local _M = {}

--- Gives a socket what is left of the time, for what it does next.
-- @treturn true|nil
-- @treturn string|nil "timeout": nothing is left
local function set_timeouts(socket, deadline)
    local left_ms = ceil((deadline - seconds()) * 1000)
    if left_ms <= 0 then
        return nil, "timeout"
    end
    socket:settimeouts(left_ms, left_ms, left_ms)
    return true
end

--- Connects to one address.
-- @treturn table|nil socket
-- @treturn string|nil why not
local function connect_to(endpoint, address, deadline)
    local socket = ngx.socket.tcp()
    local pool = ("http-log|%s|%s|%s|%d"):format(
        endpoint.scheme,
        endpoint.host,
        address,
        endpoint.port
    )
    local ok, err = set_timeouts(socket, deadline)
    if ok then
        ok, err = socket:connect(address, endpoint.port, { pool = pool, pool_size = POOL_SIZE })
    end
    if ok and endpoint.scheme == "https" and socket:getreusedtimes() == 0 then
        ok, err = set_timeouts(socket, deadline)
        if ok then
            -- Unverified, as in Kong: log servers often have certificates of their own.
            ok, err = socket:sslhandshake(false, endpoint.host, false)
        end
    end
    if ok then
        return socket
    end
    socket:close()
    return nil, ("%s:%d: %s"):format(address, endpoint.port, err)
end

--- Connects to the first address that answers. One that does not leaves the others their share of
-- the time.
-- @treturn table|nil socket
-- @treturn string|nil why not
local function connect(endpoint, deadline)
    local addresses, err = pdk.resolve(endpoint.host, deadline - seconds())
    if not addresses then
        return nil, ("%s cannot be resolved: %s"):format(endpoint.host, err)
    end
    for i, address in ipairs(addresses) do
        local now = seconds()
        local share = (deadline - now) / (#addresses - i + 1)
        local socket
        socket, err = connect_to(endpoint, address, now + share)
        if socket then
            return socket
        end
    end
    return nil, err
end

--- Sends pieces, in slices of 64 KB and a piece.
-- @treturn true|nil
-- @treturn string|nil why not
local function send(socket, pieces, deadline)
    local slice, bytes = {}, 0
    for i, piece in ipairs(pieces) do
        slice[#slice + 1] = piece
        bytes = bytes + #piece
        if bytes >= SLICE_BYTES or i == #pieces then
            local ok, err = set_timeouts(socket, deadline)
            if ok then
                ok, err = socket:send(slice)
            end
            if not ok then
                return nil, err
            end
            slice, bytes = {}, 0
        end
    end
    return true
end

--- One request on a connection that is there.
-- @treturn number|nil status
-- @treturn string|nil why there is none
local function ask(socket, pieces, deadline, keepalive_ms)
    local sent, err = send(socket, pieces, deadline)
    if not sent then
        return nil, err
    end
    local response = http_response.new(function(max_bytes)
        local ok, late = set_timeouts(socket, deadline)
        if not ok then
            return nil, late
        end
        return socket:receiveany(max_bytes)
    end)
    local head
    head, err = response:read_head()
    if not head then
        return nil, err
    end
    local is_kept = keepalive_ms > 0
        and http_response.keeps_alive(head)
        and response:read_body(head, MAX_BODY_BYTES)
        and response:rest() == ""
    if is_kept then
        socket:setkeepalive(keepalive_ms, POOL_SIZE)
    else
        socket:close()
    end
    return head.status
end

--- Sends one request and waits for its response. Yields.
-- @tparam table endpoint of plugins.http-log.endpoint
-- @tparam {string,...} pieces of the whole request, head and body
-- @tparam number timeout_ms for all of it: the name's addresses, connecting, writing and reading
-- @tparam number keepalive_ms 0 closes the connection
-- @treturn number|nil status
-- @treturn string|nil why there is none
-- @phases timers
function _M.send(endpoint, pieces, timeout_ms, keepalive_ms)
    local deadline = seconds() + timeout_ms / 1000
    while true do
        local socket, err = connect(endpoint, deadline)
        if not socket then
            return nil, err
        end
        local was_kept = socket:getreusedtimes() > 0
        local status
        status, err = ask(socket, pieces, deadline, keepalive_ms)
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
