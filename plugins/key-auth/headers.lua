--- Finds a request header by name, and tells when it is there more than once.
--
-- `$http_name` gives the first of several equal headers on nginx before 1.23 and a joined value
-- since; `ngx.req.get_headers` builds a table of all headers and their strings. This looks at
-- them where they are: the Lua module's own function fills an array of pointers, one comparison
-- of lengths passes over most, and only the value that is wanted becomes a string.
-- @module plugins.key-auth.headers

local ffi = require("ffi")

local unroll = require("sluice.unroll")

local C = ffi.C
local ffi_string = ffi.string
local get_request

-- Capacity for usual requests; grows to the largest request seen, which
-- large_client_header_buffers bounds.
local capacity = 64
local elements
local truncated = ffi.new("int[1]")

local _M = {}

-- lua-resty-core, which nginx's Lua module loads at start, has declared the types and functions.
local function prepare()
    get_request = require("resty.core.base").get_request
    elements = ffi.new("ngx_http_lua_ffi_table_elt_t[?]", capacity)
end

if ngx then
    prepare()
    ffi.cdef([[
        int memcmp(const void *a, const void *b, size_t n);
    ]])
end

local function grow(count)
    capacity = count * 2
    elements = ffi.new("ngx_http_lua_ffi_table_elt_t[?]", capacity)
end

-- A request with more headers takes the loop.
local UNROLLED = 12

-- Returns how many headers have the name, and the index of the first.
local COUNT_MATCHES = [[
    local memcmp = ...
    return function(elements, count, name, length)
        local found, first, key = 0, nil, nil
        {{if count < $i then
            return found, first
        end
        key = elements[$i - 1].key
        if key.len == length and memcmp(key.data, name, length) == 0 then
            found = found + 1
            first = first or $i - 1
        end
        }}
        for i = $UNROLLED, count - 1 do
            key = elements[i].key
            if key.len == length and memcmp(key.data, name, length) == 0 then
                found = found + 1
                first = first or i
            end
        end
        return found, first
    end
]]

local count_matches = ngx
    and unroll.compile(COUNT_MATCHES:gsub("$UNROLLED", UNROLLED), UNROLLED)(C.memcmp)

--- Reads a header of the current request.
-- Cost: one comparison a header, one string for the value.
-- @tparam string name in lower case
-- @treturn string|nil value of the first such header
-- @treturn number how many such headers the request has
-- @phases rewrite, access, content
function _M.find(name)
    local request = get_request()
    local count = C.ngx_http_lua_ffi_req_get_headers_count(request, 0, truncated)
    if count > capacity then
        grow(count)
    end
    C.ngx_http_lua_ffi_req_get_headers(request, elements, count, 0)
    local found, first = count_matches(elements, count, name, #name)
    if not first then
        return nil, 0
    end
    local value = elements[first].value
    return ffi_string(value.data, value.len), found
end

return _M
