--- Connects a client of resty.http: TCP, a proxy's tunnel, TLS, and a pool for exactly these.
-- @module resty.http_connect

local resolve = require("sluice.resolve")
local uris = require("resty.http.uri")

local concat = table.concat
local format = string.format
local ipairs = ipairs
local ngx = ngx
local pcall = pcall
local tostring = tostring
local type = type

local PORTS = { http = 80, https = 443 }

-- Seconds to wait for a resolver.
local RESOLVE_SECONDS = 60

local function is_excepted(list, host)
    if list == "*" then
        return true
    end
    host = host:lower()
    for name in list:lower():gmatch("[^,%s]+") do
        name = name:gsub("^%.", "")
        if name ~= "" and (host == name or host:sub(-#name - 1) == "." .. name) then
            return true
        end
    end
    return false
end

--- The proxy for a host, if it has one.
-- @tparam table|nil proxies of `set_proxy_options`
-- @tparam string scheme
-- @tparam string host
-- @treturn string|nil its URI
-- @treturn string|nil what it wants in `Proxy-Authorization`
-- @phases any
local function proxy_of(proxies, scheme, host)
    if not proxies or (proxies.no_proxy and is_excepted(proxies.no_proxy, host)) then
        return nil
    elseif scheme == "https" then
        return proxies.https_proxy, proxies.https_proxy_authorization
    end
    return proxies.http_proxy, proxies.http_proxy_authorization
end

-- What a certificate is to name where nobody says another: without one anybody's would do.
local function name_of(host)
    return not host:find("^[%d.]+$") and not host:find("^%[") and host or nil
end

-- Where to connect to, {host, port} of the proxy where there is one, and what it is called in a
-- pool. What `options` says of TLS tells pools apart, so that nobody gets the connection of
-- somebody who has not verified its server.
local function plan(self, options)
    local scheme, host, port = options.scheme, options.host, options.port
    if type(host) ~= "string" then
        return nil, "host is missing"
    elseif port and not scheme then
        return nil, "'scheme' is required when providing a port"
    elseif scheme and not PORTS[scheme] then
        return nil, "unknown scheme '" .. tostring(scheme) .. "'"
    end
    local found = {
        scheme = scheme,
        host = host,
        port = scheme and (port or PORTS[scheme]),
        is_tls = scheme == "https",
        has_client_cert = options.ssl_client_cert ~= nil and options.ssl_client_priv_key ~= nil,
    }
    found.server_name = found.is_tls and (options.ssl_server_name or name_of(host)) or nil
    local proxy, authorization
    if scheme then
        proxy, authorization = proxy_of(options.proxy_opts or self.proxy_opts, scheme, host)
    end
    if proxy then
        local parsed, err = uris.parse(proxy)
        if not parsed then
            return nil, "uri parse error: " .. err
        elseif parsed[1] ~= "http" then
            return nil, "protocol " .. parsed[1] .. " not supported for proxy connections"
        end
        found.proxy = { host = parsed[2], port = parsed[3], authorization = authorization }
    end
    found.pool = options.pool
        or concat({
            scheme or "",
            host,
            tostring(found.port),
            found.server_name or "",
            tostring(not found.is_tls or options.ssl_verify ~= false),
            proxy or "",
            found.is_tls and authorization or "",
        }, ":")
    return found
end

-- The first address that answers.
local function connect_to(sock, host, port, options)
    local addresses, err = resolve.addresses(host, RESOLVE_SECONDS)
    if not addresses then
        return nil, err
    end
    local ok
    for _, address in ipairs(addresses) do
        ok, err = sock:connect(address, port, options)
        if ok then
            return true
        end
    end
    return nil, err
end

-- Asks the proxy for a tunnel.
local function open_tunnel(self, found)
    local destination = found.host .. ":" .. found.port
    self.path_prefix, self.http_proxy_auth = nil, nil
    self.host, self.port = found.host, found.port
    local res, err = self:request({
        method = "CONNECT",
        path = destination,
        headers = { Host = destination, ["Proxy-Authorization"] = found.proxy.authorization },
    })
    if not res then
        return nil, "failed to issue CONNECT to proxy: " .. err
    elseif res.status < 200 or res.status > 299 then
        return nil, "failed to establish a tunnel through a proxy: " .. res.status
    elseif self.stream.rest ~= "" then
        return nil, "failed to establish a tunnel through a proxy: it sent more than a response"
    end
    return true
end

local function shake_hands(self, found, options)
    local sock = self.sock
    -- The socket remembers one over connections.
    if found.has_client_cert or self.had_client_cert then
        self.had_client_cert = found.has_client_cert
        local ok, err = sock:setclientcert(options.ssl_client_cert, options.ssl_client_priv_key)
        if not ok then
            return nil, "could not set client certificate: " .. err
        end
    end
    -- lua-resty-core throws where a handshake fails that did not have to wait; with false in place
    -- of nil it would say that it succeeded.
    local is_done, session, err = pcall(
        sock.sslhandshake,
        sock,
        options.ssl_reused_session or nil,
        found.server_name,
        options.ssl_verify ~= false,
        options.ssl_send_status_req
    )
    if not is_done then
        return nil, "the TLS handshake failed"
    end
    return session, err
end

local function check_client_cert(options)
    for _, name in ipairs({ "ssl_client_cert", "ssl_client_priv_key" }) do
        local kind = type(options[name])
        if kind ~= "cdata" and kind ~= "nil" then
            return nil, format("bad %s: cdata expected, got %s", name, kind)
        end
    end
    return true
end

-- A connection from nothing to where requests can be sent.
local function establish(self, found, options)
    local sock = self.sock
    local tcp = {
        pool = found.pool,
        pool_size = options.pool_size,
        backlog = options.backlog,
    }
    local ok, err
    if found.proxy then
        ok, err = connect_to(sock, found.proxy.host, found.proxy.port, tcp)
        if not ok then
            local line = "failed to connect to: %s:%d: %s"
            return nil, format(line, found.proxy.host, found.proxy.port, err)
        end
    elseif found.port then
        ok, err = connect_to(sock, found.host, found.port, tcp)
    else
        ok, err = sock:connect(found.host, tcp)
    end
    if not ok then
        return nil, err
    end
    self.stream:reset()
    if not found.is_tls or sock:getreusedtimes() > 0 then
        return true
    end
    if found.proxy then
        ok, err = open_tunnel(self, found)
        if not ok then
            return nil, err
        end
    end
    local session
    session, err = shake_hands(self, found, options)
    if not session then
        return nil, err
    end
    return true, nil, session
end

--- Connects a client. Yields.
-- @tparam table self the client
-- @tparam table options scheme, host, port, pool, pool_size, backlog, ssl_verify (true),
--   ssl_server_name (the host, if it is no address), ssl_reused_session, ssl_send_status_req,
--   ssl_client_cert, ssl_client_priv_key, proxy_opts; without a scheme the host is a UNIX socket
-- @treturn true|nil
-- @treturn string|nil the socket's reason, or what is wrong with the options, the proxy, its tunnel
-- @treturn any the TLS session
-- @phases as cosockets
local function connect(self, options)
    if not self.sock then
        return nil, "not initialized"
    end
    local ok, found, err, session
    ok, err = check_client_cert(options)
    if ok then
        found, err = plan(self, options)
    end
    if not found then
        return nil, err
    elseif options.pool_debug then
        ngx.log(ngx.DEBUG, "poolname: ", found.pool)
    end
    if found.has_client_cert then
        -- Of one owner: its connections are for nobody else, and kept for nobody.
        found.pool = found.pool .. ":" .. tostring(self)
    end
    self.unread = nil
    ok, err, session = establish(self, found, options)
    if not ok then
        self.sock:close()
        return nil, err
    end
    self.host, self.port, self.ssl = found.host, found.port, found.is_tls
    self.keepalive = not found.has_client_cert
    -- A proxy wants the whole URI of what is not tunnelled (RFC 9112 3.2.2).
    local is_forwarded = found.proxy and not found.is_tls
    self.path_prefix = is_forwarded
            and "http://" .. found.host .. (found.port == 80 and "" or ":" .. found.port)
        or nil
    self.http_proxy_auth = is_forwarded and found.proxy.authorization or nil
    return true, nil, session
end

return { connect = connect, proxy_of = proxy_of }
