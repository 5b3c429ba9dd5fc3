--- The id of a node: it tells an installation from others, and stays over restarts.
-- @module gateway.pdk.node_id

local bit = require("bit")
local ffi = require("ffi")

local band = bit.band
local bor = bit.bor
local byte = string.byte
local format = string.format
local ngx = ngx

ffi.cdef("int gethostname(char *name, size_t size);")

-- RFC 4122, appendix C: the name space of URLs.
local URL_NAMESPACE = "\x6b\xa7\xb8\x11\x9d\xad\x11\xd1\x80\xb4\x00\xc0\x4f\xd4\x30\xc8"

-- Linux has at most 64.
local MAX_NAME = 256

local _M = {}

--- The machine's name. Asks the system; does not yield.
-- @treturn string "" where it has none that fits
-- @phases any
function _M.hostname()
    local name = ffi.new("char[?]", MAX_NAME)
    return ffi.C.gethostname(name, MAX_NAME - 1) == 0 and ffi.string(name) or ""
end

--- The node's id: a UUID of version 3 (RFC 4122) over the machine's name and the folder.
-- @tparam string prefix of the instance
-- @treturn string
-- @phases any within nginx
function _M.of(prefix)
    local name = "sluice://" .. _M.hostname():lower() .. prefix
    local b = { byte(ngx.md5_bin(URL_NAMESPACE .. name), 1, 16) }
    b[7] = bor(band(b[7], 0x0f), 0x30)
    b[9] = bor(band(b[9], 0x3f), 0x80)
    return format("%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", unpack(b))
end

return _M
