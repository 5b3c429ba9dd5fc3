--- lua-resty-redis' client, with TLS, and with bounds (docs/modules.md).
-- @module resty.redis
-- @usage
-- local redis = require("resty.redis"):new()
-- assert(redis:connect("localhost", 6379, { ssl = true, ssl_verify = true }))

local replies = require("resty.redis.replies")
local resolve = require("sluice.resolve")
local stream = require("resty.http.stream")

local error = error
local format = string.format
local ipairs = ipairs
local ngx = ngx
local pairs = pairs
local pcall = pcall
local rawget = rawget
local select = select
local setmetatable = setmetatable
local sub = string.sub
local tonumber = tonumber
local tostring = tostring
local type = type
local unpack = unpack

-- Seconds to wait for a resolver.
local RESOLVE_SECONDS = 60

local _M = { _VERSION = "0.31" }
local mt = {}

--- Makes a client.
-- @treturn table|nil
-- @treturn string|nil the socket's reason
-- @phases as cosockets
function _M.new(_)
    local sock, err = ngx.socket.tcp()
    if not sock then
        return nil, err
    end
    -- False, not nil: any other word is a command.
    local self = { sock = sock, _sock = sock, subscriptions = 0 }
    self.timeouts, self.requests, self.prefix = false, false, false
    self.replies = replies.new(stream.new(self))
    return setmetatable(self, mt)
end

local function check(self, level)
    if not rawget(self, "sock") then
        error("not initialized", level + 1)
    end
end

--- The time of each step, in milliseconds.
-- @phases any
function _M.set_timeout(self, ms)
    return _M.set_timeouts(self, ms, ms, ms)
end

--- The times of connecting, sending and reading, in milliseconds.
-- @phases any
function _M.set_timeouts(self, connect_ms, send_ms, read_ms)
    check(self, 2)
    self.timeouts = { connect_ms, send_ms, read_ms }
    return self.sock:settimeouts(connect_ms, send_ms, read_ms)
end

-- Connections ------------------------------------------------------------------------------------

local function options_of(host, port, options)
    if type(host) ~= "string" then
        error("bad argument #1 host: string expected, got " .. type(host), 3)
    end
    local is_unix = sub(host, 1, 5) == "unix:"
    if is_unix then
        options, port = port, nil
    else
        port = tonumber(port)
            or error("bad argument #2 port: number expected, got " .. type(port), 3)
    end
    if options ~= nil and type(options) ~= "table" then
        local number = is_unix and 2 or 3
        local line = "bad argument #%d opts: nil or table expected, got %s"
        error(format(line, number, type(options)), 3)
    end
    return port, options or {}
end

-- Its own for each way to verify: nobody gets a connection whose server somebody else has not
-- verified.
local function pool_of(host, port, options)
    if options.pool or not options.ssl then
        return options.pool
    end
    local name = options.server_name or host
    return format("redis:%s:%s:%s:%s", host, tostring(port), name, tostring(options.ssl_verify))
end

local function connect_to(sock, host, port, tcp)
    if not port then
        return sock:connect(host, tcp)
    end
    local addresses, err = resolve.addresses(host, RESOLVE_SECONDS)
    local ok
    for _, address in ipairs(addresses or {}) do
        ok, err = sock:connect(address, port, tcp)
        if ok then
            return ok
        end
    end
    return nil, err
end

--- Connects. Yields.
-- @tparam string host name, address, or "unix:..."
-- @tparam[opt] number port
-- @tparam[opt] table options ssl, ssl_verify, server_name (the host), pool, pool_size, backlog
-- @treturn number|nil 1
-- @treturn string|nil the socket's reason, or "failed to do ssl handshake: ..."
-- @phases as cosockets
function _M.connect(self, host, port, options)
    if not rawget(self, "sock") then
        return nil, "not initialized"
    end
    port, options = options_of(host, port, options)
    local sock = self.sock
    self.subscriptions, self.requests = 0, false
    self.replies:reset()
    local ok, err = connect_to(sock, host, port, {
        pool = pool_of(host, port, options),
        pool_size = options.pool_size,
        backlog = options.backlog,
    })
    if not ok then
        return nil, err
    elseif options.ssl and sock:getreusedtimes() == 0 then
        local name = options.server_name or (port and host)
        -- lua-resty-core throws where a handshake fails that did not have to wait; with false in
        -- place of nil it would say that it succeeded.
        local is_done, session, reason =
            pcall(sock.sslhandshake, sock, nil, name, options.ssl_verify and true or false)
        if not is_done or not session then
            sock:close()
            return nil, "failed to do ssl handshake: " .. (is_done and reason or "failed")
        end
    end
    return ok
end

--- Lets the connection be used again.
-- @treturn number|nil 1
-- @treturn string|nil "subscribed state", "unread replies", or the socket's reason
-- @phases as cosockets
function _M.set_keepalive(self, ...)
    if not rawget(self, "sock") then
        return nil, "not initialized"
    elseif self.subscriptions > 0 then
        return nil, "subscribed state"
    elseif not self.replies:is_clean() then
        self.sock:close()
        return nil, "unread replies"
    end
    return self.sock:setkeepalive(...)
