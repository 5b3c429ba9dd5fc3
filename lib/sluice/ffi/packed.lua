--- Writes numbers and texts as the bytes that C reads (module/core/plugin/packed.h,
-- gateway.image.records): words of 32 bits and doubles in the machine's order, texts behind their
-- length. They stay on one machine.
--
-- Nothing here yields.
-- @module sluice.ffi.packed
-- @usage
-- local out = packed.new()
-- out:number(conf.hide_credentials and 1 or 0)
-- out:text(conf.realm)
-- out:list(conf.key_names)
-- return out:bytes()

local ffi = require("ffi")
local string_buffer = require("string.buffer")

local type = type

local NONE = 0xffffffff
local LIST_MAX = 65535

local _M = {}

--- Bytes of a text.
_M.TEXT_MAX = 2 ^ 20
--- What `text` raises of one that has more.
_M.TOO_LONG = "is longer than 1 MiB"

local TEXT_MAX, TOO_LONG = _M.TEXT_MAX, _M.TOO_LONG
local methods = {}
local mt = { __index = methods }

local word = ffi.new("uint32_t[1]")
local double = ffi.new("double[1]")

--- Makes a writer, which has nothing yet.
-- @treturn table
-- @phases any
function _M.new()
    return setmetatable({ out = string_buffer.new() }, mt)
end

--- Writes elsewhere from now on.
-- @tparam userdata buffer `string.buffer`; what it has stays before what is written
-- @phases any
function methods:into(buffer)
    self.out = buffer
end

--- Writes a word.
-- @tparam number value whole, 0 to 2^32 - 1; a negative one as its two's complement
-- @phases any
function methods:number(value)
    word[0] = value % 2 ^ 32
    self.out:putcdata(word, 4)
end

--- Writes a word of flags: those whose field is true.
-- @tparam table config
-- @tparam {[string]=number} flags by field
-- @phases any
function methods:flags(config, flags)
    local word_of = 0
    for field, flag in pairs(flags) do
        word_of = word_of + (config[field] == true and flag or 0)
    end
    self:number(word_of)
end

--- Writes any number.
-- @tparam number value
-- @phases any
function methods:double(value)
    double[0] = value
    self.out:putcdata(double, 8)
end

--- Writes a text, which is none where it is not given.
-- @tparam any value a string; whatever else is none
-- @raise "is longer than 1 MiB"
-- @phases any
function methods:text(value)
    if type(value) ~= "string" then
        return self:number(NONE)
    elseif #value > TEXT_MAX then
        error(TOO_LONG, 0)
    end
    self:number(#value)
    self.out:put(value)
end

--- Writes a count.
-- @tparam number count of what follows
-- @raise "has more than 65535 elements"
-- @phases any
function methods:count(count)
    if count > LIST_MAX then
        error("has more than 65535 elements", 0)
    end
    self:number(count)
end

--- Writes a list of texts: their count, then each.
-- @tparam any list an array of strings; whatever else is empty
-- @raise as `count` and `text`
-- @phases any
function methods:list(list)
    list = type(list) == "table" and list or {}
    self:count(#list)
    for i = 1, #list do
        self:text(list[i])
    end
end

--- Ends.
-- @treturn string what was written; the writer has nothing again
-- @phases any
function methods:bytes()
    return self.out:get()
end

return _M
