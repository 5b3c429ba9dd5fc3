--- lua-resty-openssl's numbers of any size.
-- @module resty.openssl.bn

local crypto = require("sluice.ffi.libcrypto")
local ffi = require("ffi")

local error = error
local getmetatable = getmetatable
local math = math
local setmetatable = setmetatable
local tonumber = tonumber
local tostring = tostring
local type = type

local C = crypto.C

-- Digits of a number as text, and its bytes: beyond, OpenSSL would work for long.
local MAX_BYTES = 65536

local _M = {}
local mt = { __index = _M }

local function wrap(ctx)
    return setmetatable({ ctx = ffi.gc(ctx, C.BN_free) }, mt)
end

local function context()
    return ffi.gc(C.BN_CTX_new(), C.BN_CTX_free)
end

--- Whether a value is one.
-- @phases any
function _M.istype(value)
    return type(value) == "table" and getmetatable(value) == mt
end

--- Takes a number of OpenSSL's over, or a copy of it.
-- @tparam cdata ctx
-- @treturn table
-- @phases any
function _M.dup(ctx)
    if type(ctx) ~= "cdata" then
        return nil, "bn.dup: expect a bn ctx at #1"
    end
    return wrap(C.BN_dup(ctx))
end

local function from_text(name, read)
    return function(text)
        if type(text) ~= "string" or #text > MAX_BYTES then
            return nil, "bn." .. name .. ": expect a string at #1"
        end
        local place = ffi.new("void *[1]")
        -- As many characters as it has read: what follows is no number.
        local count = read(place, text)
        if count == 0 or count ~= #text then
            if place[0] ~= nil then
                C.BN_free(place[0])
            end
            return nil, crypto.failure("bn." .. name .. ": invalid number")
        end
        return wrap(place[0])
    end
end

