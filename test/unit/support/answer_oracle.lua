--- Bodies of errors in Lua: the formatter that the gateway had before it had one in C
-- (module/core/text/answer.h), and the answer to whether that one is right.

local cjson = require("cjson.safe")

local _M = {}

-- Kong's words for what nginx refuses by itself, and for errors of plugins without a text.
local MESSAGES = {
    [400] = "Bad request",
    [401] = "Unauthorized",
    [402] = "Payment required",
    [403] = "Forbidden",
    [404] = "Not found",
    [405] = "Method not allowed",
    [406] = "Not acceptable",
    [407] = "Proxy authentication required",
    [408] = "Request timeout",
    [409] = "Conflict",
    [410] = "Gone",
    [411] = "Length required",
    [412] = "Precondition failed",
    [413] = "Payload too large",
    [414] = "URI too long",
    [415] = "Unsupported media type",
    [416] = "Range not satisfiable",
    [417] = "Expectation failed",
    [418] = "I'm a teapot",
    [421] = "Misdirected request",
    [422] = "Unprocessable entity",
    [423] = "Locked",
    [424] = "Failed dependency",
    [425] = "Too early",
    [426] = "Upgrade required",
    [428] = "Precondition required",
    [429] = "Too many requests",
    [431] = "Request header fields too large",
    [451] = "Unavailable for legal reasons",
    [494] = "Request header or cookie too large",
    [497] = "The plain HTTP request was sent to HTTPS port",
    [500] = "An unexpected error occurred",
    [501] = "Not implemented",
    [502] = "An invalid response was received from the upstream server",
    [503] = "The upstream server is currently unavailable",
    [504] = "The upstream server is timing out",
    [505] = "HTTP version not supported",
    [506] = "Variant also negotiates",
    [507] = "Insufficient storage",
    [508] = "Loop detected",
    [510] = "Not extended",
    [511] = "Network authentication required",
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

--- The format for an Accept header (RFC 9110, 12.5.1): the known media type
-- with the highest q, the earlier of equals. JSON where none is known.
-- @tparam string accept
-- @treturn table `{content_type, body = function(message, request_id)}`
function _M.format_for(accept)
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

--- What a client is told where nginx would send its own error page.
function _M.refusal(status)
    return MESSAGES[status] or ("The upstream server responded with %d"):format(status)
end

return _M
