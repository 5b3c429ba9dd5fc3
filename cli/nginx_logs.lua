--- Where nginx logs, and what: the part of nginx.conf that cli.nginx_conf takes from here.
-- @module cli.nginx_logs

local _M = {}

local JSON_LOG = '{"time":"$time_iso8601","client":"$remote_addr","method":"$request_method",'
    .. '"host":"$host","uri":"$request_uri","status":$status,"bytes":$bytes_sent,'
    .. '"seconds":$request_time,"upstream":"$upstream_addr",'
    .. '"upstream_seconds":"$upstream_response_time","request_id":"$sluice_request_id"}'

-- What a change was asked for by whom, and how it ended. Sluice-Revision: when it is live.
local AUDIT_LOG = '{"time":"$time_iso8601","by":"$sluice_admin_by","from":"$remote_addr",'
    .. '"method":"$request_method","path":"$request_uri","status":$status,'
    .. '"revision":"$sent_http_sluice_revision"}'

local COMBINED_LOG = '$remote_addr - $remote_user [$time_local] "$request" $status '
    .. '$body_bytes_sent "$http_referer" "$http_user_agent"'

-- Variables that may hold a key, a cookie or a password
-- (module/nginx/ngx_http_sluice_redact_var.c).
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
-- @tparam string path of a setting
-- @tparam table settings resolved settings
-- @treturn string an absolute path, "off" or "stderr"
function _M.target(path, settings)
    if path == "off" or path == "stderr" or path:sub(1, 1) == "/" then
        return path
    end
    return settings.prefix .. "/" .. path
end

--- The directive of an access log.
-- @tparam string path of a setting
-- @tparam table settings resolved settings
-- @treturn string
function _M.access_log(path, settings)
    path = _M.target(path, settings)
    if path == "off" then
        return "access_log off;"
    end
    return ("access_log %s sluice;"):format(_M.quote(path))
end

local function log_format(name, escape, format)
    return ("log_format %s escape=%s '%s';"):format(
        name,
        escape,
        redacted(format):gsub("[\\']", "\\%0")
    )
end

--- The directives of the logs' formats: `sluice`, `sluice_audit`.
-- @tparam table settings resolved settings
-- @treturn string
function _M.formats(settings)
    local format, escape = settings.access_log_format, "default"
    if format == "json" then
        format, escape = JSON_LOG, "json"
    elseif format == "combined" then
        format = COMBINED_LOG
    end
    return table.concat({
        log_format("sluice", escape, format),
        log_format("sluice_audit", "json", AUDIT_LOG),
        "map $request_method $sluice_admin_writes { default 1; GET 0; HEAD 0; OPTIONS 0; }",
    }, "\n")
end

--- The directives of the admin listener's logs, and the variable that one shows.
-- @tparam table settings resolved settings
-- @treturn string
function _M.admin(settings)
    local out = { "set $sluice_admin_by -;" }
    local path = _M.target(settings.admin_access_log, settings)
    local audit = _M.target(settings.audit_log, settings)
    if path ~= "off" then
        out[#out + 1] = ("access_log %s sluice;"):format(_M.quote(path))
    end
    if audit ~= "off" then
        out[#out + 1] = ("access_log %s sluice_audit if=$sluice_admin_writes;"):format(
            _M.quote(audit)
        )
    end
    if path == "off" and audit == "off" then
        out[#out + 1] = "access_log off;"
    end
    return table.concat(out, "\n")
end

return _M
