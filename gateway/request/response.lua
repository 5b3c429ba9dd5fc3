--- Responses that the gateway itself gives: errors, and those of plugins.
-- @module gateway.request.response

local abi = require("sluice.abi")
local cjson = require("cjson.safe")
local ffi = require("ffi")
local variables = require("gateway.request.variables")
local version = require("gateway.version")

-- Without nginx (unit tests) nothing is answered.
local get_request = ngx and require("resty.core.base").get_request

abi.declare("void sluice_gateway_refuse_header(void *r);")

local _M = {}

-- nginx's own code: it stays in the logs, and the client gets a 400.
local HEADER_TOO_LARGE = 494

local PRODUCT = "sluice/" .. version.product

-- Kong's words for what nginx refuses by itself.
local MESSAGES = {
    [400] = "Bad request",
    [404] = "Not found",
    [405] = "Method not allowed",
    [408] = "Request timeout",
    [411] = "Length required",
    [412] = "Precondition failed",
    [413] = "Payload too large",
    [414] = "URI too long",
    [417] = "Expectation failed",
    [HEADER_TOO_LARGE] = "Request header or cookie too large",
    [500] = "An unexpected error occurred",
    [501] = "Not implemented",
    [502] = "An invalid response was received from the upstream server",
    [503] = "The upstream server is currently unavailable",
    [504] = "The upstream server is timing out",
    [505] = "HTTP version not supported",
}

local function escape_markup(text)
    return (
        text:gsub('[<>&"]', { ["<"] = "&lt;", [">"] = "&gt;", ["&"] = "&amp;", ['"'] = "&quot;" })
    )
end

local FORMATS = {
    json = {
        content_type = "application/json; charset=utf-8",
        body = function(message, id)
            return ('{\n  "message":%s,\n  "request_id":%s\n}'):format(
                cjson.encode(message),
                cjson.encode(id)
            )
        end,
    },
    xml = {
        content_type = "application/xml; charset=utf-8",
        body = function(message, id)
            return (
                '<?xml version="1.0" encoding="UTF-8"?>\n<error>\n'
                .. "  <message>%s</message>\n  <requestid>%s</requestid>\n</error>"
            ):format(escape_markup(message), escape_markup(id))
        end,
    },
    html = {
        content_type = "text/html; charset=utf-8",
        body = function(message, id)
            return (
                '<!doctype html>\n<html>\n<head>\n  <meta charset="utf-8">\n'
                .. "  <title>Error</title>\n</head>\n<body>\n  <h1>Error</h1>\n"
                .. "  <p>%s.</p>\n  <p>request_id: %s</p>\n</body>\n</html>\n"
            ):format(escape_markup(message), escape_markup(id))
        end,
    },
    text = {
        content_type = "text/plain; charset=utf-8",
        body = function(message, id)
            return ("%s\nrequest_id: %s\n"):format(message, id)
        end,
    },
}

local BY_MEDIA_TYPE = {
    ["*/*"] = FORMATS.json,
    ["application/*"] = FORMATS.json,
    ["application/json"] = FORMATS.json,
    ["application/xml"] = FORMATS.xml,
    ["text/xml"] = FORMATS.xml,
    ["text/html"] = FORMATS.html,
    ["application/xhtml+xml"] = FORMATS.html,
    ["text/*"] = FORMATS.text,
    ["text/plain"] = FORMATS.text,
}

local settings = { server_tokens = true, latency_tokens = true, default = FORMATS.text }

--- Takes over the options that shape responses. Called once by the gateway's init.
-- @tparam table options resolved settings: headers, header_prefix, error_default_type
function _M.configure(options)
    settings = { default = BY_MEDIA_TYPE[options.error_default_type] or FORMATS.text }
    for _, token in ipairs(options.headers) do
        settings[token] = true
    end
    settings.latency_header = options.header_prefix .. "-Response-Latency"
end

--- The format for an Accept header (RFC 9110, 12.5.1): the known media type
-- with the highest q, the earlier of equals. JSON where none is known.
-- @tparam string|nil accept
-- @treturn table `{content_type, body = function(message, request_id)}`
function _M.format_for(accept)
    if not accept then
        return settings.default
    end
    local best, best_q = nil, 0
    for range in accept:gmatch("[^,]+") do
        local media_type = range:match("^%s*([^;%s]+)")
        local format = media_type and BY_MEDIA_TYPE[media_type:lower()]
        local q = tonumber(range:match(";%s*[qQ]%s*=%s*([%d.]+)")) or 1
        if format and q > best_q then
            best, best_q = format, q
        end
    end
    return best or FORMATS.json
end

--- Writes a whole response and ends the request, whoever gives it. Does not return.
-- @tparam number status
-- @tparam string|nil body
-- @tparam string|nil content_type
-- @tparam table|nil headers name -> value
-- @phases rewrite, access, content
function _M.write(status, body, content_type, headers)
    local header = ngx.header
    ngx.status = status
    if status == HEADER_TOO_LARGE then
        ffi.C.sluice_gateway_refuse_header(get_request())
    end
    header["Content-Type"] = content_type
    -- A 304 speaks of what the client has, not of this empty body (RFC 9110, 8.6).
    if status ~= 304 then
        header["Content-Length"] = body and #body or 0
    end
    if headers then
        for name, value in pairs(headers) do
            header[name] = value
        end
    end
    if body then
        ngx.print(body)
    else
        ngx.send_headers()
    end
    return ngx.exit(ngx.OK)
end

--- Answers in place of an upstream and ends the request. Does not return.
-- @tparam number status
-- @tparam string|nil body
-- @tparam string|nil content_type
-- @tparam table|nil headers name -> value
-- @phases rewrite, access, content
function _M.send(status, body, content_type, headers)
    -- Not proxied: without the headers that tell of an upstream.
    variables.sluice_response_via:set("")
    variables.sluice_proxy_ms:set("")
    local header = ngx.header
    if settings.server_tokens then
        header["Server"] = PRODUCT
    end
    if settings.latency_tokens then
        local ms = (ngx.now() - ngx.req.start_time()) * 1000
        header[settings.latency_header] = ("%d"):format(ms + 0.5)
    end
    return _M.write(status, body, content_type, headers)
end

--- What a client is told where nginx would send its own error page.
-- @tparam number status
-- @treturn string Kong's words for it
function _M.refusal(status)
    return MESSAGES[status] or ("The upstream server responded with %d"):format(status)
end

--- Answers an error in the format that the client accepts. Does not return.
-- @tparam number status
-- @tparam string|nil message default: Kong's words for the status
-- @tparam table|nil headers name -> value
-- @phases rewrite, access, content
function _M.error(status, message, headers)
    message = message or _M.refusal(status)
    local accept = variables.http_accept:get() or variables.http_content_type:get()
    local format = _M.format_for(accept)
    local body = format.body(message, variables.sluice_request_id:get())
    return _M.send(status, body, format.content_type, headers)
end

--- Answers with a table as JSON, or a string as it is. Does not return.
-- @tparam number status
-- @tparam string|table|nil body
-- @tparam table|nil headers name -> value
-- @phases rewrite, access, content
function _M.exit(status, body, headers)
    local content_type
    if type(body) == "table" then
        body, content_type = cjson.encode(body), FORMATS.json.content_type
    end
    return _M.send(status, body, content_type, headers)
end

return _M
