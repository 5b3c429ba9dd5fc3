--- `kong.service.request`: what the upstream is asked.
--
-- What is changed goes out once, behind the last plugin (module/gateway/upstream): method, query,
-- headers and body are nginx's own, path, scheme and Host stand in the request's context in C. The
-- lines that frame a body are the gateway's: to set or clear `Content-Length` or
-- `Transfer-Encoding` does nothing. Control characters are encoded, wherever they are written.
-- @module gateway.kit.service.request

local abi = require("sluice.ffi.abi")
local bodies = require("gateway.kit.service.body")
local checks = require("gateway.kit.checks")
local ffi = require("ffi")
local header = require("sluice.header")
local phases = require("gateway.kit.phases")
local query = require("gateway.kit.service.query")
local variables = require("gateway.pdk.variables")

local C = ffi.C
local byte = string.byte
local check = phases.check
local error = error
local lower = string.lower
local ngx = ngx
local type = type

-- Without nginx (the command line, unit tests) there are no requests.
local get_request = ngx and ngx.get_phase and require("resty.core.base").get_request

abi.declare("core/image", "gateway/request", "gateway/response")

local OK = 0
local SLASH = byte("/")
local CONTENT_TYPE = "Content-Type"

-- Kong has a phase `balancer`, too, which no plugin has.
local ANY = phases.set("rewrite", "access", "balancer")
local EARLY = phases.set("rewrite", "access")

-- Names of headers that are remembered: handles are never let go.
local MOST_NAMES = 512

-- Those that are not simply lines of the request.
local SPECIAL = {
    [":authority"] = true,
    host = true,
    ["content-length"] = true,
    ["transfer-encoding"] = true,
}
-- The lines that frame a body, as nginx takes them, too.
local FRAMING = {
    ["content-length"] = true,
    ["content_length"] = true,
    ["transfer-encoding"] = true,
    ["transfer_encoding"] = true,
}

local _M = {}

local function changed(rc)
    if rc ~= OK then
        error("no memory", 0)
    end
end

-- Phases -----------------------------------------------------------------------------------------

local ENABLE_BUFFERING = phases.allow("service.request.enable_buffering", ANY)
local SET_SCHEME = phases.allow("service.request.set_scheme", ANY)
local SET_PATH = phases.allow("service.request.set_path", ANY)
local SET_RAW_QUERY = phases.allow("service.request.set_raw_query", EARLY)
local SET_METHOD = phases.allow("service.request.set_method", EARLY)
local SET_QUERY = phases.allow("service.request.set_query", EARLY)
local CLEAR_QUERY_ARG = phases.allow("service.request.clear_query_arg", EARLY)
local SET_HEADER = phases.allow("service.request.set_header", ANY)
local ADD_HEADER = phases.allow("service.request.add_header", EARLY)
local CLEAR_HEADER = phases.allow("service.request.clear_header", EARLY)
local SET_HEADERS = phases.allow("service.request.set_headers", EARLY)
local SET_RAW_BODY = phases.allow("service.request.set_raw_body", ANY)
local SET_BODY = phases.allow("service.request.set_body", EARLY)

--- Has the response held back until it is whole, so that `kong.service.response.get_raw_body` has
-- its body. One that is longer than the setting `proxy_buffered_body_size` becomes a 502, and so
-- does one that breaks off. An upgrade passes as it is. Does not yield.
-- @phases rewrite, access
function _M.enable_buffering()
    check(ENABLE_BUFFERING)
    changed(C.sluice_buffered_ask(get_request()))
end

-- The request line --------------------------------------------------------------------------------

