--- The C module's functions for timers: Lua C functions in the shared object that nginx has loaded,
-- module/lib/timer/*.c, and what needs pointers, which only FFI can give.
-- @module sluice.timer.module

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")

local C = ffi.C

local _M = {}

local is_there, missing = abi.declare("lib/timer")

local backend

local function of_subsystem(name)
    return C["ngx_" .. ngx.config.subsystem .. "_lua_ffi_" .. name]
end

local function start(core, semaphore, more, apply)
    require("resty.core.ctx")
    backend.makes(core, more, apply)
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
    if not is_there then
        return nil, missing
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
