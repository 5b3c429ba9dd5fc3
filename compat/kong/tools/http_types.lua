--- Which format an error is answered in, and with which words: part of `kong.tools.http`.
-- @module kong.tools.http_types

local format = string.format
local ngx = ngx
local tonumber = tonumber
local type = type

local _M = {}

local JSON = "application/json; charset=utf-8"
local HTML = "text/html; charset=utf-8"
local TEXT = "text/plain; charset=utf-8"
local XML = "application/xml; charset=utf-8"

-- What is answered where a type, or all of a kind, is asked for.
local ANSWERED = {
    ["application/grpc"] = "",
    ["application/json"] = JSON,
    ["application/xml"] = XML,
    ["text/html"] = HTML,
    ["text/plain"] = TEXT,
    application = JSON,
    text = TEXT,
}

local TEMPLATES = {
    grpc = "",
    html = [[
<!doctype html>
<html>
  <head>
    <meta charset="utf-8">
    <title>Error</title>
  </head>
  <body>
    <h1>Error</h1>
    <p>%s.</p>
    <p>request_id: %s</p>
  </body>
</html>
]],
    json = '{\n  "message":"%s",\n  "request_id":"%s"\n}',
    plain = "%s\nrequest_id: %s\n",
    xml = [[
<?xml version="1.0" encoding="UTF-8"?>
<error>
  <message>%s</message>
  <requestid>%s</requestid>
</error>
]],
}

local FORMATS = {
    [""] = "grpc",
    ["application/grpc"] = "grpc",
    ["application/json"] = "json",
    [JSON] = "json",
    ["text/html"] = "html",
    [HTML] = "html",
    ["application/xml"] = "xml",
    [XML] = "xml",
    ["text/plain"] = "plain",
    [TEXT] = "plain",
}

-- Format -> what the file of `error_template_<format>` has, or false.
local own = {}

local function own_template(name)
    if own[name] ~= nil then
        return own[name]
    end
    local kong = rawget(_G, "kong")
    local path = kong and kong.configuration and kong.configuration["error_template_" .. name]
    own[name] = false
    if path then
        local file, err = io.open(path, "rb")
        if file then
            own[name] = file:read("*a")
            file:close()
        else
            local message = "failed reading the custom %s error template: %s"
            ngx.log(ngx.ERR, format(message, name, err))
        end
    end
    return own[name]
end

--- The words of an error in a format: two `%s`, for the message and the id of the request.
-- @tparam string mime_type
-- @treturn string|nil
-- @treturn string|nil "no template found for MIME type ..."
-- @phases any
function _M.get_error_template(mime_type)
    local name = FORMATS[mime_type]
    if not name then
        return nil, "no template found for MIME type " .. (mime_type or "empty")
    end
    return name ~= "grpc" and own_template(name) or TEMPLATES[name]
end

local function strip(text)
    return text:match("^%s*(.-)%s*$")
end

--- The media type that is answered where one is asked for.
-- @tparam string content_header such as `text/*` or `application/json; charset=utf-8`
-- @tparam[opt=true] boolean use_default JSON for all that is not known
-- @treturn string|nil
-- @treturn string|nil "could not find MIME type"
-- @phases any
function _M.get_mime_type(content_header, use_default)
    local asked = strip(content_header):match("^[^;]*")
    local kind, subtype = asked:match("^([^/]*)/(.*)$")
    local found
    if subtype == "*" then
        found = kind == "*" and JSON or ANSWERED[kind]
    elseif subtype then
        found = ANSWERED[asked]
    end
    if found or use_default ~= false then
        return found or JSON
    end
    return nil, "could not find MIME type"
end

local NAME = "[%w][%w!#$&^_+.-]+"

local function is_name(text)
    return text == "*" or text:match("^" .. NAME .. "$") ~= nil
end

-- The media range of one part of Accept, and its quality.
local function range_of(part)
    local range, behind = part:match("^([^;%s]*)(.*)$")
    local kind, subtype = range:match("^([^/]*)/(.*)$")
    if not kind or not is_name(kind) or not is_name(subtype) then
        return nil
    end
    local quality = 1
    for name, value in behind:gmatch(";%s*([^=;%s]+)=?([^;]*)") do
        if name:lower() == "q" then
            quality = tonumber(value:match("^[01]%.?%d*")) or quality
        end
    end
    return range, quality
end

--- The media type for an answer to who accepts these.
-- @tparam string|table|nil accept_header
-- @treturn string JSON where it says nothing that is known
-- @phases any
function _M.get_response_type(accept_header)
    if type(accept_header) == "table" then
        accept_header = table.concat(accept_header, ",")
    end
    local found, best = JSON, 0
    for part in (accept_header or ""):gmatch("[^,]+") do
        local range, quality = range_of(strip(part))
        if range and quality > best then
            best = quality
            found = _M.get_mime_type(range) or found
        end
    end
    return found
end

-- Bodies of `kong.response.exit`, whatever is given, and where nothing is.
local ALWAYS = {
    [405] = "Method not allowed",
    [500] = "An unexpected error occurred",
    [502] = "Bad gateway",
}
local OTHERWISE = {
    [401] = "Unauthorized",
    [404] = "Not found",
    [503] = "Service unavailable",
}

--- What `kong.response.exit` may be given for a status.
-- @tparam number status 100 to 599
-- @tparam[opt] string|table message
-- @treturn table|nil `{ message = ... }`, or the table that was given; nil for 204
-- @raise it is no status
-- @phases any
function _M.get_default_exit_body(status, message)
    if type(status) ~= "number" then
        error("code must be a number", 2)
    elseif status < 100 or status > 599 then
        error("code must be a number between 100 and 599", 2)
    elseif status == 204 then
        return nil
    end
    local body = ALWAYS[status] or message or OTHERWISE[status]
    if body ~= nil and type(body) ~= "table" then
        body = { message = body }
    end
    return body
end

return _M
