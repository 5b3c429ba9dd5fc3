--- `kong.response`: what the client is answered.
--
-- Before the upstream has answered, headers that are set stand beside those that come. Nothing here
-- yields.
-- @module gateway.kit.response

local abi = require("sluice.ffi.abi")
local checks = require("gateway.kit.checks")
local cjson = require("cjson.safe")
local ffi = require("ffi")
local grpc = require("gateway.kit.response.grpc")
local log = require("gateway.kit.log")
local phases = require("gateway.kit.phases")
local variables = require("gateway.pdk.variables")

local C = ffi.C
local check = phases.check
local error = error
local ffi_string = ffi.string
local lower = string.lower
local ngx = ngx
local pairs = pairs
local type = type

-- Without nginx (the command line, unit tests) nothing is answered.
local get_request = ngx and ngx.get_phase and require("resty.core.base").get_request

abi.declare("core/image", "core/text", "gateway/response")

local OK = 0
local JSON = "application/json; charset=utf-8"
local MAX_HEADERS = 1000
local MIN_STATUS, MIN_ERROR, MAX_STATUS = 100, 400, 599
local HEADER_FILTER = phases.BITS.header_filter

local READ = phases.set("response", "header_filter", "body_filter", "log", "admin_api")
local WRITE = phases.set("rewrite", "access", "response", "balancer", "header_filter", "admin_api")
local BODY = phases.set("body_filter")

local GET_STATUS = phases.allow("response.get_status", READ)
local GET_HEADER = phases.allow("response.get_header", READ)
local GET_HEADERS = phases.allow("response.get_headers", READ)
local GET_SOURCE = phases.allow("response.get_source", READ)
local SET_STATUS = phases.allow("response.set_status", WRITE)
local SET_HEADER = phases.allow("response.set_header", WRITE)
local ADD_HEADER = phases.allow("response.add_header", WRITE)
local CLEAR_HEADER = phases.allow("response.clear_header", WRITE)
local SET_HEADERS = phases.allow("response.set_headers", WRITE)
local GET_RAW_BODY = phases.allow("response.get_raw_body", BODY)
local SET_RAW_BODY = phases.allow("response.set_raw_body", BODY)
local EXIT = phases.allow("response.exit", WRITE)
local ERROR = phases.allow("response.error", WRITE)

local SOURCES = { [0] = "error", [1] = "exit", [2] = "service" }

local _M = {}

-- Of the response in hand: no call here yields before they are read.
local type_text, body_text = ffi.new("sluice_core_text_t"), ffi.new("sluice_core_text_t")

local function check_unsent()
    if ngx.headers_sent then
        error("headers have already been sent", 3)
    end
end

-- Reading -----------------------------------------------------------------------------------------

--- The status that the client gets.
-- @treturn number
-- @phases response, header_filter, body_filter, log, admin_api
function _M.get_status()
    check(GET_STATUS)
    return ngx.status
end

-- Lines that nginx writes, and has no header for.
local WRITTEN = { connection = true, ["transfer-encoding"] = true }

--- A header that the client gets, the first of several.
-- @tparam string name in any case, with `_` for `-` or not
-- @treturn string|nil
-- @raise "header name must be a string"
-- @phases response, header_filter, body_filter, log, admin_api
function _M.get_header(name)
    check(GET_HEADER)
    if type(name) ~= "string" then
        error("header name must be a string", 2)
    end
    local value = ngx.header[name]
    if value == nil and WRITTEN[lower(name)] then
        value = ngx.resp.get_headers()[name]
    end
    return type(value) == "table" and value[1] or value
end

--- The headers that the client gets.
-- @tparam[opt=100] number max_headers 1 to 1000
-- @treturn table name in lower case -> string, or a list of several; it finds names as `get_header`
-- @treturn string|nil "truncated": there are more
-- @raise "max_headers must be ..."
-- @phases response, header_filter, body_filter, log, admin_api
function _M.get_headers(max_headers)
    check(GET_HEADERS)
    if max_headers == nil then
        return ngx.resp.get_headers()
    elseif type(max_headers) ~= "number" then
        error("max_headers must be a number", 2)
    elseif max_headers < 1 then
        error("max_headers must be >= 1", 2)
    elseif max_headers > MAX_HEADERS then
        error("max_headers must be <= " .. MAX_HEADERS, 2)
    end
    return ngx.resp.get_headers(max_headers)
end

--- Whose response it is.
-- @treturn string "service": the upstream's; "exit": of `exit` or `error`, or a refusal of the
--   gateway's; "error": nginx's, such as of an upstream that did not answer
-- @phases response, header_filter, body_filter, log, admin_api
function _M.get_source()
    check(GET_SOURCE)
    return SOURCES[C.sluice_answer_source(get_request())]
end

-- Writing -----------------------------------------------------------------------------------------