--- A number of its bytes, the first the most significant.
-- @phases any
function _M.from_binary(text)
    if type(text) ~= "string" or #text > MAX_BYTES then
        return nil, "bn.from_binary: expect a string at #1"
    end
    return wrap(C.BN_bin2bn(text, #text, nil))
end

--- A number of hexadecimal digits.
-- @function from_hex
-- @phases any
_M.from_hex = from_text("from_hex", function(place, text)
    return C.BN_hex2bn(place, text)
end)

--- A number of decimal digits.
-- @function from_dec
-- @phases any
_M.from_dec = from_text("from_dec", function(place, text)
    return C.BN_dec2bn(place, text)
end)

--- Makes one.
-- @tparam[opt=0] number|string number or its text
-- @tparam[opt=10] number base 2 (bytes), 10 or 16 of a text
-- @treturn table|nil
-- @treturn string|nil "bn.new: ..."
-- @phases any
function _M.new(number, base)
    if type(number) == "string" then
        base = base or 10
        if base == 10 then
            return _M.from_dec(number)
        elseif base == 16 then
            return _M.from_hex(number)
        elseif base == 2 then
            return _M.from_binary(number)
        end
        return nil, "bn.new: not supported base: " .. tostring(base)
    end
    number = number or 0
    if type(number) ~= "number" or number % 1 ~= 0 or math.abs(number) > 2 ^ 53 then
        return nil, "bn.new: expect a whole number or a string at #1"
    end
    local made = wrap(C.BN_new())
    C.BN_set_word(made.ctx, math.abs(number))
    C.BN_set_negative(made.ctx, number < 0 and 1 or 0)
    return made
end

--- The bytes, without a sign.
-- @tparam[opt] number length fills up with zeros in front
-- @treturn string|nil
-- @treturn string|nil it has more
-- @phases any
function _M:to_binary(length)
    local count = math.ceil(C.BN_num_bits(self.ctx) / 8)
    if length and (length < count or length > MAX_BYTES) then
        return nil, "bn:to_binary: number does not fit"
    end
    local size = length or count
    local buffer = ffi.new("unsigned char[?]", size + 1)
    C.BN_bn2binpad(self.ctx, buffer, size)
    return ffi.string(buffer, size)
end

local function to_text(self, write)
    local text = write(self.ctx)
    local found = ffi.string(text)
    C.CRYPTO_free(text, "", 0)
    return found
end

--- Hexadecimal digits.
-- @phases any
function _M:to_hex()
    return to_text(self, C.BN_bn2hex)
end

--- Decimal digits.
-- @phases any
function _M:to_dec()
    return to_text(self, C.BN_bn2dec)
end
mt.__tostring = _M.to_dec

--- As a number of Lua's.
-- @treturn number|nil
-- @treturn string|nil "bn:to_number: too large"
-- @phases any
function _M:to_number()
    if C.BN_num_bits(self.ctx) > 53 then
        return nil, "bn:to_number: too large"
    end
    local number = tonumber(C.BN_get_word(self.ctx))
    return C.BN_is_negative(self.ctx) == 1 and -number or number
end
_M.tonumber = _M.to_number

-- Arithmetic -------------------------------------------------------------------------------------

local function operand(value, name)
    if _M.istype(value) then
        return value
    end
    local made = type(value) == "number" and _M.new(value)
    if not made then
        error("bn:" .. name .. ": expect a bn instance or a whole number", 4)
    end
    return made
end

local function binary(name, run)
    return function(a, b)
        a, b = operand(a, name), operand(b, name)
        local result = wrap(C.BN_new())
        if run(result.ctx, a.ctx, b.ctx, context()) ~= 1 then
            error(crypto.failure("bn:" .. name), 2)
        end
        return result
    end
end

_M.add = binary("add", function(result, a, b)
    return C.BN_add(result, a, b)
end)
_M.sub = binary("sub", function(result, a, b)
    return C.BN_sub(result, a, b)
end)
_M.mul = binary("mul", function(result, a, b, ctx)
    return C.BN_mul(result, a, b, ctx)
end)
_M.div = binary("div", function(result, a, b, ctx)
    return C.BN_div(result, nil, a, b, ctx)
end)
_M.idiv = _M.div
_M.mod = binary("mod", function(result, a, b, ctx)
    return C.BN_div(nil, result, a, b, ctx)
end)
_M.exp = binary("exp", function(result, a, b, ctx)
    return C.BN_exp(result, a, b, ctx)
end)
_M.pow = _M.exp
_M.gcd = binary("gcd", function(result, a, b, ctx)
    return C.BN_gcd(result, a, b, ctx)
end)
mt.__add, mt.__sub, mt.__mul, mt.__div = _M.add, _M.sub, _M.mul, _M.div
mt.__mod, mt.__pow = _M.mod, _M.exp

function mt.__unm(self)
    return _M.new(0) - self
end

--- `base ^ exponent mod modulus`.
-- @phases any
function _M.mod_exp(base, exponent, modulus)
    base, exponent, modulus =
        operand(base, "mod_exp"), operand(exponent, "mod_exp"), operand(modulus, "mod_exp")
    local result = wrap(C.BN_new())
    if C.BN_mod_exp(result.ctx, base.ctx, exponent.ctx, modulus.ctx, context()) ~= 1 then
        error(crypto.failure("bn:mod_exp"), 2)
    end
    return result
end

local function compare(a, b)
    return C.BN_cmp(operand(a, "cmp").ctx, operand(b, "cmp").ctx)
end

function mt.__eq(a, b)
    return compare(a, b) == 0
end
function mt.__lt(a, b)
    return compare(a, b) < 0
end
function mt.__le(a, b)
    return compare(a, b) <= 0
end

--- Whether it is zero.
-- @phases any
function _M:is_zero()
    return C.BN_num_bits(self.ctx) == 0
end

--- Whether it is odd.
-- @phases any
function _M:is_odd()
    return self:to_binary():byte(-1) ~= nil and self:to_binary():byte(-1) % 2 == 1
end

return _M
