--- Where nginx logs, and what: the part of nginx.conf that cli.nginx_conf takes from here.
-- @module cli.nginx_logs

local _M = {}

local JSON_LOG = '{"time":"$time_iso8601","client":"$remote_addr","method":"$request_method",'
    .. '"host":"$host","uri":"$request_uri","status":$status,"bytes":$bytes_sent,'
    .. '"seconds":$request_time,"upstream":"$upstream_addr",'
    .. '"upstream_seconds":"$upstream_response_time","request_id":"$sluice_request_id"}'

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

--- The directive of the access logs' format.
-- @tparam table settings resolved settings
-- @treturn string
function _M.format(settings)
    local format = settings.access_log_format
    if format == "json" then
        return "log_format sluice escape=json '" .. redacted(JSON_LOG) .. "';"
    elseif format == "combined" then
        format = COMBINED_LOG
    end
    return "log_format sluice '" .. redacted(format):gsub("[\\']", "\\%0") .. "';"
end

return _M
