--- The servers of nginx.conf that are the control worker's: the Admin API and the status listener.
-- @module cli.nginx.control_servers

local blocks = require("cli.nginx.blocks")
local document = require("gateway.config.document")
local listeners = require("cli.nginx.listeners")
local logs = require("cli.nginx.logs")

local _M = {}

local call = blocks.call

-- Of both, whatever clients of the proxy are given: who sends slowly holds connections, of which
-- those over TCP have a share (module/gateway/process/ngx_http_sluice_control_bound.c).
local HEADER_TIMEOUT = "5s"

-- What both have.
local function head(settings, listener)
    local list = settings[listener .. "_listen"]
    return table.concat({
        ("server_name sluice_%s;"):format(listener),
        logs.errors(settings, listener),
        ("sluice_control_server %s;"):format(listener),
        listeners.listens(list),
        listeners.control_tls(settings, listener),
        listeners.http2(settings, list),
        ("client_header_timeout %s;"):format(HEADER_TIMEOUT),
        blocks.error_pages(blocks.REFUSED),
        ("location = %s {"):format(blocks.REFUSED),
        "internal;",
        call("content", "admin_refused"),
        "}",
    }, "\n")
end

--- The Admin API's, and always there: the command line asks through its own socket, for which it
-- has made a directory that only its user may enter.
-- @tparam table settings resolved settings
-- @treturn string directives
function _M.admin(settings)
    return table.concat({
        "server {",
        head(settings, "admin"),
        ("listen %s;"):format(logs.quote("unix:" .. settings.prefix .. "/run/control/socket")),
        ("client_max_body_size %d;"):format(document.MAX_BYTES),
        "client_body_buffer_size 1m;",
        logs.admin(settings),
        call("log", "admin_log"),
        "location / {",
        "    " .. call("content", "admin"),
        "}",
        "}",
    }, "\n")
end

--- The status listener's.
-- @tparam table settings resolved settings
-- @treturn string directives
function _M.status(settings)
    return table.concat({
        "server {",
        head(settings, "status"),
        logs.status(settings),
        "location / {",
        "    " .. call("content", "status"),
        "}",
        "}",
    }, "\n")
end

return _M
