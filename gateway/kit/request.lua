--- `kong.request`: what the client has asked.
-- @module gateway.kit.request

local abi = require("sluice.ffi.abi")
local bit = require("bit")
local body = require("gateway.kit.request.body")
local captures = require("gateway.kit.request.captures")
local configuration = require("gateway.kit.configuration").view
local ffi = require("ffi")
local handshake = require("gateway.kit.client.handshake")
local matched = require("gateway.pdk.matched")
local phases = require("gateway.kit.phases")
local trusted = require("gateway.kit.trusted")
local variables = require("gateway.pdk.variables")

abi.declare("core/image", "core/path", "core/text", "lib/header")

local C = ffi.C
local check = phases.check
local error = error
local ffi_string = ffi.string
local find = string.find
local floor = math.floor
local lower = string.lower
local max = math.max
local ngx = ngx
local sub = string.sub
local tonumber = tonumber
local type = type

-- Without nginx (the command line, unit tests) there are no requests.
local get_request = ngx and ngx.get_phase and require("resty.core.base").get_request

local MAX_PORT = 65535
-- Of headers and arguments: what a caller may ask for, and what arguments are without.
local MOST, DEFAULT_ARGS = 1000, 100

local _M = {}

-- Of the call in hand: nothing yields before it is read.
local first = ffi.new("sluice_header_value_t")

-- What C writes into; grows with the longest text.
local buffer, buffer_size = nil, 0

local function room(size)
    if size > buffer_size then
        buffer_size = max(size, 256)
        buffer = ffi.new("char[?]", buffer_size)
    end
    return buffer
end

