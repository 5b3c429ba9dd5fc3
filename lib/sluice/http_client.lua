--- One request to an HTTP server that may be hostile: over nginx's own sockets, connections kept.
-- One deadline stands over all of it, and what is read has bounds (sluice.http_response).
-- @module sluice.http_client
-- @usage
-- local answer, err = http_client.ask(endpoint, { head, body }, {
--     pool = "my-plugin", timeout_ms = 5000, keepalive_ms = 60000, verify = true,
-- })

local http_response = require("sluice.http_response")
local resolve = require("sluice.resolve")
local seconds = require("sluice.clock").monotonic

local ceil = math.ceil
local concat = table.concat
local ipairs = ipairs
local ngx = ngx

-- Of a response's body that nobody wants, to use the connection again; what is longer is cut off
-- with it.
local MAX_UNWANTED_BYTES = 65536

-- Idle connections that are kept to one server.
local POOL_SIZE = 64

-- nginx gives each write the whole of its time again when a part of it went out: so a request goes
-- out in slices, and the deadline is looked at between them. A server that reads as fast as that
-- must not hold up its worker: after so many slices its loop turns.
local SLICE_BYTES, SLICES_IN_A_ROW = 65536, 16
local PAUSE_SECONDS = 0.001

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
-- @treturn number|string how often it was used before; with nil why there is none
local function connect_to(endpoint, address, deadline, opts)
    local socket = ngx.socket.tcp()
    local pool = ("%s|%s|%s|%s|%d|%s"):format(
        opts.pool,
        endpoint.scheme,
        endpoint.host,
        address,
        endpoint.port,
        opts.verify and "verified" or ""
    )
    local ok, err = set_timeouts(socket, deadline)
    if ok then
        ok, err = socket:connect(address, endpoint.port, { pool = pool, pool_size = POOL_SIZE })
    end
    local used
    if ok then
        -- nil: the peer has closed it already.
        used, err = socket:getreusedtimes()
        ok = used ~= nil
    end
    if used == 0 and endpoint.scheme == "https" then
        ok, err = set_timeouts(socket, deadline)
        if ok then
            ok, err = socket:sslhandshake(false, endpoint.host, opts.verify == true)
        end
    end
    if ok then
        return socket, used
    end
    socket:close()
    return nil, ("%s:%d: %s"):format(address, endpoint.port, err)
end

--- Connects to the first address that answers. One that does not leaves the others their share of
-- the time.
-- @treturn table|nil socket
-- @treturn number|string as of `connect_to`
local function connect(endpoint, deadline, opts)
    local addresses, err = resolve.addresses(endpoint.host, deadline - seconds())
    if not addresses then
        return nil, ("%s cannot be resolved: %s"):format(endpoint.host, err)
    end
    for i, address in ipairs(addresses) do
        local now = seconds()
        local share = (deadline - now) / (#addresses - i + 1)
        local socket, used = connect_to(endpoint, address, now + share, opts)
        if socket then
            return socket, used
        end
        err = used
    end
    return nil, err
end

--- Sends pieces, in slices of 64 KB and a piece.
-- @treturn true|nil
-- @treturn string|nil why not
local function send(socket, pieces, deadline)
    local slice, bytes, slices = {}, 0, 0
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
            slice, bytes, slices = {}, 0, slices + 1
            if slices % SLICES_IN_A_ROW == 0 then
                ngx.sleep(PAUSE_SECONDS)
            end
        end
    end
    return true
end

-- Reads the body, where it is wanted; whether the connection can be used again.
local function read_body(response, head, opts)
    if not opts.max_body_bytes then
        local is_kept = opts.keepalive_ms > 0
            and http_response.keeps_alive(head)
            and response:read_body(head, MAX_UNWANTED_BYTES)
        return true, is_kept
    end
    local parts = {}
    local ok, err = response:read_body(head, opts.max_body_bytes, function(piece)
        parts[#parts + 1] = piece
    end)
    if not ok then
        return nil, err
    end
    head.body = concat(parts)
    return true, http_response.keeps_alive(head)
end

--- One request on a connection that is there.
-- @treturn table|nil head
-- @treturn string|nil why there is none
local function ask(socket, pieces, deadline, opts)
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
    head, err = response:read_head(opts.on_field)
    if not head then
        return nil, err
    end
    local is_read, is_kept = read_body(response, head, opts)
    if not is_read then
        return nil, is_kept
    elseif opts.keepalive_ms > 0 and is_kept and response:rest() == "" then
        socket:setkeepalive(opts.keepalive_ms, POOL_SIZE)
    else
        socket:close()
    end
    return head
end

--- Sends one request and waits for its response. Yields.
-- @tparam table endpoint of sluice.http_endpoint
-- @tparam {string,...} pieces of the whole request, head and body
-- @tparam table opts `pool`: the first part of the names of pools of connections; `timeout_ms` for
--   all of it: the name's addresses, connecting, writing and reading; `keepalive_ms`, 0 closes the
--   connection; `verify` the certificate; `max_body_bytes` of a response's body, nil: it is not
--   wanted; `on_field(name, value)` gets each line of the head, and may get those of a first try
--   again
-- @treturn table|nil as `read_head` of sluice.http_response has it, and `body`
-- @treturn string|nil why there is none
-- @phases as cosockets
function _M.ask(endpoint, pieces, opts)
    local deadline = seconds() + opts.timeout_ms / 1000
    while true do
        local socket, used = connect(endpoint, deadline, opts)
        if not socket then
            return nil, used
        end
        local head, err = ask(socket, pieces, deadline, opts)
        if head then
            return head
        end
        socket:close()
        -- A server may close a kept connection at any time: that is no failure of this request.
        -- Each turn uses one up.
        if used == 0 or err == "timeout" then
            return nil, ("%s:%d: %s"):format(endpoint.host, endpoint.port, err)
        end
    end
end

return _M
