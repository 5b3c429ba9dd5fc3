--- Arguments, headers and the bodies of errors: `kong.tools.http`.
-- @module kong.tools.http

local http_types = require("kong.tools.http_types")

local concat = table.concat
local format = string.format
local gsub = string.gsub
local max = math.max
local ngx = ngx
local pairs = pairs
local sort = table.sort
local tonumber = tonumber
local tostring = tostring
local type = type

local NULL = ngx and ngx.null or require("cjson").null

local _M = {}

for name, value in pairs(http_types) do
    _M[name] = value
end

-- Arguments ---------------------------------------------------------------------------------------

local function escape_one(char)
    return format("%%%02x", char:byte())
end

local function escape(text)
    return (gsub(tostring(text), "[^%w_]", escape_one))
end

-- Numbers before all else.
local function comes_first(a, b)
    if type(a) == type(b) then
        return a < b
    end
    return type(a) == "number"
end

local function sorted_keys(map)
    local keys = {}
    for key in pairs(map) do
        keys[#keys + 1] = key
    end
    sort(keys, comes_first)
    return keys
end

local function put(how, name, value)
    if not how.raw then
        name, value = escape(name), value ~= nil and escape(value) or nil
    end
    local out = how.out
    out[#out + 1] = value ~= nil and format("%s=%s", name, tostring(value)) or name
end

local function put_table(how, name, map)
    for _, key in ipairs(sorted_keys(map)) do
        local value = map[key]
        local inner
        if type(key) == "number" then
            inner = name .. (how.no_indexes and "[]" or "[" .. tostring(key) .. "]")
        else
            inner = name .. "." .. tostring(key)
        end
        if type(value) == "table" then
            put_table(how, inner, value)
        else
            put(how, inner, value)
        end
    end
end

--- Arguments as a query string: lists as `a[1]=`, maps as `a.b=`, null as `a=`.
-- @tparam table args
-- @tparam[opt=false] boolean raw escapes nothing
-- @tparam[opt=false] boolean no_array_indexes lists as `a[]=`
-- @treturn string
-- @phases any
function _M.encode_args(args, raw, no_array_indexes)
    local how = { out = {}, raw = raw, no_indexes = no_array_indexes }
    for _, key in ipairs(sorted_keys(args)) do
        local value = args[key]
        if type(value) == "table" then
            put_table(how, key, value)
        elseif value == NULL then
            put({ out = how.out }, key, "")
        elseif tostring(value) == "" then
            how.out[#how.out + 1] = key
        else
            put(how, key, tostring(value))
        end
    end
    return concat(how.out, "&")
end

-- A table with keys "1" to "n", as a list.
local function list_of(map)
    local count = 0
    for key in pairs(map) do
        if not tonumber(key) then
            return nil
        end
        count = count + 1
    end
    local list = {}
    for i = 1, count do
        local value = map[tostring(i)]
        if value == nil then
            value = map[i]
        end
        if value == nil then
            return nil
        end
        list[i] = value
    end
    return list
end

local WORDS = { [""] = NULL, ["true"] = true, ["false"] = false }

--- Arguments of a form as values: "" is null, "true" and "false" are booleans, a table with the
-- keys "1" to "n" is a list.
-- @tparam table args
-- @treturn table a new one
-- @phases any
function _M.decode_args(args)
    local out = {}
    for key, value in pairs(args) do
        if type(value) == "table" then
            value = list_of(value) or value
        elseif WORDS[value] ~= nil then
            value = WORDS[value]
        end
        out[key] = value
    end
    return out
end

-- Requests ----------------------------------------------------------------------------------------

--- Whether a request came by HTTPS.
-- @tparam boolean trusted_ip whether the client may say so
-- @tparam boolean allow_terminated whether X-Forwarded-Proto counts
-- @treturn boolean|nil
-- @treturn string|nil "Only one X-Forwarded-Proto header allowed"
-- @phases rewrite, access, header_filter, body_filter, log
function _M.check_https(trusted_ip, allow_terminated)
    if ngx.var.scheme:lower() == "https" then
        return true
    elseif not allow_terminated or not trusted_ip then
        return false
    end
    local said = ngx.var.http_x_forwarded_proto
    if not said then
        return false
    elseif said:find(",", 1, true) then
        return nil, "Only one X-Forwarded-Proto header allowed"
    end
    return said:lower() == "https"
end

--- A header of the request; of several lines the first.
-- @tparam string name
-- @tparam[opt] table ctx where all headers are kept, as `cached_request_headers`
-- @treturn string|nil
-- @phases rewrite, access, header_filter, body_filter, log
function _M.get_header(name, ctx)
    local headers
    if ctx then
        headers = ctx.cached_request_headers or ngx.req.get_headers()
        ctx.cached_request_headers = headers
    else
        local value = ngx.var["http_" .. name:gsub("-", "_")]
        if not value or not value:find(", ", 1, true) then
            return value
        end
        headers = ngx.req.get_headers()
    end
    local value = headers[name]
    return type(value) == "table" and value[1] or value
end

-- Names -------------------------------------------------------------------------------------------

local NOT_OF_TOKENS = "contains one or more invalid characters. ASCII control characters "
    .. '(0-31;127), space, tab and the characters ()<>@,;:\\"/?={}[] are not allowed.'

--- Checks a token of RFC 2616.
-- @tparam string|nil token
-- @treturn string|nil the same
-- @treturn string|nil what is wrong
-- @phases any
function _M.validate_http_token(token)
    if token == nil or token == "" then
        return nil, "no token provided"
    elseif token:find('[%c \128-\255()<>@,;:\\"/?=%[%]{}]') then
        return nil, NOT_OF_TOKENS
    end
    return token
end

--- The same: the name of a cookie is a token.
_M.validate_cookie_name = _M.validate_http_token

--- Checks the name of a header.
-- @tparam string|nil name
-- @treturn string|nil the same
-- @treturn string|nil what is wrong
-- @phases any
function _M.validate_header_name(name)
    if name == nil or name == "" then
        return nil, "no header name provided"
    elseif not name:find("^[%w_-]+$") then
        return nil,
            "bad header name '" .. name .. "', allowed characters are A-Z, a-z, 0-9, '_', and '-'"
    end
    return name
end

-- Cache-Control -----------------------------------------------------------------------------------

local NOTHING = require("kong.tools.table").EMPTY

--- The directives of a header such as Cache-Control, with their values: numbers, texts, or true.
-- @tparam string|table|nil header
-- @treturn table by names in small letters
-- @phases any
function _M.parse_directive_header(header)
    if not header then
        return NOTHING
    elseif type(header) == "table" then
        header = concat(header, ", ")
    end
    local found = {}
    for directive in header:gmatch("[^,]+") do
        local name, value = directive:match("^%s*([^=]+)=(.+)$")
        name = name or directive:match("^%s*([^=]+)")
        if name then
            found[name:lower()] = tonumber(value) or value or true
        end
    end
    return found
end

--- How long a response may be kept: what Cache-Control says, or else Expires of the response.
-- @tparam table directives of `parse_directive_header`
-- @treturn number seconds, 0 at least
-- @phases header_filter, body_filter, log
function _M.calculate_resource_ttl(directives)
    local seconds = directives and (directives["s-maxage"] or directives["max-age"])
    if not seconds then
        local expires = ngx.var.sent_http_expires
        expires = type(expires) == "table" and expires[#expires] or expires
        local at = ngx.parse_http_time(tostring(expires))
        seconds = at and at - ngx.time()
    end
    return seconds and max(seconds, 0) or 0
end

return _M