local function header(name)
    if C.sluice_header_first(get_request(), name, #name, first) == 0 then
        return nil
    end
    return ffi_string(first.data, first.length)
end

-- A header that a proxy in front has set, if it is believed.
local function forwarded(name)
    return trusted.has_client() and header(name) or nil
end

-- What stands before the host, and behind it.
local function split_host(text)
    local at = find(text, "@", 1, true)
    if at then
        text = sub(text, at + 1)
    end
    at = find(text, ":", 1, true)
    if at then
        return sub(text, 1, at - 1), sub(text, at + 1)
    end
    return text, nil
end

local function port_of(text)
    local port = text and tonumber(text, 10)
    return port and port >= 1 and port <= MAX_PORT and port or nil
end

-- The first line of a request that nginx has refused before it had read the rest of it: what it
-- knows then is its own page's.
local function refused_line()
    return ngx.req.http_version() ~= 2 and matched.path() == nil and variables.request:get() or nil
end

-- Scheme, host, port ------------------------------------------------------------------------------

local GET_SCHEME = phases.allow("request.get_scheme", phases.REQUEST)

--- The scheme of the connection: "http" or "https".
-- @treturn string
-- @phases rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_scheme()
    check(GET_SCHEME)
    return variables.scheme:get()
end

local GET_HOST = phases.allow("request.get_host", phases.REQUEST)

--- The host that the request names, in lower case and without its port; "sluice" where it names
-- none.
-- @treturn string
-- @phases rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_host()
    check(GET_HOST)
    return variables.host:get()
end

local GET_PORT =
    phases.allow("request.get_port", bit.bor(phases.REQUEST, phases.set("certificate")))

--- The port of the listener that the request came to.
-- @treturn number
-- @phases certificate, rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_port()
    if not check(GET_PORT) and handshake.runs() then
        return handshake.own_port()
    end
    return tonumber(variables.server_port:get())
end

local GET_FORWARDED_SCHEME = phases.allow("request.get_forwarded_scheme", phases.REQUEST)

--- The scheme that the client has used: X-Forwarded-Proto of a trusted proxy, in lower case, else
-- as `get_scheme`.
-- @treturn string
-- @phases rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_forwarded_scheme()
    check(GET_FORWARDED_SCHEME)
    local scheme = forwarded("X-Forwarded-Proto")
    return scheme and lower(scheme) or variables.scheme:get()
end

local GET_FORWARDED_HOST = phases.allow("request.get_forwarded_host", phases.REQUEST)

--- The host that the client has named: X-Forwarded-Host of a trusted proxy, in lower case and
-- without user and port, else as `get_host`.
-- @treturn string
-- @phases rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_forwarded_host()
    check(GET_FORWARDED_HOST)
    local host = forwarded("X-Forwarded-Host")
    return host and lower((split_host(host))) or variables.host:get()
end

-- Listener's port -> what clients connect to (setting `port_maps`). Made when it is first needed.
local mapped_ports

local function mapped_port(port)
    if not mapped_ports then
        mapped_ports = {}
        for _, map in ipairs(configuration.port_maps or {}) do
            local outer, inner = map:match("^(%d+):(%d+)$")
            if inner then
                mapped_ports[tonumber(inner)] = tonumber(outer)
            end
        end
    end
    return mapped_ports[port] or port
end

local GET_FORWARDED_PORT = phases.allow("request.get_forwarded_port", phases.REQUEST)

--- The port that the client has connected to: of a trusted proxy X-Forwarded-Port, or that of its
-- X-Forwarded-Host; else that of the listener, or what `port_maps` has for it.
-- @treturn number
-- @phases rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_forwarded_port()
    check(GET_FORWARDED_PORT)
    local port
    if trusted.has_client() then
        local host = header("X-Forwarded-Host")
        port = port_of(header("X-Forwarded-Port"))
            or host and port_of((select(2, split_host(host))))
    end
    return port or mapped_port(tonumber(variables.server_port:get()))
end

local GET_FORWARDED_PATH = phases.allow("request.get_forwarded_path", phases.REQUEST)

--- The path that the client has asked for: X-Forwarded-Path of a trusted proxy as it is, else as
-- `get_path`.
-- @treturn string
-- @phases rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_forwarded_path()
    check(GET_FORWARDED_PATH)
    return forwarded("X-Forwarded-Path") or _M.get_path()
end

local GET_FORWARDED_PREFIX = phases.allow("request.get_forwarded_prefix", phases.REQUEST)

--- The prefix that is stripped off the path: X-Forwarded-Prefix of a trusted proxy as it is, else
-- what the route strips.
-- @treturn string|nil nil: nothing is stripped, or the request is not routed yet
-- @phases rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_forwarded_prefix()
    check(GET_FORWARDED_PREFIX)
    local prefix = forwarded("X-Forwarded-Prefix")
    if prefix then
        return prefix
    end
    prefix = variables.upstream_x_forwarded_prefix:get()
    return prefix ~= "" and prefix or nil
end

-- The request line --------------------------------------------------------------------------------

local GET_HTTP_VERSION = phases.allow("request.get_http_version", phases.REQUEST)

--- The version of HTTP.
-- @treturn number|nil 0.9, 1, 1.1, 2
-- @phases rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_http_version()
    check(GET_HTTP_VERSION)
    return ngx.req.http_version()
end

local GET_METHOD = phases.allow("request.get_method", phases.REQUEST)

--- The method, as the client or a plugin has set it; of a request that nginx refuses, as it was
-- sent.
-- @treturn string
-- @phases rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_method()
    check(GET_METHOD)
    local line = refused_line()
    return line and line:match("^([^ ]+) ") or ngx.req.get_method()
end

local function raw_path()
    local uri = variables.request_uri:get() or ""
    local at = find(uri, "?", 2, true)
    return at and sub(uri, 1, at - 1) or uri
end

-- Of a request that was refused before its path was looked at.
local function normalize(path)
    if path == "" then
        return path
    end
    local raw = ffi.new("sluice_core_text_t", { path, #path })
    local size = tonumber(C.sluice_path_normalize_bound(raw))
    local found = ffi.new("sluice_core_text_t")
    C.sluice_path_normalize(raw, room(size), size, found)
    return ffi_string(found.data, found.length)
end

local GET_PATH = phases.allow("request.get_path", phases.REQUEST)

--- The path as it is routed, without the query: bytes that need no encoding are decoded, digits of
-- the others in capitals, dot segments and repeated slashes gone. It may hold any byte.
-- @treturn string
-- @phases rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_path()
    check(GET_PATH)
    return matched.path() or normalize(raw_path())
end

local GET_RAW_PATH = phases.allow("request.get_raw_path", phases.REQUEST)

--- The path as the client has sent it, without the query. Not for decisions: it has many spellings.
-- @treturn string
-- @phases rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_raw_path()
    check(GET_RAW_PATH)
    return raw_path()
end

local GET_PATH_WITH_QUERY = phases.allow("request.get_path_with_query", phases.REQUEST)

--- Path and query as the client has sent them.
-- @treturn string
-- @phases rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_path_with_query()
    check(GET_PATH_WITH_QUERY)
    return variables.request_uri:get() or ""
end

local GET_RAW_QUERY = phases.allow("request.get_raw_query", phases.REQUEST)

--- The query as it stands, without the question mark, as the client or a plugin has set it.
-- @treturn string
-- @phases rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_raw_query()
    check(GET_RAW_QUERY)
    return variables.args:get() or ""
end

-- Arguments of the query --------------------------------------------------------------------------

-- Whether a caller's limit is one.
local function check_limit(name, limit)
    if type(limit) ~= "number" then
        error(name .. " must be a number", 3)
    elseif limit < 1 then
        error(name .. " must be >= 1", 3)
    elseif limit > MOST then
        error(name .. " must be <= " .. MOST, 3)
    end
end

local function query(limit)
    local line = refused_line()
    if not line then
        return ngx.req.get_uri_args(limit)
    end
    local args = line:match("%?([^ ]*) ")
    return args and ngx.decode_args(args, limit or DEFAULT_ARGS) or {}
end

local fields, text = ffi.new("sluice_fields_t"), ffi.new("sluice_core_text_t")
local wanted = ffi.new("sluice_fields_name_t[1]")

-- What `get_query` would have under a name, without its table.
local function find_arg(args, name)
    text.data, text.length = args, #args
    C.sluice_fields_open(fields, C.SLUICE_FIELDS_FORM, text, text)
    local found = wanted[0]
    found.name.data, found.name.length = name, #name
    C.sluice_fields_find(fields, wanted, 1)
    if found.count == 0 then
        return nil
    elseif found.is_text == 0 then
        return true
    end
    local decoded = room(found.value.length)
    return ffi_string(decoded, C.sluice_fields_decode(fields, found.value, decoded))
end

local GET_QUERY_ARG = phases.allow("request.get_query_arg", phases.REQUEST)

--- An argument of the query, decoded, the first of several. Makes no table.
-- @tparam string name
-- @treturn string|boolean|nil true: the argument has no value; nil: there is none
-- @raise the name is no string
-- @phases rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_query_arg(name)
    check(GET_QUERY_ARG)
    if type(name) ~= "string" then
        error("query argument name must be a string", 2)
    end
    local args = variables.args:get()
    if args then
        return find_arg(args, name)
    end
    local value = query()[name]
    if type(value) == "table" then
        return value[1]
    end
    return value
end

local GET_QUERY = phases.allow("request.get_query", phases.REQUEST)

--- The arguments of the query, decoded: name -> value, true for one without, a list of those that
-- stand several times.
-- @tparam[opt=100] number max_args 1 to 1,000; further ones are left out
-- @treturn table
-- @treturn string|nil "truncated": some were left out
-- @raise the limit is none
-- @phases rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_query(max_args)
    check(GET_QUERY)
    if max_args ~= nil then
        check_limit("max_args", max_args)
    end
    return query(max_args)
end

-- Headers -----------------------------------------------------------------------------------------

local GET_HEADER = phases.allow("request.get_header", phases.REQUEST)

--- A header, the first of several, as the client or a plugin has set it. Makes no table, and looks
-- at each line of the head: some tens of nanoseconds.
-- @tparam string name in any case; `-` and `_` are the same
-- @treturn string|nil
-- @raise the name is no string
-- @phases rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_header(name)
    check(GET_HEADER)
    if type(name) ~= "string" then
        error("header name must be a string", 2)
    end
    if C.sluice_header_first(get_request(), name, #name, first) == 0 then
        return nil
    end
    return ffi_string(first.data, first.length)
end

local GET_HEADERS = phases.allow("request.get_headers", phases.REQUEST)

--- The headers: name in lower case -> value, a list of those that stand several times. A name that
-- is not there is looked for with `-` in place of `_`.
-- @tparam[opt=100] number max_headers 1 to 1,000; further ones are left out
-- @treturn table
-- @treturn string|nil "truncated": some were left out
-- @raise the limit is none
-- @phases rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_headers(max_headers)
    check(GET_HEADERS)
    if max_headers ~= nil then
        check_limit("max_headers", max_headers)
    end
    return ngx.req.get_headers(max_headers)
end

-- The body ----------------------------------------------------------------------------------------

local WITH_BODY = phases.set("rewrite", "access", "response", "admin_api")
local GET_RAW_BODY = phases.allow("request.get_raw_body", WITH_BODY)

--- The body as it was sent. Yields until it is there. One that is larger than
-- `client_body_buffer_size` is in a file, and read from it; the worker waits for the disk then.
-- @tparam[opt=1048576] number max_allowed_file_size bytes of a body in a file, 0: any; negative:
-- none, as in Kong without this argument
-- @treturn string|nil "" where there is none
-- @treturn string|nil why it is not read
-- @phases rewrite, access, response, admin_api
function _M.get_raw_body(max_allowed_file_size)
    check(GET_RAW_BODY)
    return body.read(max_allowed_file_size)
end

local GET_BODY = phases.allow("request.get_body", WITH_BODY)

--- The body as a table: of a form, of JSON (an object or a list), of `multipart/form-data`. Yields.
-- @tparam[opt] string mimetype default: that of the request
-- @tparam[opt=100] number max_args 1 to 1,000: of a form; further ones are left out
-- @tparam[opt] number max_allowed_file_size as of `get_raw_body`
-- @treturn table|nil
-- @treturn string|nil "missing content type", "unsupported content type '...'",
-- "invalid json body", "unable to decode multipart body", "unable to read multipart values", or as
-- of `get_raw_body`
-- @treturn string|nil the type by which the body was read
-- @raise the limit is none
-- @phases rewrite, access, response, admin_api
function _M.get_body(mimetype, max_args, max_allowed_file_size)
    check(GET_BODY)
    local content_type = mimetype or header("Content-Type")
    if not content_type then
        return nil, "missing content type"
    end
    if max_args ~= nil and body.is_form(content_type) then
        check_limit("max_args", max_args)
    end
    return body.decode(content_type, max_args, max_allowed_file_size)
end

-- Others ------------------------------------------------------------------------------------------

local GET_START_TIME = phases.allow("request.get_start_time", phases.REQUEST)

--- When the request began.
-- @treturn number milliseconds since 1970
-- @phases rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_start_time()
    check(GET_START_TIME)
    return floor(ngx.req.start_time() * 1000 + 0.5)
end

local GET_URI_CAPTURES = phases.allow("request.get_uri_captures", phases.REQUEST)

--- What the groups of the route's path have matched. `unnamed` is a list, with the whole match
-- in 0; `named` has those with a name. Both are empty where the path is no regular expression with
-- groups. Runs the expression once more.
-- @tparam[opt] table ctx in place of ngx.ctx
-- @treturn table `{ unnamed = {...}, named = {...} }`
-- @phases rewrite, access, response, header_filter, body_filter, log, admin_api
function _M.get_uri_captures(ctx)
    check(GET_URI_CAPTURES)
    local matches = ctx and ctx.router_matches
    return captures.split(matches and matches.uri_captures or not ctx and captures.get() or nil)
end

return _M
