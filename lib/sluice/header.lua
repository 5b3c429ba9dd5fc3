--- Headers that are known by name when a configuration loads.
--
-- `ngx.header[name] = value` and `ngx.req.set_header` look at each byte of name
-- and value, lower the name, hash it and search for it, some 900 instructions a
-- header. A handle has all that is known of the name, and in the plain case (a
-- header that is not there yet, a value without control characters) a function
-- of the C module writes it in about 150. Every other case goes the way that
-- these two functions go, with their results and errors.
-- @module sluice.header
-- @usage
-- local header = require("sluice.header")
-- local limit = header.new("RateLimit-Limit") -- when the module loads
-- limit:set_response(60)                      -- per request

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")

-- Without nginx (the command line, unit tests) handles are made and not used.
local get_request = ngx and ngx.get_phase and require("resty.core.base").get_request

local C = ffi.C
local ffi_string = ffi.string
local ngx = ngx
local type = type

abi.declare("core/image", "core/text", "lib/header")

local OK = 0
local first = ffi.new("sluice_header_value_t")

-- Whole numbers up to here are written as Lua writes them.
local MAX_WHOLE = 1e14

local function set_of(names)
    local set = {}
    for name in names:gmatch("%S+") do
        set[name] = true
    end
    return set
end

-- nginx keeps these in places of their own as well, so they go the long way.
local KEPT_OF_REQUEST = set_of([[
    accept accept-encoding accept-language authorization connection content-length content-type
    cookie date depth destination expect host if-match if-modified-since if-none-match if-range
    if-unmodified-since keep-alive overwrite range referer te transfer-encoding upgrade user-agent
    via x-forwarded-for x-real-ip
]])
local KEPT_OF_RESPONSE = set_of([[
    accept-ranges cache-control connection content-encoding content-length content-range
    content-type date e-tag etag expires last-modified link location refresh server set-cookie
    trailer transfer-encoding www-authenticate
]])

local _M = {}
local Header = {}
Header.__index = Header

-- By name. Requests point to the names, so none is ever let go.
local handles = {}

--- nginx's hash of a name in lower case (ngx_hash_key).
local function hash_of(lowcase)
    local hash = 0ULL
    for i = 1, #lowcase do
        hash = hash * 31 + lowcase:byte(i)
    end
    return hash
end

local function is_whole(value)
    return type(value) == "number" and value % 1 == 0 and value < MAX_WHOLE and value > -MAX_WHOLE
end

--- The handle of a header. The same name gives the same handle; each is kept for
-- as long as the worker lives, so names come from code or configuration, never
-- from requests.
-- @tparam string name as it will be written
-- @treturn table handle
-- @phases any
function _M.new(name)
    local handle = handles[name]
    if handle then
        return handle
    end
    if type(name) ~= "string" or not name:find("^[%w!#$%%&'*+.^_`|~-]+$") then
        error("bad argument #1 to 'new' (a header's name expected)", 2)
    end
    local lowcase = name:lower()
    handle = setmetatable({
        name = name,
        lowcase = lowcase,
        kept_of_request = KEPT_OF_REQUEST[lowcase] or false,
        -- ngx.header writes a dash for an underscore.
        kept_of_response = KEPT_OF_RESPONSE[lowcase] or name:find("_", 1, true) ~= nil,
        data = ffi.new("sluice_header_t", {
            ffi.cast("u_char *", name),
            ffi.cast("u_char *", lowcase),
            #name,
            hash_of(lowcase),
        }),
    }, Header)
    handles[name] = handle
    return handle
end

--- The handle of a header that the gateway writes itself: what is set replaces
-- the upstream's lines of this name, where `sluice_upstream` looks at them
-- (module/gateway/upstream/ngx_http_sluice_response.c). Otherwise as `new`.
-- @tparam string name as it will be written
-- @treturn table handle
-- @phases any
function _M.own(name)
    local handle = _M.new(name)
    handle.data.own = 1
    return handle
end

--- Sets the header of the response, as `ngx.header[name] = value` does. Does not
-- yield; throws what that throws ("failed to set header", API disabled, ...).
-- @tparam string|number|table|nil value
-- @phases rewrite, access, content, header_filter
function Header:set_response(value)
    if not self.kept_of_response then
        local rc
        if type(value) == "string" then
            rc = C.sluice_header_to_response(get_request(), self.data, value, #value)
        elseif is_whole(value) then
            rc = C.sluice_header_number_to_response(get_request(), self.data, value)
        end
        if rc == OK then
            return
        end
    end
    ngx.header[self.name] = value
end

--- Sets the header of the request, as `ngx.req.set_header` does: all that the
-- client has sent under this name is gone. Does not yield; throws what that throws.
-- @tparam string|number|table|nil value
-- @phases rewrite, access, content, header_filter
function Header:set_request(value)
    if
        self.kept_of_request
        or type(value) ~= "string"
        or C.sluice_header_to_request(get_request(), self.data, value, #value) ~= OK
    then
        ngx.req.set_header(self.name, value)
    end
end

--- The header of the request as the client or a plugin has set it.
-- @treturn string|nil value of the first such header
-- @treturn number how many there are
-- @phases rewrite, access, content, header_filter, body_filter, log
function Header:get_request()
    local count = C.sluice_header_of_request(get_request(), self.data, first)
    if count == 0 then
        return nil, 0
    end
    return ffi_string(first.data, first.length), count
end

--- Takes the header out of the request, as `ngx.req.clear_header` does.
-- @phases rewrite, access, content, header_filter
function Header:clear_request()
    if C.sluice_header_of_request(get_request(), self.data, first) > 0 then
        ngx.req.clear_header(self.name)
    end
end

return _M
