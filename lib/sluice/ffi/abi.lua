--- What C declares for Lua: texts for FFI, each of a folder of module/ or of a plugin, made of its
-- headers when the module is built (module/declarations.awk).
--
-- In nginx the module has them, outside the core as a library (sluice.built). Either may be older
-- or newer than the Lua files: then the hash of a text is not the one in sluice.ffi.hashes, or in
-- the plugin's own Lua, and nothing is declared. A module of the libraries alone
-- (module/lib/config) has fewer texts.
-- @module sluice.ffi.abi
-- @usage
-- local is_there, err = abi.declare("lib/var")

local built = require("sluice.built")
local ffi = require("ffi")
local hashes = require("sluice.ffi.hashes")

local C = ffi.C

local _M = {}

ffi.cdef([[
const char *sluice_declarations(const char *room, uint32_t *hash);
int sluice_var_count(void);
]])

local MISSING = (
    "the Sluice module is not loaded: put 'load_module %s;' after the load_module line of the Lua "
    .. "module in nginx.conf"
):format(built.module)

-- Names of nginx's that headers use, as lua-resty-core declares them where it does.
local NAMES = {
    u_char = "typedef unsigned char u_char;",
    ngx_int_t = "typedef intptr_t ngx_int_t;",
    ngx_uint_t = "typedef uintptr_t ngx_uint_t;",
    ngx_str_t = "typedef struct { size_t len; const unsigned char *data; } ngx_str_t;",
    ngx_http_request_t = "typedef struct ngx_http_request_s ngx_http_request_t;",
}

-- The folder that a whole module, and the core's library, has something of.
local WHOLE = "core/image"

local function has(library, name)
    return library[name] ~= nil
end

-- Every version of the module has this function.
local is_nginx = pcall(has, C, "sluice_var_count")

local PARTIAL = (
    "nginx's Sluice module has only events, timer and var (module/lib), not %%s: put 'load_module "
    .. "%s;' in place of its line in nginx.conf"
):format(built.module)

local NO_PLUGIN = (is_nginx and "the Sluice module in nginx" or built.core)
    .. " was built without the C of plugin '%s': name its parent folder in SLUICE_PLUGIN_SOURCES; "
    .. built.remedy

local MISMATCH = (is_nginx and "the Sluice module in nginx" or built.core)
    .. " is of another version than its Lua files (%s); "
    .. built.remedy
    .. (is_nginx and ", then restart nginx" or "")

--- What to take texts from; nil: there is nothing.
local function find_library()
    if is_nginx then
        return C
    end
    local ok, library = pcall(ffi.load, built.core)
    return ok and library or nil, library
end

local library, failure = find_library()
local declared = {}

local hash = ffi.new("uint32_t[1]")

-- The text of a folder, and its hash is in `hash`; nil or NULL: it has none.
local function text_of(room)
    local is_known, text = pcall(function()
        return library.sluice_declarations(room, hash)
    end)
    return is_known and text or nil, is_known
end

local function declare(room, expected)
    if declared[room] and declared[room] == expected then
        return
    end
    local text, is_known = text_of(room)
    if is_known and text == nil and is_nginx and expected and text_of(WHOLE) == nil then
        error(PARTIAL:format(room), 0)
    elseif is_known and text == nil and room:find("^plugins/") then
        error(NO_PLUGIN:format(room:match("/(.+)")), 0)
    elseif text == nil or hash[0] ~= expected then
        error(MISMATCH:format(room), 0)
    end
    for name, declaration in pairs(NAMES) do
        if not pcall(ffi.typeof, name) then
            ffi.cdef(declaration)
        end
    end
    ffi.cdef(ffi.string(text))
    declared[room] = expected
end

local function answer()
    if is_nginx then
        return true
    end
    return nil, MISSING
end

--- Declares to FFI what folders of module/ have for Lua, whatever is declared already.
-- @tparam string ... folders, those behind whose types others use: "core/image", "gateway/image"
-- @treturn true|nil
-- @treturn string|nil this is no nginx with the module, for people: constants and structs are
-- declared if the core's library is there, and of functions it has those of the core
-- @raise the module, or the library, is of another version, or the module has the libraries alone,
-- for people
-- @phases all
function _M.declare(...)
    for _, room in ipairs(library and { ... } or {}) do
        declare(room, hashes[room])
    end
    return answer()
end

--- Declares what a plugin's own headers have for Lua, after `declare` of the folders whose types
-- they use. For the Lua in the plugin's folder.
-- @tparam string name of the plugin
-- @tparam number expected the hash of what it was written against; a build says which that is
-- @treturn true|nil
-- @treturn string|nil as of `declare`
-- @raise as `declare`, or what was built has no C of such a plugin
-- @phases all
function _M.declare_plugin(name, expected)
    if library then
        declare("plugins/" .. name, expected)
    end
    return answer()
end

--- The library that has the core's functions: ffi.C in nginx.
-- @treturn userdata
-- @raise there is none, for people
-- @phases all
function _M.library()
    if not library then
        error(("%s; %s"):format(failure, built.remedy), 0)
    end
    return library
end

return _M
