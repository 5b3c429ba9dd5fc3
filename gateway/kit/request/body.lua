--- Bodies of requests, for `kong.request`: from memory or from the file that nginx has read them
-- into, and by their types.
-- @module gateway.kit.request.body

local abi = require("sluice.ffi.abi")
local cjson = require("cjson.safe")
local ffi = require("ffi")

local C = ffi.C
local concat = table.concat
local find = string.find
local lower = string.lower
local match = string.match
local min = math.min
local ngx = ngx
local tonumber = tonumber
local type = type

-- Without nginx (the command line, unit tests) there are no requests.
local get_request = ngx and ngx.get_phase and require("resty.core.base").get_request

abi.declare("core/image", "gateway/plugin")
ffi.cdef("int64_t pread(int fd, void *bytes, size_t size, int64_t offset);")

local FORM = "application/x-www-form-urlencoded"
local JSON = "application/json"
local MULTIPART = "multipart/form-data"

-- Bytes of a body in a file that are read where the caller names no bound.
local DEFAULT_FILE_SIZE = 1048576
local DEFAULT_ARGS = 100
-- Bytes between two turns of the event loop.
local PIECE = 1048576

local _M = {}

local size = ffi.new("int64_t[1]")

-- The descriptor is the request's: what is read is at its own place, whoever reads meanwhile.
local function read_file(fd, length)
    local pieces, offset = {}, 0
    local buffer = ffi.new("uint8_t[?]", min(PIECE, length))
    while offset < length do
        local wanted = min(PIECE, length - offset)
        local got = tonumber(C.pread(fd, buffer, wanted, offset))
        if got <= 0 then
            return nil, "failed to read the file of the request's body"
        end
        pieces[#pieces + 1] = ffi.string(buffer, got)
        offset = offset + got
        if offset < length then
            ngx.sleep(0)
        end
    end
    return concat(pieces)
end

--- The body. Yields until it was read, and after each MiB of a file.
-- @tparam[opt=1048576] number most bytes of a body in a file; 0: any; negative: none
-- @treturn string|nil
-- @treturn string|nil why not
-- @phases rewrite, access, response, content
function _M.read(most)
    ngx.req.read_body()
    local data = ngx.req.get_body_data()
    if data then
        return data
    end
    local fd = C.sluice_body_file(get_request(), size)
    if fd < 0 then
        return ""
    end
    local length = tonumber(size[0])
    most = most or DEFAULT_FILE_SIZE
    if most < 0 then
        return nil,
            "request body did not fit into client body buffer, consider raising "
                .. "'client_body_buffer_size'"
    elseif most > 0 and length > most then
        return nil, ("request body file too big: %d > %d"):format(length, most)
    end
    return read_file(fd, length)
end

local function is(content_type, name)
    return find(lower(match(content_type, "^[^;]*")), name, 1, true) == 1
end

--- Whether a type is that of forms whose arguments can be bounded.
-- @tparam string content_type
-- @treturn boolean
-- @phases any
function _M.is_form(content_type)
    return is(content_type, FORM)
end

local function decode_json(text)
    local found = cjson.decode(text)
    if type(found) ~= "table" then
        return nil, "invalid json body"
    end
    return found
end

local function decode_multipart(text, content_type)
    local parts = require("multipart")(text, content_type)
    if not parts then
        return nil, "unable to decode multipart body"
    end
    local found = parts:get_all_with_arrays()
    if not found then
        return nil, "unable to read multipart values"
    end
    return found
end

--- The body as a table. Yields.
-- @tparam string content_type
-- @tparam[opt=100] number max_args of a form
-- @tparam[opt] number most as of `read`
-- @treturn table|nil
-- @treturn string|nil why not
-- @treturn string the type by which it was read, or is not
-- @phases rewrite, access, response, content
function _M.decode(content_type, max_args, most)
    local name = is(content_type, FORM) and FORM
        or is(content_type, JSON) and JSON
        or is(content_type, MULTIPART) and MULTIPART
    if not name then
        local short = lower(match(content_type, "^[^;]*"))
        return nil, "unsupported content type '" .. content_type .. "'", short
    end
    local text, found, err
    text, err = _M.read(most)
    if not text then
        return nil, err, name
    elseif name == FORM then
        found, err = ngx.decode_args(text, max_args or DEFAULT_ARGS), nil
    elseif name == JSON then
        found, err = decode_json(text)
    else
        found, err = decode_multipart(text, content_type)
    end
    return found, err, name
end

return _M
