--- lua-resty-jit-uuid's UUIDs: random ones (version 4) from the kernel, and named ones (3 and 5).
-- @module resty.jit-uuid

local bit = require("bit")
local ffi = require("ffi")

local assert = assert
local band = bit.band
local bor = bit.bor
local error = error
local find = string.find
local format = string.format
local math = math
local ngx = ngx
local os = os
local setmetatable = setmetatable
local string = string
local sub = string.sub
local tonumber = tonumber
local type = type

local BYTES = 16

local PATTERN = "^%x%x%x%x%x%x%x%x%-%x%x%x%x%-%x%x%x%x%-[89abAB]%x%x%x%-" .. ("%x"):rep(12) .. "$"
-- The same for nginx, where it is compiled.
local REGEX = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
local SHAPE = "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x"

-- By a name of its own: others in this Lua may have declared it, too.
ffi.cdef([[
    ssize_t compat_getrandom(void *buffer, size_t size, unsigned flags)
        __asm__("getrandom");
]])

local _M = { _VERSION = "0.0.7" }

local bytes = ffi.new("uint8_t[?]", BYTES)

-- The text of 16 bytes, with their version and the variant of RFC 9562.
local function text_of(b, version)
    b[6] = bor(band(b[6], 0x0f), version * 16)
    b[8] = bor(band(b[8], 0x3f), 0x80)
    return format(
        SHAPE,
        b[0],
        b[1],
        b[2],
        b[3],
        b[4],
        b[5],
        b[6],
        b[7],
        b[8],
        b[9],
        b[10],
        b[11],
        b[12],
        b[13],
        b[14],
        b[15]
    )
end

--- Seeds math.random, as lua-resty-jit-uuid does. UUIDs here need no seed.
-- @tparam[opt] number seed
-- @treturn number
-- @phases any
function _M.seed(seed)
    seed = seed or (ngx and ngx.get_phase and ngx.time() + ngx.worker.pid()) or os.time()
    math.randomseed(seed)
    return seed
end

--- Whether a text is a UUID of RFC 9562's variant.
-- @treturn boolean
-- @phases any
function _M.is_valid(text)
    if type(text) ~= "string" or #text ~= 36 then
        return false
    elseif ngx and ngx.get_phase then
        return ngx.re.find(text, REGEX, "ijo") ~= nil
    end
    return find(text, PATTERN) ~= nil
end

--- A random UUID. One system call.
-- @treturn string
-- @phases any
function _M.generate_v4()
    -- Nothing is kept for the next one: processes that fork would share it.
    assert(ffi.C.compat_getrandom(bytes, BYTES, 0) == BYTES, "the kernel has no random bytes")
    return text_of(bytes, 4)
end

local function factory(namespace, version, hash)
    if not (ngx and ngx.get_phase) then
        error(("v%d UUID generation only supported in ngx_lua"):format(version), 3)
    elseif not _M.is_valid(namespace) then
        return nil, "namespace must be a valid UUID"
    end
    local prefix = namespace:gsub("%-", ""):gsub("%x%x", function(digits)
        return string.char(tonumber(digits, 16))
    end)
    return function(name)
        if type(name) ~= "string" then
            return nil, "name must be a string"
        end
        ffi.copy(bytes, hash(prefix .. name), BYTES)
        return text_of(bytes, version)
    end
end

local function sha1(text)
    return sub(ngx.sha1_bin(text), 1, BYTES)
end

local function md5(text)
    return ngx.md5_bin(text)
end

--- Makes a function that names UUIDs of version 3 (MD5) in a namespace.
-- @tparam string namespace a UUID
-- @treturn function|nil `generate(name)`: a UUID, or nil, "name must be a string"
-- @treturn string|nil "namespace must be a valid UUID"
-- @phases any
function _M.factory_v3(namespace)
    return factory(namespace, 3, md5)
end

--- The same of version 5 (SHA-1).
-- @phases any
function _M.factory_v5(namespace)
    return factory(namespace, 5, sha1)
end

--- The UUID of a name in a namespace, version 3.
-- @phases any
function _M.generate_v3(namespace, name)
    local generate, err = factory(namespace, 3, md5)
    if not generate then
        return nil, err
    end
    return generate(name)
end

--- The UUID of a name in a namespace, version 5.
-- @phases any
function _M.generate_v5(namespace, name)
    local generate, err = factory(namespace, 5, sha1)
    if not generate then
        return nil, err
    end
    return generate(name)
end

-- Called, the module makes a random one.
return setmetatable(_M, { __call = _M.generate_v4 })
