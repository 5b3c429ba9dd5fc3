--- What a client that speaks gRPC is told by `kong.response.exit`: its status stands in headers.
--
-- Nothing here yields.
-- @module gateway.kit.response.grpc

local log = require("gateway.kit.log")
local variables = require("gateway.pdk.variables")

local ngx = ngx

local GRPC = "application/grpc"
local STATUS, MESSAGE = "grpc-status", "grpc-message"

-- Of gRPC's codes: those of HTTP statuses, and their names.
local CODES = {
    [200] = 0,
    [400] = 3,
    [401] = 16,
    [403] = 7,
    [404] = 5,
    [409] = 6,
    [429] = 8,
    [499] = 1,
    [500] = 13,
    [501] = 12,
    [503] = 14,
    [504] = 4,
}
local UNKNOWN = 2
local NAMES = {
    [0] = "OK",
    [1] = "Canceled",
    [2] = "Unknown",
    [3] = "InvalidArgument",
    [4] = "DeadlineExceeded",
    [5] = "NotFound",
    [6] = "AlreadyExists",
    [7] = "PermissionDenied",
    [8] = "ResourceExhausted",
    [9] = "FailedPrecondition",
    [10] = "Aborted",
    [11] = "OutOfRange",
    [12] = "Unimplemented",
    [13] = "Internal",
    [14] = "Unavailable",
    [15] = "DataLoss",
    [16] = "Unauthenticated",
}

local _M = { CONTENT_TYPE = GRPC }

local function begins(text)
    return text ~= nil and text:find(GRPC, 1, true) == 1
end

local function code_of(status)
    local class = (status >= 500 and 500) or (status >= 400 and 400) or nil
    if status >= 200 and status < 300 then
        class = 200
    end
    return CODES[status] or CODES[class] or UNKNOWN
end

--- Whether the client speaks gRPC.
-- @treturn boolean
-- @phases rewrite, access, response, header_filter
function _M.is_asked()
    return begins(variables.get("content_type")) and ngx.req.http_version() == 2
end

--- Sets the headers of gRPC, where the response is one: its type says so or, without a type, the
-- request's.
-- @tparam number status of HTTP
-- @tparam string|table|nil body
-- @treturn string|table|nil the body to send
-- @raise "table body encoding with gRPC is not supported"
-- @phases rewrite, access, response, header_filter
function _M.apply(status, body)
    local content_type = ngx.header["Content-Type"]
    local is_output = begins(content_type)
    if not is_output and (content_type ~= nil or not _M.is_asked()) then
        return body
    end
    local code = ngx.header[STATUS] == nil and code_of(status)
    if code then
        ngx.header[STATUS] = code
    end
    if type(body) == "table" then
        if is_output then
            error("table body encoding with gRPC is not supported", 4)
        elseif type(body.message) ~= "string" then
            log.warn("body was removed because table body encoding with gRPC is not supported")
            body = nil
        else
            body = body.message
        end
    end
    if body ~= nil and not is_output then
        ngx.header[MESSAGE] = body
        body = ""
    elseif code and ngx.header[MESSAGE] == nil then
        ngx.header[MESSAGE] = NAMES[code]
    end
    return body
end

return _M