local function check_status(status, least, level)
    if type(status) ~= "number" then
        error("code must be a number", level + 1)
    elseif status < least or status > MAX_STATUS then
        local text = "code must be a number between %u and %u"
        error(text:format(least, MAX_STATUS), level + 1)
    end
end

--- Sets the status.
-- @tparam number status 100 to 599
-- @raise "code must be a number ...", "headers have already been sent"
-- @phases rewrite, access, response, header_filter, admin_api
function _M.set_status(status)
    check(SET_STATUS)
    check_unsent()
    check_status(status, MIN_STATUS, 2)
    ngx.status = status
end

local function is_framing(name)
    name = lower(name)
    if name ~= "transfer-encoding" and name ~= "transfer_encoding" then
        return false
    end
    log.warn("manually setting Transfer-Encoding. Ignored.")
    return true
end

--- Sets a header, in place of all lines of this name. Of `Transfer-Encoding` it does nothing.
-- @tparam string name
-- @tparam string|number|boolean|{string,...} value
-- @raise what is wrong with name or value; "headers have already been sent"
-- @phases rewrite, access, response, header_filter, admin_api
function _M.set_header(name, value)
    check(SET_HEADER)
    check_unsent()
    checks.header(name, value)
    if not is_framing(name) then
        ngx.header[name] = checks.text(value)
    end
end

