--- Headers that the gateway sets or reads as its own.
--
-- A client must not speak in the gateway's name, and an upstream's lines must not stand beside the
-- gateway's. This is the one list of their names; nginx.conf says them to nginx and to the module
-- (module/gateway/proxy/ngx_http_sluice_spoofed_headers.c). A `*` at the end stands for any rest.
-- @module cli.nginx.own_headers

local _M = {}

-- Who a request comes from, as authentication has found out.
local IDENTITY = {
    "X-Consumer-*",
    "X-Credential-*",
    "X-Anonymous-Consumer",
    "X-Authenticated-Groups",
    "X-Client-Cert-*",
}

-- Those of a request that frame it, that say whence and how it came, or that plugins read. Names
-- without a dash (Host, Via, Connection, ...) can be written in one way only.
local OF_REQUEST = {
    "Content-Length",
    "Content-Type",
    "Keep-Alive",
    "Proxy-Authenticate",
    "Proxy-Authorization",
    "Proxy-Connection",
    "Transfer-Encoding",
    "X-Forwarded-*",
    "X-Real-IP",
}

--- Those of a request that are for the gateway alone: of what the client has sent nothing is passed
-- on. The module frames bodies, and asks for an upgrade, with lines of its own.
_M.of_this_hop = {
    "Connection",
    "Content-Length",
    "Expect",
    "Keep-Alive",
    "Proxy",
    "Proxy-Connection",
    "TE",
    "Transfer-Encoding",
    "Upgrade",
}

-- Those of a response that are for the gateway alone (RFC 9110, 7.6.1). Connection, Keep-Alive and
-- Transfer-Encoding are nginx's; the Upgrade of a 101 is the module's
-- (module/gateway/upstream/ngx_http_sluice_upgrade.c).
local HOP_BY_HOP = {
    "Proxy-Authenticate",
    "Proxy-Authentication-Info",
    "Proxy-Connection",
    "TE",
    "Trailer",
    "Upgrade",
}

-- What the words of the setting `headers` are for that stand for several.
local OF_TOKENS = {
    latency_tokens = { "upstream_latency", "proxy_latency", "response_latency" },
    server_tokens = { "server", "via" },
}

-- What each of the others adds to responses, behind header_prefix.
local ENDINGS = {
    upstream_latency = "-Upstream-Latency",
    proxy_latency = "-Proxy-Latency",
    response_latency = "-Response-Latency",
    upstream_status = "-Upstream-Status",
    request_id = "-Request-Id",
}

local WORDS = {
    "upstream_latency",
    "proxy_latency",
    "response_latency",
    "upstream_status",
    "request_id",
}

local function append(list, more)
    for _, item in ipairs(more) do
        list[#list + 1] = item
    end
end

--- What is added to responses.
-- @tparam table settings resolved settings
-- @treturn table set of words of `headers`, none of which stands for several
function _M.added(settings)
    local set = {}
    for _, token in ipairs(settings.headers) do
        for _, word in ipairs(OF_TOKENS[token] or { token }) do
            set[word] = true
        end
    end
    return set
end

--- The name of a header that is added.
-- @tparam table settings resolved settings
-- @tparam string word of `added`, behind header_prefix
-- @treturn string
function _M.name(settings, word)
    return settings.header_prefix .. ENDINGS[word]
end

--- Names of which a request keeps no line that a client has sent, however it is written.
-- @tparam table settings resolved settings
-- @treturn {string,...}
function _M.dropped_of_request(settings)
    return settings.client_identity_headers == "drop" and IDENTITY or {}
end

--- Names of which a request keeps no line with another character for a dash.
-- @tparam table settings resolved settings
-- @treturn {string,...}
function _M.guarded_of_request(settings)
    local names = {}
    append(names, OF_REQUEST)
    append(names, IDENTITY)
    if #settings.headers > 0 then
        names[#names + 1] = settings.header_prefix .. "-*"
    end
    if not settings.real_ip_header:find("[^%w-]") then
        names[#names + 1] = settings.real_ip_header
    end
    return names
end

--- Names of which a client gets no line of the upstream's.
-- @tparam table settings resolved settings
-- @treturn {string,...}
function _M.hidden_of_response(settings)
    local names = {}
    append(names, HOP_BY_HOP)
    local added = _M.added(settings)
    for _, word in ipairs(WORDS) do
        names[#names + 1] = added[word] and _M.name(settings, word) or nil
    end
    -- It stands in the gateway's line, before the gateway.
    names[#names + 1] = added.via and "Via" or nil
    return names
end

return _M
