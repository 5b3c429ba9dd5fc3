--- Which contexts of the dispatcher have ended without a word (ngx.exit in a callback).
--
-- The C module knows, by a cleanup of a context's request, and wakes the dispatcher. Of the stream
-- subsystem nobody knows; neither without the module.
-- @module sluice.events.exits

local ffi = require("ffi")
local module = require("sluice.events.module")

local C = ffi.C

local _M = {}

--- A context begins.
-- @tparam table semaphore posted if it ends without `leave`
-- @treturn number|nil for `has_ended` and `leave`; nil: nobody will know
-- @phases timer
function _M.enter(semaphore)
    if ngx.config.subsystem ~= "http" or not module.load() then
        return nil
    end
    -- A machine that closes before its process must not be woken any more.
    _M.anchor = _M.anchor or ffi.gc(ffi.new("char[1]"), C.sluice_events_leave_all)
    local request = require("resty.core.base").get_request()
    local post = ffi.cast("int (*)(void *, int)", C.ngx_http_lua_ffi_sema_post)
    local serial = C.sluice_events_enter(request, semaphore.sem, post)
    return serial > 0 and serial or nil
end

--- A context ends by itself.
-- @tparam number|nil serial
-- @phases timer
function _M.leave(serial)
    if serial then
        C.sluice_events_leave(serial)
    end
end

--- @tparam number serial
-- @treturn boolean
-- @phases timer
function _M.has_ended(serial)
    return C.sluice_events_has_ended(serial) ~= 0
end

return _M