end

--- How often the connection was used before.
-- @phases as cosockets
function _M.get_reused_times(self)
    if not rawget(self, "sock") then
        return nil, "not initialized"
    end
    return self.sock:getreusedtimes()
end

--- Closes the connection.
-- @phases as cosockets
function _M.close(self)
    if not rawget(self, "sock") then
        return nil, "not initialized"
    end
    self.replies:reset()
    return self.sock:close()
end

-- Commands ---------------------------------------------------------------------------------------

-- A reply. After a failure nothing that comes belongs to what is asked next.
local function read(self)
    local value, err = self.replies:read()
    -- No message yet is no failure of who waits for one.
    local only_waits = err == "timeout" and self.subscriptions > 0 and not self.replies.is_within
    if value == nil and not only_waits then
        _M.close(self)
    end
    return value, err
end

local function encode(...)
    local count = select("#", ...)
    local out = { "*", count, "\r\n" }
    for i = 1, count do
        local text = tostring((select(i, ...)))
        out[#out + 1] = "$" .. #text .. "\r\n"
        out[#out + 1] = text
        out[#out + 1] = "\r\n"
    end
    return out
end

local function run(self, name, ...)
    if not rawget(self, "sock") then
        return nil, "not initialized"
    end
    local prefix = rawget(self, "prefix")
    if prefix then
        self.prefix = false
        name = prefix .. "." .. name
    end
    local request = encode(name, ...)
    local requests = rawget(self, "requests")
    if requests then
        requests[#requests + 1] = request
        return
    end
    local sent, err = self.sock:send(request)
    if not sent then
        return nil, err
    end
    return read(self)
end

-- The server says how many subscriptions are left.
local function count_subscriptions(self, value)
    local kind = type(value) == "table" and value[1]
    if type(kind) == "string" and kind:find("subscribe$") and type(value[3]) == "number" then
        self.subscriptions = value[3]
    end
    return value
end

local function subscriber(name)
    return function(self, ...)
        if rawget(self, "sock") and name:find("^p?subscribe") then
            self.subscriptions = self.subscriptions + select("#", ...)
        end
        local value, err = run(self, name, ...)
        return count_subscriptions(self, value), err
    end
end

for _, name in ipairs({ "subscribe", "psubscribe", "unsubscribe", "punsubscribe" }) do
    _M[name] = subscriber(name)
end

--- Reads a message of what was subscribed to. Yields.
-- @treturn table|nil
-- @treturn string|nil "not subscribed", or the socket's reason
-- @phases as cosockets
function _M.read_reply(self)
    if not rawget(self, "sock") then
        return nil, "not initialized"
    elseif self.subscriptions == 0 then
        return nil, "not subscribed"
    end
    local value, err = read(self)
    return count_subscriptions(self, value), err
end

--- HMSET of a table, or of fields and values.
-- @phases as cosockets
function _M.hmset(self, key, ...)
    local fields = ...
    if select("#", ...) ~= 1 or type(fields) ~= "table" then
        return run(self, "hmset", key, ...)
    end
    local list = {}
    for name, value in pairs(fields) do
        list[#list + 1] = name
        list[#list + 1] = value
    end
    return run(self, "hmset", key, unpack(list))
end

--- Pairs in a list as a table.
-- @phases any
function _M.array_to_hash(_, list)
    local found = {}
    for i = 1, #list, 2 do
        found[list[i]] = list[i + 1]
    end
    return found
end

--- From here on commands are gathered.
-- @phases any
function _M.init_pipeline(self)
    self.requests = {}
end

--- Forgets them.
-- @phases any
function _M.cancel_pipeline(self)
    self.requests = false
end

--- Sends them, and reads the replies. Yields.
-- @treturn {any,...}|nil of the server's errors {false, words}
-- @treturn string|nil "no pipeline", or the socket's reason
-- @phases as cosockets
function _M.commit_pipeline(self)
    local requests = rawget(self, "requests")
    if not requests then
        return nil, "no pipeline"
    end
    self.requests = false
    local sent, err = self.sock:send(requests)
    if not sent then
        return nil, err
    end
    local values = {}
    for i = 1, #requests do
        local value
        value, err = read(self)
        if value == nil then
            return nil, err
        end
        values[i] = value or { false, err }
    end
    return values
end

--- Has no effect: each word is a command.
-- @phases any
function _M.add_commands() end

--- Lets `redis:name():command()` stand for the command "name.command" of a module of the server's.
-- @phases any
function _M.register_module_prefix(name)
    _M[name] = function(self)
        self.prefix = name
        return self
    end
end

-- Any other word is a command of this name.
function mt.__index(_, name)
    local own = _M[name]
    if own ~= nil or type(name) ~= "string" then
        return own
    end
    local function command(client, ...)
        return run(client, name, ...)
    end
    _M[name] = command
    return command
end

return _M
