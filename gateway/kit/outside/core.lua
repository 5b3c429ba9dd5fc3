--- lua-resty-core and `sluice.var` outside of nginx: plugins and libraries that require them can be
-- loaded.
--
-- Their files bind functions of nginx when they are loaded. In their place are tables of what
-- throws when it is called (gateway.kit.outside.absent), with those functions that others call when
-- they are loaded.
-- @module gateway.kit.outside.core

local absent = require("gateway.kit.outside.absent")
local clear_tab = require("table.clear")
local ffi = require("ffi")
local new_tab = require("table.new")

local _M = {}

-- Debian 12's, the oldest that Sluice runs on: libraries refuse older ones than theirs.
local VERSION = "0.1.25"

-- Libraries name these in declarations of their own.
local TYPES = {
    ngx_str_t = "typedef struct { size_t len; const unsigned char *data; } ngx_str_t;",
    ngx_http_request_t = "typedef struct ngx_http_request_s ngx_http_request_t;",
    ngx_http_lua_ffi_str_t = "typedef struct { int len; const unsigned char *data; } "
        .. "ngx_http_lua_ffi_str_t;",
}

-- What nginx has of libraries, and so all who call C there.
local LIBRARIES = { "libcrypto.so.3", "libssl.so.3" }

local function nothing() end

local function base()
    for name, text in pairs(TYPES) do
        if not pcall(ffi.typeof, name) then
            ffi.cdef(text)
        end
    end
    local message, size, buffer_size = ffi.new("char *[1]"), ffi.new("size_t[1]"), 4096
    return absent.new("resty.core.base", {
        FFI_OK = 0,
        FFI_ERROR = -1,
        FFI_AGAIN = -2,
        FFI_BUSY = -3,
        FFI_DONE = -4,
        FFI_DECLINED = -5,
        FFI_NO_REQ_CTX = -100,
        FFI_BAD_CONTEXT = -101,
        allows_subsystem = nothing,
        clear_tab = clear_tab,
        get_errmsg_ptr = function()
            return message
        end,
        get_request = nothing,
        get_size_ptr = function()
            return size
        end,
        get_string_buf = function(bytes)
            return ffi.new("char[?]", math.max(bytes, buffer_size))
        end,
        get_string_buf_size = function()
            return buffer_size
        end,
        new_tab = new_tab,
        set_string_buf_size = nothing,
        version = VERSION,
    })
end

local function whole()
    return absent.new("resty.core", { version = VERSION })
end

local function var()
    return absent.new("sluice.var", {
        handle = function(name)
            return absent.new(("sluice.var.handle('%s')"):format(name))
        end,
    })
end

-- In Debian's nginx it throws when it is loaded: a check refuses what no start would take.
local function pipe()
    error("ngx.pipe: Debian's nginx has none; it needs a patch of OpenResty's", 0)
end

local MADE = {
    ["ngx.pipe"] = pipe,
    ["resty.core"] = whole,
    ["resty.core.base"] = base,
    ["sluice.var"] = var,
}

-- Before the searcher of files. What is not installed is not found, as in nginx.
local function search(name)
    local is_core = name == "resty.core" or name:find("^resty%.core%.") or name:find("^ngx%.")
    if MADE[name] or is_core then
        return package.searchpath(name, package.path) and (MADE[name] or absent.new)
    end
    return nil
end

--- Gives these modules their names, and libraries the symbols of OpenSSL that they find in nginx.
-- Does not yield.
-- @phases without nginx, once in a Lua state
function _M.install()
    for _, library in ipairs(LIBRARIES) do
        pcall(ffi.load, library, true)
    end
    table.insert(package.loaders, 2, search)
end

return _M
