--- Renders the listeners of nginx.conf's servers, and the TLS of those that have it.
-- @module cli.nginx_listeners

local built = require("sluice.built")
local file = require("sluice.file")
local logs = require("cli.nginx_logs")
local platform = require("cli.platform")
local tls = require("cli.tls")
local values = require("cli.values")

local _M = {}

local quote = logs.quote

local function number_of(version)
    local major, minor, patch = version:match("^(%d+)%.(%d+)%.(%d+)")
    return major and (major * 1000 + minor) * 1000 + patch or 0
end

-- Whether nginx says of a server, not of an address, that it speaks HTTP/2.
local function has_http2_directive()
    local version = file.read(built.nginx_version) or ""
    return number_of(version) >= number_of(platform.http2_directive_since)
end

--- The addresses of a server, as this nginx is told of them.
-- @tparam {string,...} list as the settings have them
-- @treturn string directives
function _M.listens(list)
    local out, has_http2 = {}, false
    for _, address in ipairs(list) do
        address = address:gsub(" ask_client_certificate%f[%s%z]", "")
        local plain, count = address:gsub(" http2%f[%s%z]", "")
        has_http2 = has_http2 or count > 0
        out[#out + 1] = ("listen %s;"):format(has_http2_directive() and plain or address)
    end
    if has_http2 and has_http2_directive() then
        out[#out + 1] = "http2 on;"
    end
    return table.concat(out, "\n")
end

-- Whether an address of the proxy has a word behind it.
local function any(settings, word)
    for _, text in ipairs(settings.proxy_listen) do
        if values.parse_listen(text)[word] then
            return true
        end
    end
    return false
end

-- Who is asked for a certificate: all clients, or those of some ports.
local function asked(settings)
    local words = settings.ask_client_certificate and { "on" } or {}
    for _, text in ipairs(#words == 0 and settings.proxy_listen or {}) do
        local listen = values.parse_listen(text)
        if listen.ask_client_certificate then
            words[#words + 1] = listen.port
        end
    end
    return #words > 0 and "sluice_tls_ask_certificate " .. table.concat(words, " ") .. ";" or ""
end

--- What listeners with TLS need. Without one there is nothing: the certificate would be read for
-- nobody.
-- @tparam table settings resolved settings
-- @treturn string directives
function _M.tls(settings)
    if not any(settings, "ssl") then
        return ""
    end
    local suite, certificate = tls.suite(settings), quote(settings.prefix .. "/tls/self-signed.pem")
    return table.concat({
        "sluice_tls on;",
        ("ssl_certificate %s;"):format(certificate),
        ("ssl_certificate_key %s;"):format(certificate),
        ("ssl_protocols %s;"):format(suite.protocols),
        ("ssl_ciphers %s;"):format(quote(suite.ciphers)),
        asked(settings),
        -- Tickets are enough, and any worker takes them; none is taken that is older than its key.
        "ssl_session_cache off;",
        "ssl_session_timeout 1h;",
    }, "\n")
end

--- What bounds clients who speak HTTP/2. Where no address has it there is nothing.
-- @tparam table settings resolved settings
-- @treturn string directives
function _M.http2(settings)
    if not any(settings, "http2") then
        return ""
    end
    return ("http2_max_concurrent_streams %d;\nsluice_http2_limits %d %d %d;"):format(
        settings.http2_max_concurrent_streams,
        settings.http2_max_resets,
        -- nginx's own bound of those that it refuses.
        math.max(settings.http2_max_concurrent_streams, 100),
        settings.http2_max_control_frames
    )
end

return _M
