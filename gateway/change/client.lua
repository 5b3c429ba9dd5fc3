--- The client of a request of the admin listener: whether it still waits for the answer.
--
-- Only a file is not made where its client has left: all other writes are done, whoever waits. A
-- client that closes its half of the connection alone has left, too, as for nginx.
-- @module gateway.change.client

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")

-- Without nginx (unit tests) there are no requests.
local get_request = ngx and ngx.get_phase and require("resty.core.base").get_request

abi.declare("core/image", "gateway/request")

local C = ffi.C

-- How often it is looked for while something runs in a thread.
local LOOK_SECONDS = 0.05

local _M = {}

--- Whether the client of this request has left. Does not yield; one system call.
-- @treturn boolean
-- @phases content
function _M.is_gone()
    return C.sluice_client_is_gone(get_request()) ~= 0
end

--- Calls a function, and another one in a light thread beside it when the client leaves. Yields.
-- @tparam function on_leave may not yield
-- @tparam function fn
-- @param ... its arguments
-- @return its first two results; throws what it throws
-- @phases content
function _M.watch(on_leave, fn, ...)
    local watcher = ngx.thread.spawn(function()
        while not _M.is_gone() do
            ngx.sleep(LOOK_SECONDS)
        end
        on_leave()
    end)
    local ok, first, second = pcall(fn, ...)
    -- It may have ended by itself: then there is nothing to end.
    ngx.thread.kill(watcher)
    if not ok then
        error(first, 0)
    end
    return first, second
end

return _M
