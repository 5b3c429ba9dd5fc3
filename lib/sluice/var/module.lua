--- The C module's functions for variables, through FFI.
--
-- The declarations mirror module/nginx/ngx_http_sluice_var.h; `load` compares a number with the
-- module's.
-- @module sluice.var.module

local ffi = require("ffi")

require("resty.core.base") -- declares ngx_http_request_t

local C = ffi.C

local _M = {}

-- NGX_SLUICE_VAR_ABI
local ABI = 1

_M.ABSENT = -1
_M.FAILED = -2
_M.SAME = -3

ffi.cdef([[
typedef struct {
    const char *last;
    const char *data;
    int last_length;
    unsigned number;
    int length;
} sluice_var_value_t;

int sluice_var_abi(void);
int sluice_var_count(void);
int sluice_var_name(int number, const char **data);
int sluice_var_get(ngx_http_request_t *r, unsigned number, const char *last, size_t last_length,
    const char **data);
int sluice_var_get_bulk(ngx_http_request_t *r, int count, sluice_var_value_t *values);
int sluice_var_set(ngx_http_request_t *r, unsigned number, const char *data, size_t length);
]])

local MISSING = "the Sluice module is not loaded: put 'load_module <path>/ngx_sluice_module.so;' "
    .. "behind the load_module line of the Lua module in nginx.conf ('make build' makes the file)"

local MISMATCH = "the Sluice module in nginx is of another version than its Lua files: "
    .. "run 'make build', then restart nginx"

local function abi()
    return C.sluice_var_abi()
end

--- The numbers of the variables that the configuration indexes.
-- @treturn table name in lower case -> number
-- @raise what is missing, for people, where this nginx has no such module
function _M.numbers()
    local found, version = pcall(abi)
    if not found then
        error(MISSING, 0)
    end
    if version ~= ABI then
        error(MISMATCH, 0)
    end
    local numbers, data = {}, ffi.new("const char *[1]")
    for number = 0, C.sluice_var_count() - 1 do
        local length = C.sluice_var_name(number, data)
        numbers[ffi.string(data[0], length)] = number
    end
    return numbers
end

return _M
