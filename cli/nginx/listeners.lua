--- Renders the listeners of nginx.conf's servers, and the TLS of those that have it.
-- @module cli.nginx.listeners

local built = require("sluice.built")
local file = require("sluice.file")
local listen_of = require("cli.options.listen")
local logs = require("cli.nginx.logs")
local platform = require("cli.options.platform")
local tls = require("cli.nginx.tls")

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

-- Whether one of some addresses has a word behind it.
local function any(list, word)
    for _, text in ipairs(list) do
        if listen_of.parse(text)[word] then
            return true
        end
    end
    return false
end

-- Who is asked for a certificate: all clients, or those of some ports.
local function asked(settings)
    local words = settings.ask_client_certificate and { "on" } or {}
    for _, text in ipairs(#words == 0 and settings.proxy_listen or {}) do
        local listen = listen_of.parse(text)
        if listen.ask_client_certificate then
            words[#words + 1] = listen.port
        end
    end
    return #words > 0 and "sluice_tls_ask_certificate " .. table.concat(words, " ") .. ";" or ""
end

-- The certificates of a setting, or the self-signed one.
local function certificates(settings, name)
    local out = {}
    local keys = tls.own_files(settings, name .. "_key")
    for i, each in ipairs(tls.own_files(settings, name)) do
        out[#out + 1] = ("ssl_certificate %s;"):format(quote(each.path))
        out[#out + 1] = ("ssl_certificate_key %s;"):format(quote(keys[i].path))
    end
    if #out == 0 then
        local path = quote(settings.prefix .. "/tls/self-signed.pem")
        out = { ("ssl_certificate %s;\nssl_certificate_key %s;"):format(path, path) }
    end
    return table.concat(out, "\n")
end

-- What all listeners with TLS have.
local function handshakes(settings, name)
    local suite = tls.suite(settings)
    return {
        certificates(settings, name),
        ("ssl_protocols %s;"):format(suite.protocols),
        ("ssl_ciphers %s;"):format(quote(suite.ciphers)),
        suite.prefers_server and "ssl_prefer_server_ciphers on;" or "",
        -- Tickets are enough, and any worker takes them; none is taken that is older than its key.
        "ssl_session_cache off;",
        "ssl_session_timeout 1h;",
    }
end

--- What the proxy's listeners with TLS need. Without one there is nothing: the certificate would be
-- read for nobody.
-- @tparam table settings resolved settings
-- @treturn string directives
function _M.tls(settings)
    if not any(settings.proxy_listen, "ssl") then
        return ""
    end
    local out = handshakes(settings, "ssl_cert")
    out[#out + 1] = "sluice_tls on;"
    -- Runs in a worker with a plugin that has this phase (gateway.plugin.handshake).
    out[#out + 1] = "ssl_certificate_by_lua_block { package.loaded.gateway.certificate() }"
    out[#out + 1] = asked(settings)
    return table.concat(out, "\n")
end

--- What the control worker's listeners with TLS need.
-- @tparam table settings resolved settings
-- @tparam string listener "admin" or "status"
-- @treturn string directives
function _M.control_tls(settings, listener)
    if not any(settings[listener .. "_listen"], "ssl") then
        return ""
    end
    local out = handshakes(settings, listener .. "_ssl_cert")
    if listener == "admin" and settings.admin_client_ca ~= "" then
        out[#out + 1] = ("ssl_client_certificate %s;"):format(quote(settings.admin_client_ca))
        out[#out + 1] = ("ssl_verify_client %s;"):format(settings.admin_verify_client)
        out[#out + 1] = ("ssl_verify_depth %d;"):format(settings.admin_verify_depth)
    end
    return table.concat(out, "\n")
end

--- What bounds clients who speak HTTP/2. Where no address has it there is nothing.
-- @tparam table settings resolved settings
-- @tparam {string,...} list addresses of a server
-- @treturn string directives
function _M.http2(settings, list)
    if not any(list, "http2") then
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