--- Whether the upstream is spoken to by TLS. Does not yield.
-- @tparam string scheme "http" or "https"
-- @raise "scheme must be a string", "invalid scheme: ..."
-- @phases rewrite, access
function _M.set_scheme(scheme)
    check(SET_SCHEME)
    if type(scheme) ~= "string" then
        error("scheme must be a string", 2)
    elseif scheme ~= "http" and scheme ~= "https" then
        error("invalid scheme: " .. scheme, 2)
    end
    changed(C.sluice_changed_scheme(get_request(), scheme, #scheme))
end

--- The path, whatever the route and the service say. The query is added to it. Does not yield.
-- @tparam string path decoded or not: what may not stand in a request line is encoded
-- @raise "path must be a string", "path must start with /"
-- @phases rewrite, access
function _M.set_path(path)
    check(SET_PATH)
    if type(path) ~= "string" then
        error("path must be a string", 2)
    elseif byte(path) ~= SLASH then
        error("path must start with /", 2)
    end
    changed(C.sluice_changed_path(get_request(), path, #path))
end

--- The query. Does not yield.
-- @tparam string raw without the question mark
-- @raise "query must be a string"
-- @phases rewrite, access
function _M.set_raw_query(raw)
    check(SET_RAW_QUERY)
    if type(raw) ~= "string" then
        error("query must be a string", 2)
    end
    ngx.req.set_uri_args(raw)
end

--- The query, in the order of names. Does not yield.
-- @tparam table args as ngx.encode_args takes them
-- @raise "args must be a table", "arg keys must be strings", or what a value must be
-- @phases rewrite, access
function _M.set_query(args)
    check(SET_QUERY)
    if type(args) ~= "table" then
        error("args must be a table", 2)
    end
    local raw, err = query.encode(args)
    if not raw then
        error(err, 2)
    end
    ngx.req.set_uri_args(raw)
end

--- Takes an argument out of the query. Does not yield.
-- @tparam string name decoded
-- @raise "query argument name must be a string"
-- @phases rewrite, access
function _M.clear_query_arg(name)
    check(CLEAR_QUERY_ARG)
    if type(name) ~= "string" then
        error("query argument name must be a string", 2)
    end
    local args = variables.args:get()
    if args and args ~= "" then
        variables.args:set(query.without(args, name))
    end
end

local METHODS = {}
for _, name in ipairs({
    "GET",
    "HEAD",
    "PUT",
    "POST",
    "DELETE",
    "OPTIONS",
    "MKCOL",
    "COPY",
    "MOVE",
    "PROPFIND",
    "PROPPATCH",
    "LOCK",
    "UNLOCK",
    "PATCH",
    "TRACE",
}) do
    METHODS[name] = ngx and ngx["HTTP_" .. name] or 0
end

--- The method. The client's response has a body or none by what the client has asked. Does not
-- yield.
-- @tparam string method one that nginx knows, in upper case
-- @raise "method must be a string", "invalid method: ..."
-- @phases rewrite, access
function _M.set_method(method)
    check(SET_METHOD)
    if type(method) ~= "string" then
        error("method must be a string", 2)
    end
    local number = METHODS[method]
    if not number then
        error("invalid method: " .. method, 2)
    end
    ngx.req.set_method(number)
end

-- Headers -----------------------------------------------------------------------------------------

-- Name -> handle of sluice.header; false: a special one, or there is no room for it.
local names, count = {}, 0

local function learn(name)
    if count >= MOST_NAMES or type(name) ~= "string" then
        return false
    end
    local is_plain = name:find("^[%w!#$%%&'*+.^_`|~-]+$") and not SPECIAL[lower(name)]
    names[name] = is_plain and not FRAMING[lower(name)] and header.new(name) or false
    count = count + 1
    return names[name]
end

local function first_of(value)
    return type(value) == "table" and value[1] or value
end

local function write(name, value)
    local short = lower(name)
    if FRAMING[short] then
        return
    elseif short == "host" then
        local host = first_of(value) or ""
        changed(C.sluice_changed_host(get_request(), host, #host))
    end
    ngx.req.set_header(name, value)
end

--- Sets a header, in place of all lines of this name. `Host` is also what TLS asks for. Lines that
-- are the gateway's own (`X-Forwarded-*`, `X-Real-IP`, `Via`, hop-by-hop ones) stay as they are,
-- as in Kong. Does not yield.
-- @tparam string name
-- @tparam string|number|boolean|{string,...} value
-- @treturn nil|string of ":authority": Sluice speaks no gRPC to upstreams
-- @raise what is wrong with name or value
-- @phases rewrite, access
function _M.set_header(name, value)
    check(SET_HEADER)
    local handle = names[name]
    if handle == nil then
        handle = learn(name)
    end
    if handle and type(value) == "string" and value ~= "" then
        return handle:set_request(value)
    end
    checks.header(name, value)
    if lower(name) == ":authority" then
        return nil, "cannot set :authority pseudo-header on non-grpc requests"
    end
    write(name, checks.text(value))
end

--- Adds a line to those of this name. Does not yield.
-- @tparam string name
-- @tparam string|number|boolean|{string,...} value
-- @raise what is wrong with name or value
-- @phases rewrite, access
function _M.add_header(name, value)
    check(ADD_HEADER)
    checks.header(name, value)
    local text = checks.text(value)
    if lower(name) == "host" then
        return write(name, text)
    end
    local lines = ngx.req.get_headers(0)[name]
    lines = type(lines) == "table" and lines or { lines }
    for _, line in ipairs(type(text) == "table" and text or { text }) do
        lines[#lines + 1] = line
    end
    write(name, lines)
end

--- Removes all lines of this name. Does not yield.
-- @tparam string name
-- @raise "header must be a string"
-- @phases rewrite, access
function _M.clear_header(name)
    check(CLEAR_HEADER)
    if type(name) ~= "string" then
        error("header must be a string", 2)
    end
    if not FRAMING[lower(name)] then
        ngx.req.clear_header(name)
    end
end

--- Sets several headers, each as `set_header`. Does not yield.
-- @tparam table headers name -> value
-- @raise what is wrong with one; then none was set
-- @phases rewrite, access
function _M.set_headers(headers)
    check(SET_HEADERS)
    checks.headers(headers)
    for name, value in pairs(headers) do
        write(name, checks.text(value))
    end
end

-- The body ----------------------------------------------------------------------------------------

--- Sends another body. Yields until that of the client was read.
-- @tparam string body
-- @raise "body must be a string"
-- @phases rewrite, access
function _M.set_raw_body(body)
    check(SET_RAW_BODY)
    if type(body) ~= "string" then
        error("body must be a string", 2)
    end
    ngx.req.read_body()
    ngx.req.set_body_data(body)
end

--- Sends a table as body, and sets its Content-Type. Yields until that of the client was read.
-- @tparam table args
-- @tparam[opt] string mime application/x-www-form-urlencoded, application/json or
--   multipart/form-data, with parameters or not; default: that of the request
-- @treturn boolean|nil
-- @treturn string|nil the request has no type
-- @raise "args must be a table", "mime must be a string", "unsupported content type ...", and what
--   is wrong with an argument
-- @phases rewrite, access
function _M.set_body(args, mime)
    check(SET_BODY)
    if type(args) ~= "table" then
        error("args must be a table", 2)
    elseif mime ~= nil and type(mime) ~= "string" then
        error("mime must be a string", 2)
    end
    mime = mime or first_of(ngx.req.get_headers(0)[CONTENT_TYPE])
    if not mime then
        return nil,
            "content type was neither explicitly given as an argument or received as a header"
    end
    local body, content_type = bodies.encode(args, mime)
    if not body then
        error(content_type, 2)
    end
    ngx.req.read_body()
    ngx.req.set_body_data(body)
    ngx.req.set_header(CONTENT_TYPE, content_type)
    return true
end

return _M
