--- Who may use the admin listener on TCP: no web page, and where a token is set, nobody without it.
--
-- A browser lets any page send requests to any address, and a name that resolves to this machine
-- only now makes a page's requests same-origin (DNS rebinding). So the name of a request has to be
-- one that nobody else's page can have: an IP address, localhost, a name of `admin_hosts`; and
-- where a browser says which page sent it, that has to be this listener's own. Reads are held to it
-- as well, as links, images and scripts make them.
--
-- The control socket is exempt: only its owner may enter its folder.
--
-- A caller is `{ name =, can_write = }`: the token that it has, the control socket, or anyone.
-- @module gateway.control.admin.guard

local address = require("sluice.address")
local variables = require("gateway.request.variables")

local ngx = ngx

local KEY_BYTES = 32

local SOCKET = { name = "control socket", can_write = true }
local ANYONE = { name = "anyone", can_write = true }
local FULL = { name = "admin_token", can_write = true }
local READER = { name = "admin_read_token", can_write = false }

local _M = {}
local mt = { __index = _M }

--- Makes the guard of one configuration of settings.
-- @tparam table settings resolved settings: prefix, admin_hosts, admin_token, admin_read_token
-- @treturn table
-- @phases init
function _M.new(settings)
    local names = { localhost = true }
    for _, name in ipairs(settings.admin_hosts) do
        names[name] = true
    end
    local random = assert(io.open("/dev/urandom", "rb"))
    local key = assert(random:read(KEY_BYTES))
    random:close()
    return setmetatable({
        control = "unix:" .. settings.prefix .. "/run/control/socket",
        names = names,
        key = key,
        token = settings.admin_token,
        read_token = settings.admin_read_token,
    }, mt)
end

--- Whether the Host of a request is one of the listener's, and what nginx takes for the host: that
-- is another where the target is a whole URL, or the Host none by its grammar.
local function is_own_host(self, host)
    local found = host and address.parse(host)
    if not found or address.bracket(found.host) ~= variables.host:get() then
        return false
    end
    return found.type ~= "name" or self.names[found.host] == true
end

--- Whether a browser says that another site's page sent the request. Several lines are a table,
-- which equals no text.
local function is_foreign(headers, host)
    local origin, site = headers["origin"], headers["sec-fetch-site"]
    if origin then
        local own = variables.scheme:get() .. "://" .. host
        if type(origin) ~= "string" or origin:lower() ~= own then
            return true
        end
    end
    return site ~= nil and site ~= "same-origin" and site ~= "none"
end

--- The token that a request holds: that of Kong-Admin-Token where there is one, since the other
-- header may be meant for a proxy on the way.
local function token_of(headers)
    local token = headers["kong-admin-token"]
    if token then
        return token
    end
    local authorization = headers["authorization"]
    if type(authorization) ~= "string" then
        return nil
    end
    local scheme, credentials = authorization:match("^(%a+) +(.*)$")
    return scheme and scheme:lower() == "bearer" and credentials or nil
end

--- Compares with the token in a time that tells nothing of it: how far two digests agree is chance
-- to whoever does not have the key, and that is drawn anew whenever the settings are read.
local function is_token(self, text, token)
    return token ~= "" and ngx.hmac_sha1(self.key, text) == ngx.hmac_sha1(self.key, token)
end

-- Whose token a request holds; anyone's where nothing is asked for.
local function caller_of(self, headers)
    local text = token_of(headers)
    if type(text) == "string" and is_token(self, text, self.read_token) then
        return READER
    elseif self.token == "" then
        return ANYONE
    end
    return type(text) == "string" and is_token(self, text, self.token) and FULL or nil
end

--- Checks the request that is being answered, before anything else of it is read.
-- @treturn table|nil the caller, where the request may pass
-- @treturn number|nil status to refuse it with: 421 for a name that is not the listener's
-- (RFC 9110, 15.5.20), 403 for another site's page, 401 without a token
-- @treturn string|nil why, for a human
-- @treturn table|nil headers of the response
-- @phases content
function _M:check()
    -- Where the listening socket is, which no client chooses.
    if variables.server_addr:get() == self.control then
        return SOCKET
    end
    local headers = ngx.req.get_headers(0)
    local host = headers["host"]
    host = type(host) == "string" and host:lower() or nil
    if not is_own_host(self, host) then
        return nil,
            421,
            "the admin listener is not known by this Host: use localhost or an IP address, or add "
                .. "the name to the setting admin_hosts"
    end
    if is_foreign(headers, host) then
        return nil, 403, "the admin listener takes no requests of other sites' web pages"
    end
    local caller = caller_of(self, headers)
    if not caller then
        return nil,
            401,
            "the admin listener wants its token, once, as Kong-Admin-Token: TOKEN or "
                .. "Authorization: Bearer TOKEN",
            { ["WWW-Authenticate"] = 'Bearer realm="sluice"' }
    end
    return caller
end

return _M
