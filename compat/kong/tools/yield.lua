--- Turns for others in long loops: `kong.tools.yield`.
-- @module kong.tools.yield

local ngx = ngx

local _M = {}

local YIELDABLE = {
    rewrite = true,
    server_rewrite = true,
    access = true,
    content = true,
    timer = true,
    ssl_client_hello = true,
    ssl_certificate = true,
    ssl_cert = true,
    ssl_session_fetch = true,
    preread = true,
}

-- So many calls of a loop make one turn.
local CALLS = 1000
local left = CALLS

--- Whether one may yield.
-- @tparam[opt] string phase the one that runs without it
-- @treturn boolean|nil
-- @phases any
function _M.in_yieldable_phase(phase)
    return YIELDABLE[phase or (ngx and ngx.get_phase and ngx.get_phase()) or ""]
end

--- Lets the worker do something else, where the phase allows it; without nginx it does nothing.
-- @tparam[opt=false] boolean in_loop only each 1,000th call of the worker does so
-- @tparam[opt] string phase as of `in_yieldable_phase`
-- @phases any
function _M.yield(in_loop, phase)
    if not _M.in_yieldable_phase(phase) or not ngx.sleep then
        return
    end
    if in_loop then
        left = left - 1
        if left > 0 then
            return
        end
        left = CALLS
    end
    ngx.sleep(0)
end

return _M
