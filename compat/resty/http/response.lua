--- Responses as resty.http gives them: the head, and a reader of the body.
-- @module resty.http.response

local body = require("resty.http.body")
local http_headers = require("resty.http_headers")

local find = string.find
local setmetatable = setmetatable
local tonumber = tonumber
local type = type

local _M = {}

-- A field by its own spelling, several lines of one as a table.
local function adder(headers)
    return function(name, value)
        local known = headers[name]
        if type(known) == "table" then
            known[#known + 1] = value
        else
            headers[name] = known and { known, value } or value
        end
    end
end

local function has_body(method, status)
    -- It is sent in capitals.
    method = method:upper()
    return method ~= "HEAD"
        and status >= 200
        and status ~= 204
        and status ~= 304
        and not (method == "CONNECT" and status < 300)
end

-- A body that ends with the connection, or that could be two, ends it.
local function reader_of(self, source, found)
    local encoding, length = found.headers["transfer-encoding"], found.headers["content-length"]
    if encoding then
        -- HTTP/1.0 has none: whose body ends where is a guess (RFC 9112 6.1).
        self.keepalive = self.keepalive and not length and found.version ~= "1.0"
    end
    if encoding and found.version ~= "1.0" then
        if not find("," .. encoding:lower(), ",%s*chunked%s*$") then
            return nil, "unknown Transfer-Encoding"
        end
        return body.of_chunks(source)
    elseif not length then
        self.keepalive = false
        return body.of_connection(source)
    elseif not find(length, "^%d+$") then
        return nil, "invalid Content-Length"
    end
    return body.of_length(source, tonumber(length))
end

local function read_body(res)
    local source = res.source
    if not source then
        return nil, "no body to be read"
    end
    -- One step for all of it.
    source.is_whole = true
    source.start()
    return body.whole(res.body_reader, source.max_bytes)
end

local function read_trailers(res)
    if not res.trailer_reader then
        return nil, "no trailers"
    end
    setmetatable(res.headers, { __index = res.trailer_reader() })
end

local function no_body() end

-- The words of lua-resty-http for a line that is no status.
local function explain(err, line)
    if err ~= "not an HTTP response" then
        return err
    end
    local has_version = tonumber(line:sub(6, 8)) ~= nil
    return ("couldn't parse %s from response status line: %s"):format(
        has_version and "status code" or "HTTP version",
        line:sub(1, 200)
    )
end

-- The body of a request that waits for 100, once. Until then the connection cannot be used again:
-- the server may take the next request for the body.
local function on_interim(self, params, send_body)
    local waits = params.headers["Expect"] == "100-continue"
    local keepalive = self.keepalive
    self.keepalive = keepalive and not waits
    return function(status)
        if waits and status == 100 then
            waits = false
            self.keepalive = keepalive
            return send_body()
        end
        return true
    end
end

-- What a reader of the body needs.
local function source_of(self, response)
    local source = { response = response, trailers = http_headers.new() }
    source.max_bytes = self.max_body_bytes
    source.on_trailer = adder(source.trailers)
    function source.start()
        self.stream:start()
    end
    function source.ended(err)
        if self.unread == source then
            self.stream:finish(response)
            self.unread = err and source or nil
        end
    end
    self.unread = source
    return source
end

--- Reads the head of the response to a request that was sent. Yields.
-- @tparam table self the client
-- @tparam table params of `send_request`
-- @tparam function send_body sends what waits for 100
-- @treturn table|nil status, reason, headers, has_body, body_reader, read_body, read_trailers
-- @treturn string|nil
-- @phases as cosockets
function _M.read(self, params, send_body)
    local headers = http_headers.new()
    self.stream:start()
    local response = self.stream:response()
    local found, err, line = response:read_head(adder(headers), on_interim(self, params, send_body))
    if not found then
        self.keepalive = false
        return nil, explain(err, line)
    end
    local connection = (found.headers.connection or ""):lower()
    local is_old = found.version == "1.0"
    if
        find(connection, "close", 1, true)
        or (is_old and not find(connection, "keep-alive", 1, true))
    then
        self.keepalive = false
    end
    local res = {
        status = found.status,
        reason = found.reason,
        headers = headers,
        has_body = has_body(params.method, found.status),
        body_reader = no_body,
        read_body = read_body,
        read_trailers = read_trailers,
    }
    if not res.has_body then
        self.stream:finish(response)
        -- 101 has made another protocol of it.
        self.keepalive = self.keepalive and found.status >= 200
        return res
    end
    local source = source_of(self, response)
    res.source = source
    res.body_reader, err = reader_of(self, source, found)
    if not res.body_reader then
        self.keepalive = false
        return nil, err
    end
    if headers["Trailer"] then
        function res.trailer_reader()
            return source.trailers
        end
    end
    return res
end

return _M
