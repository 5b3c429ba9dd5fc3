--- `kong.service.response`: what the upstream has answered.
--
-- The body is there where the response is buffered: in plugins with a phase `response`, and where
-- one has called `kong.service.request.enable_buffering`. Nothing here yields.
-- @module gateway.kit.service.response

local abi = require("sluice.ffi.abi")
local cjson = require("cjson.safe")
local ffi = require("ffi")
local phases = require("gateway.kit.phases")

local C = ffi.C
local check = phases.check
local error = error
local find = string.find
local lower = string.lower
local ngx = ngx
local sub = string.sub
local type = type

-- Without nginx (the command line, unit tests) there are no requests.
local get_request = ngx and ngx.get_phase and require("resty.core.base").get_request

abi.declare("core/image", "gateway/response")

local OK, DECLINED = 0, -5
local MAX_HEADERS, DEFAULT_HEADERS = 1000, 100
local MAX_ARGS, DEFAULT_ARGS = 1000, 100

local FORM = "application/x-www-form-urlencoded"
local JSON = "application/json"
local FORM_DATA = "multipart/form-data"

local UNBUFFERED = "service body is only available with buffered proxying "
    .. "(see: kong.service.request.enable_buffering function)"

local READ = phases.set("response", "header_filter", "body_filter", "log")

local GET_STATUS = phases.allow("service.response.get_status", READ)
local GET_HEADER = phases.allow("service.response.get_header", READ)
local GET_HEADERS = phases.allow("service.response.get_headers", READ)
local GET_RAW_BODY = phases.allow("service.response.get_raw_body", READ)
local GET_BODY = phases.allow("service.response.get_body", READ)

local _M = {}

-- Of the call in hand.
local text = ffi.new("sluice_core_text_t")
local name_text, value_text = ffi.new("sluice_core_text_t"), ffi.new("sluice_core_text_t")

--- The status of the last try.
-- @treturn number|nil nil: no upstream has answered
-- @phases response, header_filter, body_filter, log
function _M.get_status()
    check(GET_STATUS)
    local status = C.sluice_response_status(get_request())
    return status > 0 and status or nil
end

local function plain(name)
    return (lower(name):gsub("_", "-"))
end

-- As ngx.resp.get_headers: names in lower case, and found in any spelling.
local mt = {
    __index = function(headers, name)
        return type(name) == "string" and rawget(headers, plain(name)) or nil
    end,
}

local function read(most)
    local headers, request, i, count = setmetatable({}, mt), get_request(), 0, 0
    while true do
        i = C.sluice_response_line(request, i, name_text, value_text)
        if i < 0 then
            return headers
        elseif count == most then
            return headers, "truncated"
        end
        count = count + 1
        local name = lower(ffi.string(name_text.data, name_text.length))
        local value = ffi.string(value_text.data, value_text.length)
        local found = rawget(headers, name)
        if found == nil then
            headers[name] = value
        elseif type(found) == "table" then
            found[#found + 1] = value
        else
            headers[name] = { found, value }
        end
    end
end

--- The upstream's headers, without those that end at the gateway.
-- @tparam[opt=100] number max_headers 1 to 1000
-- @treturn table name in lower case -> string, or a list of several; names are found in any case,
--   and with `_` for `-`
-- @treturn string|nil "truncated": there are more
-- @raise "max_headers must be ..."
-- @phases response, header_filter, body_filter, log
function _M.get_headers(max_headers)
    check(GET_HEADERS)
    if max_headers == nil then
        max_headers = DEFAULT_HEADERS
    elseif type(max_headers) ~= "number" then
        error("max_headers must be a number", 2)
    elseif max_headers < 1 then
        error("max_headers must be >= 1", 2)
    elseif max_headers > MAX_HEADERS then
        error("max_headers must be <= " .. MAX_HEADERS, 2)
    end
    return read(max_headers)
end

local function first_header(name)
    name = plain(name)
    if C.sluice_response_line_of(get_request(), name, #name, text) ~= OK then
        return nil
    end
    return ffi.string(text.data, text.length)
end

--- A header of the upstream's, the first of several.
-- @tparam string name in any case, with `_` for `-` or not
-- @treturn string|nil
-- @raise "name must be a string"
-- @phases response, header_filter, body_filter, log
function _M.get_header(name)
    check(GET_HEADER)
    if type(name) ~= "string" then
        error("name must be a string", 2)
    end
    return first_header(name)
end

-- nil: the response is not buffered.
local function raw_body()
    local rc = C.sluice_buffered_body(get_request(), text)
    if rc == DECLINED then
        return nil
    elseif rc ~= OK then
        error("no memory", 0)
    end
    return ffi.string(text.data, text.length)
end

--- The upstream's body. Each call copies it.
-- @treturn string empty where there is none, or the response was one of the gateway's
-- @raise the response is not buffered
-- @phases response, header_filter, body_filter, log
function _M.get_raw_body()
    check(GET_RAW_BODY)
    local body = raw_body()
    if not body then
        error(UNBUFFERED, 2)
    end
    return body
end

local function check_args(max_args)
    if max_args == nil then
        return DEFAULT_ARGS
    elseif type(max_args) ~= "number" then
        error("max_args must be a number", 3)
    elseif max_args < 1 then
        error("max_args must be >= 1", 3)
    elseif max_args > MAX_ARGS then
        error("max_args must be <= " .. MAX_ARGS, 3)
    end
    return max_args
end

local function decode_multipart(body, content_type)
    local parts = require("multipart")(body, content_type)
    if not parts then
        return nil, "unable to decode multipart body"
    end
    local found = parts:get_all_with_arrays()
    if not found then
        return nil, "unable to read multipart values"
    end
    return found
end

--- The upstream's body, decoded by its type.
-- @tparam[opt] string mimetype default: the upstream's Content-Type
-- @tparam[opt=100] number max_args of a form, 1 to 1000
-- @treturn table|nil
-- @treturn string|nil "missing content type", "unsupported content type '...'", "invalid json
--   body", or what is wrong with another
-- @treturn string|nil the type without its parameters
-- @raise the response is not buffered, "max_args must be ..."
-- @phases response, header_filter, body_filter, log
function _M.get_body(mimetype, max_args)
    check(GET_BODY)
    local body = raw_body()
    if not body then
        error(UNBUFFERED, 2)
    end
    local content_type = mimetype or first_header("content-type")
    if not content_type then
        return nil, "missing content type"
    end
    local short = lower(sub(content_type, 1, (find(content_type, ";", 1, true) or 0) - 1))
    local found, err
    if find(short, FORM, 1, true) == 1 then
        found, err = ngx.decode_args(body, check_args(max_args))
        return found, not found and err or nil, FORM
    elseif find(short, JSON, 1, true) == 1 then
        found = cjson.decode(body)
        if type(found) ~= "table" then
            return nil, "invalid json body", JSON
        end
        return found, nil, JSON
    elseif find(short, FORM_DATA, 1, true) == 1 then
        found, err = decode_multipart(body, content_type)
        return found, err, FORM_DATA
    end
    return nil, "unsupported content type '" .. content_type .. "'", short
end

return _M