--- Adds a line to those of this name.
-- @tparam string name
-- @tparam string|number|boolean|{string,...} value
-- @raise as `set_header`
-- @phases rewrite, access, response, header_filter, admin_api
function _M.add_header(name, value)
    check(ADD_HEADER)
    check_unsent()
    checks.header(name, value)
    if is_framing(name) then
        return
    end
    local text = checks.text(value)
    local lines = ngx.header[name]
    if lines == nil then
        ngx.header[name] = text
        return
    end
    lines = type(lines) == "table" and lines or { lines }
    for _, line in ipairs(type(text) == "table" and text or { text }) do
        lines[#lines + 1] = line
    end
    ngx.header[name] = lines
end

--- Removes all lines of this name.
-- @tparam string name
-- @raise "header name must be a string", "headers have already been sent"
-- @phases rewrite, access, response, header_filter, admin_api
function _M.clear_header(name)
    check(CLEAR_HEADER)
    check_unsent()
    if type(name) ~= "string" then
        error("header name must be a string", 2)
    end
    ngx.header[name] = nil
end

-- Which of the headers that send_* writes were among them.
local function set_all(headers)
    local has_type, has_length = false, false
    for name, value in pairs(headers or {}) do
        if not is_framing(name) then
            ngx.header[name] = checks.text(value)
        end
        local plain = lower(name):gsub("_", "-")
        has_type = has_type or plain == "content-type"
        has_length = has_length or plain == "content-length"
    end
    return has_type, has_length
end

--- Sets several headers, each as `set_header`.
-- @tparam table headers name -> value
-- @raise what is wrong with one; then none was set
-- @phases rewrite, access, response, header_filter, admin_api
function _M.set_headers(headers)
    check(SET_HEADERS)
    check_unsent()
    checks.headers(headers)
    set_all(headers)
end

-- The body ----------------------------------------------------------------------------------------

-- In ngx.ctx, of the body in hand: its pieces so far. Nobody else has this key.
local PIECES = {}

--- The whole body, at its end. Until then its pieces are held back.
-- @treturn string|nil nil: this is not the last piece
-- @phases body_filter
function _M.get_raw_body()
    check(GET_RAW_BODY)
    local ctx, arg = ngx.ctx, ngx.arg
    local piece, is_last = arg[1], arg[2]
    local pieces = ctx[PIECES]
    if is_last and not pieces then
        return piece
    end
    if type(piece) == "string" and piece ~= "" then
        if not pieces then
            pieces = require("string.buffer").new()
            ctx[PIECES] = pieces
        end
        pieces:put(piece)
    end
    if not is_last then
        arg[1] = nil
        return nil
    end
    local body = pieces:get()
    arg[1] = body
    ctx[PIECES] = nil
    return body
end

--- Sends this body, and nothing of what comes. Where the response has a Content-Length, that is to
-- be cleared in header_filter.
-- @tparam string body; of an empty one, which nginx would not send, a newline
-- @raise "body must be a string"
-- @phases body_filter
function _M.set_raw_body(body)
    check(SET_RAW_BODY)
    if type(body) ~= "string" then
        error("body must be a string", 2)
    end
    ngx.arg[1] = body == "" and "\n" or body
    ngx.arg[2] = true
    ngx.ctx[PIECES] = nil
end

-- Exits -------------------------------------------------------------------------------------------

-- In place of a response whose head is about to be sent: it goes on, with another body.
local function replace(body)
    local text = body or ""
    if C.sluice_buffered_replace(get_request(), text, #text) ~= OK then
        error("no memory", 0)
    end
end

local function begin(request, status, is_filter)
    local rc
    if is_filter then
        rc = C.sluice_answer_exit(request)
    else
        -- Of a response that was buffered the headers stay, as in Kong.
        C.sluice_buffered_drop(request, 0)
        rc = C.sluice_answer_own(request)
    end
    if rc ~= OK then
        error("no memory", 0)
    end
    C.sluice_answer_status(request, status)
end

local function send(status, body, headers)
    local is_filter = phases.bit() == HEADER_FILTER
    local json
    if type(body) == "table" and not grpc.is_asked() then
        local err
        json, err = cjson.encode(body)
        if err then
            error("body encoding failed while flushing response: " .. err, 3)
        end
    end
    begin(get_request(), status, is_filter)
    local has_type, has_length = set_all(headers)
    if json and not has_type then
        ngx.header["Content-Type"] = JSON
    elseif ngx.header["Content-Type"] == nil then
        -- Else nginx would write its own.
        ngx.header["Content-Type"] = nil
    end
    body = json or grpc.apply(status, body)
    -- A 304 speaks of what the client has, not of this body (RFC 9110, 8.6).
    if not has_length and status ~= 304 then
        ngx.header["Content-Length"] = body and #body or 0
    end
    if is_filter then
        return replace(body)
    elseif body and body ~= "" then
        ngx.print(body)
    else
        ngx.send_headers()
    end
    return ngx.exit(ngx.OK)
end

--- Ends the request with a response of the plugin's own. No plugin behind it runs, but in the late
-- phases. Does not return; in header_filter, where it replaces the response that is about to be
-- sent, it does.
-- @tparam number status 100 to 599
-- @tparam[opt] string|table body a table is sent as JSON
-- @tparam[opt] table headers name -> value
-- @raise what is wrong with an argument, "headers have already been sent"
-- @phases rewrite, access, response, header_filter, admin_api
function _M.exit(status, body, headers)
    check(EXIT)
    check_unsent()
    check_status(status, MIN_STATUS, 2)
    if body ~= nil and type(body) ~= "string" and type(body) ~= "table" then
        error("body must be a nil, string or table", 2)
    elseif headers ~= nil and type(headers) ~= "table" then
        error("headers must be a nil or table", 2)
    elseif headers ~= nil then
        checks.headers(headers)
    end
    return send(status, body, headers)
end

local function copy_of(headers)
    local copy = {}
    for name, value in pairs(headers or {}) do
        copy[name] = value
    end
    return copy
end

-- An error's body of a type that the plugin has chosen, or the client accepts.
local function error_body(status, message, content_type)
    local accept = content_type and ffi.new("sluice_core_text_t", { content_type, #content_type })
    local request = get_request()
    local length = message and #message or 0
    local rc
    if accept then
        rc = C.sluice_answer_error_as(request, status, message, length, accept, body_text)
    else
        rc = C.sluice_answer_error(request, status, message, length, type_text, body_text)
    end
    if rc ~= OK then
        error("no memory", 0)
    end
    return ffi_string(body_text.data, body_text.length),
        content_type or ffi_string(type_text.data, type_text.length)
end

--- Ends the request with an error in the format that the client accepts: JSON, HTML, XML or plain
-- text; in JSON where it says nothing; or in that of a Content-Type among the headers. As `exit`
-- otherwise.
-- @tparam number status 400 to 599
-- @tparam[opt] string|table message a table is written as JSON; default: Kong's words for it
-- @tparam[opt] table headers name -> value
-- @raise what is wrong with an argument, "headers have already been sent"
-- @phases rewrite, access, response, header_filter, admin_api
function _M.error(status, message, headers)
    check(ERROR)
    check_unsent()
    check_status(status, MIN_ERROR, 2)
    if type(message) == "table" then
        local err
        message, err = cjson.encode(message)
        if err then
            error("could not JSON encode the error message: " .. err, 2)
        end
    end
    if message ~= nil and type(message) ~= "string" then
        error("message must be a nil, a string or a table", 2)
    elseif headers ~= nil and type(headers) ~= "table" then
        error("headers must be a nil or table", 2)
    elseif headers ~= nil then
        checks.headers(headers)
    end
    headers = copy_of(headers)
    local chosen = headers["Content-Type"]
    chosen = type(chosen) == "table" and chosen[1] or chosen
    if chosen == nil and grpc.is_asked() then
        headers["Content-Type"] = grpc.CONTENT_TYPE
        return send(status, nil, headers)
    end
    -- As in Kong, and unlike the gateway's own errors.
    if chosen == nil and not variables.http_accept:get() then
        chosen = JSON
    end
    local body, content_type = error_body(status, message, chosen)
    headers["Content-Type"] = content_type
    return send(status, body, headers)
end

return _M
