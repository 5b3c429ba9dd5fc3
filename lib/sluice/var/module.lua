--- The C module's functions for variables, through FFI (module/lib/var/ngx_http_sluice_var.h).
-- @module sluice.var.module

local abi = require("sluice.ffi.abi")
local ffi = require("ffi")

require("resty.core.base") -- declares ngx_http_request_t

local C = ffi.C

local _M = {}

_M.ABSENT = -1
_M.FAILED = -2
_M.SAME = -3

local is_there, missing = abi.declare("lib/var")

--- The numbers of the variables that the configuration indexes.
-- @treturn table name in lower case -> number
-- @raise what is missing, for people, where this nginx has no such module
function _M.numbers()
    if not is_there then
        error(missing, 0)
    end
    local numbers, data = {}, ffi.new("u_char *[1]")
    for number = 0, C.sluice_var_count() - 1 do
        local length = C.sluice_var_name(number, data)
        numbers[ffi.string(data[0], length)] = number
    end
    return numbers
end

return _M
