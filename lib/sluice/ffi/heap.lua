--- Bounds of what a worker's Lua may take (module/lib/loop/ngx_sluice_heap.h).
-- @module sluice.ffi.heap

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")

abi.declare("lib/loop")

local OK = 0

local _M = {}

--- Lets Lua hold so much more than it holds now: who asks for more gets the error "not enough
-- memory". From then on each piece of memory costs an addition more. Does not yield.
-- @tparam number bytes
-- @treturn boolean false: this process cannot have one (sluice.ffi.turn)
-- @phases any in a worker
function _M.limit(bytes)
    return ffi.C.sluice_heap_limit(bytes) == OK
end

--- Whether half of the stack of C is left, on which coroutines are resumed in each other.
-- @treturn boolean
-- @phases any in a worker, behind `limit`
function _M.has_stack()
    return ffi.C.sluice_heap_has_stack() ~= 0
end

return _M
