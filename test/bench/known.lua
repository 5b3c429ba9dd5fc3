-- Three units of C from one line and one from the next; ngx_hash_key takes a nanosecond a byte.
-- LuaJIT says where it is at the next line, so each call is followed by one in the same function.
local ffi = require("ffi")

ffi.cdef("uintptr_t ngx_hash_key(const char *data, size_t len);")

local UNIT = 20000
local data = ("x"):rep(3 * UNIT)

local function three()
    local sum = ffi.C.ngx_hash_key(data, 3 * UNIT)
    return tonumber(sum % 10)
end

local function one()
    local sum = ffi.C.ngx_hash_key(data, UNIT)
    return tonumber(sum % 10)
end

return {
    answer = function()
        local sum = three() -- line 22
        sum = sum + one() -- line 23
        ngx.say(sum)
    end,
}
