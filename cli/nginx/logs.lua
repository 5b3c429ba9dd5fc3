--- Where nginx logs, and what: the part of nginx.conf that cli.nginx_conf takes from here.
-- @module cli.nginx.logs

local values = require("cli.options.values")

local _M = {}

--- The settings that name a log.
_M.names = {
    "error_log",
    "access_log",
    "admin_access_log",
    "admin_error_log",
    "status_access_log",
    "status_error_log",
    "audit_log",
}

-- The whole lines are made in C (module/gateway/log/ngx_http_sluice_log_line.c, _audit.c).
local JSON_LOG = "$sluice_access_log_line"
local AUDIT_LOG = "$sluice_audit_log_line"

local COMBINED_LOG = '$remote_addr - $remote_user [$time_local] "$request" $status '
    .. '$body_bytes_sent "$http_referer" "$http_user_agent"'

-- What a reader wants to know next: whose answer it is, and why a try has failed.
local TEXT_LOG = COMBINED_LOG
    .. ' from=$sluice_source route=$sluice_route failed="$sluice_failed_tries" '
    .. "request_id=$sluice_request_id"

-- Variables that may hold a key, a cookie or a password
-- (module/lib/redact/ngx_http_sluice_redact_var.c).
local SECRET_VARIABLES = {
    "^request$",
    "^request_uri$",
    "^request_filename$",
    "^request_body$",
    "^uri$",
    "^document_uri$",
    "^args$",
    "^query_string$",
    "^remote_user$",
    "^arg_",
    "^cookie_",
    "^http_",
    "^sent_http_",
    "^upstream_http_",
    "^upstream_cookie_",
    "^sluice_uri$",
    "^sluice_request_path$",
    "^sluice_client_",
    "^sluice_forwarded_",
}

--- Takes what is fit for a log in the place of variables that may hold a secret.
local function redacted(format)
    return (
        format:gsub("%$({?)([%w_]+)", function(brace, name)
            for _, pattern in ipairs(SECRET_VARIABLES) do
                if name:lower():find(pattern) then
                    return "$" .. brace .. "sluice_log_" .. name
                end
            end
        end)
    )
end

--- A parameter of a directive, between quotes.
-- @tparam string text
-- @treturn string
function _M.quote(text)
    return '"' .. tostring(text):gsub('[\\"]', "\\%0") .. '"'
end

--- Where a log goes.
-- @tparam string log a setting's value
-- @tparam string prefix of the instance
-- @treturn string an absolute path without . and .., "off", "stderr" or "syslog:..."
function _M.target(log, prefix)
    if log == "off" or log == "stderr" or log:find("^syslog:") then
        return log
    end
    return values.absolute(log, prefix)
end

--- An access log. What is in the place of the proxy's access log has its buffer, too: nginx opens
-- a file once, and wants it to be the same for all.
local function access_log(log, format, condition, settings)
    local target = _M.target(log, settings.prefix)
    local out = { "access_log", _M.quote(target), format }
    local is_buffered = not settings.access_log_buffer:find("^0+%a?$")
        and target == _M.target(settings.access_log, settings.prefix)
        and not target:find("^syslog:")
    if is_buffered then
        out[#out + 1] = "buffer=" .. settings.access_log_buffer
        out[#out + 1] = "flush=" .. settings.access_log_flush
    end
    if condition then
        out[#out + 1] = "if=" .. condition
    end
    return table.concat(out, " ") .. ";"
end

--- The directive of the proxy's access log.
-- @tparam table settings resolved settings
-- @treturn string
function _M.proxy(settings)
    if settings.access_log == "off" then
        return "access_log off;"
    end
    return access_log(settings.access_log, "sluice", "$sluice_access_log_has", settings)
end

local function log_format(name, escape, format)
    return ("log_format %s escape=%s '%s';"):format(
        name,
        escape,
        redacted(format):gsub("[\\']", "\\%0")
    )
end

-- The format of a setting, by its name.
local function format_of(name, format)
    local escape = "default"
    if format == "json" then
        format, escape = JSON_LOG, "none"
    elseif format == "combined" then
        format = COMBINED_LOG
    elseif format == "text" then
        format = TEXT_LOG
    elseif format:find("^%s*{") then
        escape = "json"
    end
    return log_format(name, escape, format)
end

-- Whether a listener of the control worker, "admin" or "status", has a format of its own.
local function has_own_format(settings, listener)
    return settings[listener .. "_access_log_format"] ~= settings.access_log_format
end

--- The directives of the logs' formats: `sluice`, `sluice_admin` and `sluice_status` where they are
-- others, `sluice_audit`.
-- @tparam table settings resolved settings
-- @treturn string
function _M.formats(settings)
    local out = { format_of("sluice", settings.access_log_format) }
    for _, listener in ipairs({ "admin", "status" }) do
        if has_own_format(settings, listener) then
            local format = settings[listener .. "_access_log_format"]
            out[#out + 1] = format_of("sluice_" .. listener, format)
        end
    end
    out[#out + 1] = log_format("sluice_audit", "none", AUDIT_LOG)
    return table.concat(out, "\n")
end

--- The directive of a listener's error log, where that is another than nginx's.
-- @tparam table settings resolved settings
-- @tparam string listener "admin" or "status"
-- @treturn string
function _M.errors(settings, listener)
    local log = settings[listener .. "_error_log"]
    if log == settings.error_log then
        return ""
    end
    local target = _M.target(log, settings.prefix)
    return ("error_log %s %s;"):format(_M.quote(target), settings.log_level)
end

-- The access log of a listener of the control worker; nil: it is off.
local function listener_log(settings, listener)
    local log = settings[listener .. "_access_log"]
    local format = has_own_format(settings, listener) and "sluice_" .. listener or "sluice"
    return log ~= "off" and access_log(log, format, nil, settings) or nil
end

--- The directive of the status listener's access log.
-- @tparam table settings resolved settings
-- @treturn string
function _M.status(settings)
    return listener_log(settings, "status") or "access_log off;"
end

--- The directives of the admin listener's logs, and the variable that one shows.
-- @tparam table settings resolved settings
-- @treturn string
function _M.admin(settings)
    -- Nobody has set it where a request ends before its first line does.
    local out = { "set $sluice_admin_by -;", "uninitialized_variable_warn off;" }
    out[#out + 1] = listener_log(settings, "admin")
    if settings.audit_log ~= "off" then
        out[#out + 1] =
            access_log(settings.audit_log, "sluice_audit", "$sluice_audit_log_has", settings)
    end
    if settings.admin_access_log == "off" and settings.audit_log == "off" then
        out[#out + 1] = "access_log off;"
    end
    return table.concat(out, "\n")
end

return _M
