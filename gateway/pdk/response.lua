--- Responses that the gateway itself gives: errors, and those of plugins.
-- @module gateway.pdk.response

local abi = require("sluice.ffi.abi")
local cjson = require("cjson.safe")
local ffi = require("ffi")

-- Without nginx (the command line, unit tests) nothing is answered.
local get_request = ngx and ngx.get_phase and require("resty.core.base").get_request

abi.declare("core/image", "core/text", "gateway/response")

local C = ffi.C

local _M = {}

local OK = 0
local JSON = "application/json; charset=utf-8"

-- Of the response in hand: no call here yields before they are read.
local type_text, body_text = ffi.new("sluice_core_text_t"), ffi.new("sluice_core_text_t")
local words_buffer = ffi.new("char[64]")

local function read(text)
    return ffi.string(text.data, text.length)
end

--- Writes a whole response and ends the request, whoever gives it. Does not return.
-- @tparam number status
-- @tparam string|nil body
-- @tparam string|nil content_type
-- @tparam table|nil headers name -> value
-- @phases rewrite, access, content
function _M.write(status, body, content_type, headers)
    local header = ngx.header
    C.sluice_answer_status(get_request(), status)
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
    if C.sluice_answer_own(get_request()) ~= OK then
        error("no memory", 0)
    end
    return _M.write(status, body, content_type, headers)
end

--- What a client is told where nginx would send its own error page.
-- @tparam number status
-- @treturn string Kong's words for it
function _M.refusal(status)
    C.sluice_answer_words(status, words_buffer, body_text)
    return read(body_text)
end

--- Answers an error in the format that the client accepts
-- (module/gateway/response/ngx_http_sluice_answer.h). Does not return.
-- @tparam number status
-- @tparam string|nil message default: Kong's words for the status
-- @tparam table|nil headers name -> value
-- @phases rewrite, access, content
function _M.error(status, message, headers)
    local length = message and #message or 0
    local request = get_request()
    if C.sluice_answer_error(request, status, message, length, type_text, body_text) ~= OK then
        error("no memory", 0)
    end
    return _M.send(status, read(body_text), read(type_text), headers)
end

--- Answers with a table as JSON, or a string as it is. Does not return.
-- @tparam number status
-- @tparam string|table|nil body
-- @tparam table|nil headers name -> value
-- @phases rewrite, access, content
function _M.exit(status, body, headers)
    local content_type
    if type(body) == "table" then
        body, content_type = cjson.encode(body), JSON
    end
    return _M.send(status, body, content_type, headers)
end

return _M
