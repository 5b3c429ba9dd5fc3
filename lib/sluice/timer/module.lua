--- The C module's functions for timers: Lua C functions in the shared object that nginx has loaded,
-- module/nginx/ngx_sluice_timer*.c, and what needs pointers, which only FFI can give.
-- @module sluice.timer.module

local ffi = require("ffi")

local C = ffi.C

local _M = {}

-- NGX_SLUICE_TIMER_ABI
local ABI = 3

ffi.cdef([[
int sluice_timer_abi(void);
const char *sluice_timer_path(void);
int sluice_timer_start(void *core, void *semaphore, int (*post)(void *, int),
    int (*ctx)(void *, int *, int *));
int sluice_timer_enter(void *core, void *request, int http);
]])

local MISSING = "the Sluice module is not loaded: put 'load_module <path>/ngx_sluice_module.so;' "
    .. "behind the load_module line of the Lua module in nginx.conf ('make build' makes the file)"

local MISMATCH = "the Sluice module in nginx is of another version than its Lua files: "
    .. "run 'make build', then restart nginx"

local backend

local function abi()
    return C.sluice_timer_abi()
end

local function of_subsystem(name)
    return C["ngx_" .. ngx.config.subsystem .. "_lua_ffi_" .. name]
end

local function start(core, semaphore, add)
    require("resty.core.ctx")
    backend.makes(core, add)
    local rc = C.sluice_timer_start(
        core,
        semaphore.sem,
        ffi.cast("int (*)(void *, int)", of_subsystem("sema_post")),
        ffi.cast("int (*)(void *, int *, int *)", of_subsystem("get_ctx_ref"))
    )
    return rc == 0
end

local function enter(core)
    local request = require("resty.core.base").get_request()
    local http = ngx.config.subsystem == "http" and 1 or 0
    local id = C.sluice_timer_enter(core, request, http)
    return id >= 0 and id or nil
end

--- The functions behind the interface.
-- @treturn table|nil
-- @treturn string|nil what is missing, for people
-- @phases all
function _M.load()
    if backend then
        return backend
    end
    local found, version = pcall(abi)
    if not found then
        return nil, MISSING
    elseif version ~= ABI then
        return nil, MISMATCH
    end
    local path = ffi.string(C.sluice_timer_path())
    local open, err = package.loadlib(path, "luaopen_sluice_timer")
    if not open then
        return nil, err
    end
    local functions = open()
    functions.start = start
    functions.enter = enter
    backend = functions
    return backend
end

return _M
