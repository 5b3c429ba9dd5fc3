--- Who may use the admin listener on TCP: no web page, and where a token is set, nobody without it.
--
-- A browser lets any page send requests to any address, and a name that resolves to this machine
-- only now makes a page's requests same-origin (DNS rebinding). So the name of a request has to be
-- one that nobody else's page can have: an IP address, localhost, a name of `admin_hosts`; and
-- where a browser says which page sent it, that has to be this listener's own. Reads are held to it
-- as well, as links, images and scripts make them.
--
-- A listener that others than this machine reach takes any name without a dot too, such as those
-- that containers and Kubernetes give their services: the domain name system delegates none, so who
-- makes one resolve is in the local network, and can connect without a browser's help.
--
-- The control socket is exempt: only its owner may enter its folder. Who that is may be several
-- people, by sudo: our command says which one, in a header that is only read there, for the history
-- and the audit log. It gives nobody any right.
--
-- A caller is `{ name =, can_write = }`: the token that it has, the control socket, or anyone.
-- @module gateway.admin.auth

local address = require("sluice.address")
local sha256 = require("sluice.sha256")
local text_rules = require("gateway.schema.text")
local variables = require("gateway.pdk.variables")

local KEY_BYTES = 32

-- Longer than any name of an account; a path, and what stands before it.
local MAX_USER, MAX_SOURCE = 128, 4200

local ANYONE = { name = "anyone", can_write = true }

local NO_TOKEN = "admin token required: send it once, as Kong-Admin-Token: TOKEN or Authorization: "
    .. "Bearer TOKEN"
local UNKNOWN_TOKEN = "this admin token is not known: it was removed or replaced, or is mistyped"

local _M = {}
local mt = { __index = _M }

-- Whether a listener is for more than this machine.
local function is_for_others(listens)
    for _, text in ipairs(listens) do
        if not address.is_loopback((address.split(text:match("^%S+")))) then
            return true
        end
    end
    return false
end

-- What a token is known by. How far two of these agree is chance to whoever does not have the key,
-- which is drawn anew whenever the settings are read: the time of looking one up tells nothing.
local function index_of(key, digest)
    return ngx.hmac_sha1(key, digest)
end

-- Who has which token; nil where none is asked for.
local function callers_of(settings, key)
    if settings.admin_token == "" and not settings.admin_token_list then
        return nil
    end
    local found = {}
    for name, can_write in pairs({ admin_token = true, admin_read_token = false }) do
        if settings[name] ~= "" then
            local index = index_of(key, sha256.hex(settings[name]))
            found[index] = { name = name, can_write = can_write }
        end
    end
    for _, token in ipairs(settings.admin_token_list or {}) do
        local caller = { name = token.name, can_write = token.role == "write" }
        found[index_of(key, token.digest)] = caller
    end
    return found
end

--- Makes the authentication of one configuration of settings.
-- @tparam table settings resolved settings: prefix, admin_listen, admin_hosts, admin_token,
-- admin_read_token, admin_token_list
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
        takes_plain_names = is_for_others(settings.admin_listen),
        key = key,
        callers = callers_of(settings, key),
    }, mt)
end

--- Whether the Host of a request is one of the listener's, and what nginx takes for the host: that
-- is another where the target is a whole URL, or the Host none by its grammar.
local function is_own_host(self, host)
    local found = host and address.parse(host)
    if not found or address.bracket(found.host) ~= variables.host:get() then
        return false
    end
    return found.type ~= "name"
        or self.names[found.host] == true
        or (self.takes_plain_names and not found.host:find(".", 1, true))
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

-- Whose token a request holds; anyone's where nothing is asked for.
local function caller_of(self, headers)
    if not self.callers then
        return ANYONE
    end
    local text = token_of(headers)
    return type(text) == "string" and self.callers[index_of(self.key, sha256.hex(text))] or nil
end

-- What a header of our command says; nil where it could be taken for something else.
local function said(variable, max_bytes)
    local text = variable:get()
    local is_line = text
        and #text <= max_bytes
        and text:find("^[%w%p][%w%p\128-\255 ]*$")
        and text_rules.utf8(text)
    return is_line and text or nil
end

-- Where it says that a configuration comes from: a file, standard input, or a setting that has the
-- text. No name of a token reads so.
local function said_source()
    local text = said(variables.http_sluice_source, MAX_SOURCE)
    local is_one = text
        and (
            text:find("^file /")
            or text:lower():find("declarative.config.string$")
            or text == "standard input"
        )
    return is_one and text or nil
end

-- Who uses the control socket, as it says itself: "control socket (alice as root)", or with the
-- file that is loaded, "file /etc/sluice/sluice.yaml (alice)".
local function socket_caller()
    local user = said(variables.http_sluice_user, MAX_USER)
    local name = said_source() or "control socket"
    return { name = user and ("%s (%s)"):format(name, user) or name, can_write = true }
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
        return socket_caller()
    end
    local headers = ngx.req.get_headers(0)
    local host = headers["host"]
    host = type(host) == "string" and host:lower() or nil
    if not is_own_host(self, host) then
        return nil,
            421,
            "unknown Host: use localhost or an IP address, or add the name to the setting "
                .. "admin_hosts"
    end
    if is_foreign(headers, host) then
        return nil, 403, "requests from web pages of other sites are refused"
    end
    local caller = caller_of(self, headers)
    if not caller then
        local is_sent = type(token_of(headers)) == "string"
        return nil,
            401,
            is_sent and UNKNOWN_TOKEN or NO_TOKEN,
            { ["WWW-Authenticate"] = 'Bearer realm="sluice"' }
    end
    return caller
end

return _M
