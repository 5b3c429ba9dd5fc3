--- What images find plugins' entities by, as packed bytes: their values, in the order of the
-- layout's `look_ups`. Their digests are made where an image is: a copy of the store has its own.
-- @module gateway.image.look_ups

local ffi = require("ffi")
local layout = require("gateway.store.layout")

local cast = ffi.cast

local NONE = 0xffffffff
-- core.h
local DIGEST_BYTES = 32

local NOTHING = {}

local words = ffi.typeof("const uint32_t *")
local texts = ffi.typeof("sluice_core_text_t *")

local _M = {}

--- Writes the values of an entity.
-- @tparam table out of sluice.ffi.packed
-- @tparam table of layout of its kind
-- @tparam table entity
-- @raise a value is too long
function _M.write(out, of, entity)
    local look_ups = of.look_ups or NOTHING
    out:count(#look_ups)
    for i = 1, #look_ups do
        out:text(layout.key(look_ups[i], entity))
    end
end

--- Which bytes `write` makes of a kind.
-- @tparam table of layout
-- @treturn string|nil nil: images have no look-ups of it
function _M.version(of)
    if not of.look_ups then
        return nil
    end
    local names = { " " .. of.number }
    for i, look_up in ipairs(of.look_ups) do
        names[i + 1] = look_up.name
    end
    return table.concat(names, "/")
end

--- Reads the values into a field of a record, as digests.
-- @tparam cdata value `sluice_core_value_t`
-- @tparam cdata at `const char *`
-- @tparam table memory of gateway.image.memory
-- @tparam table of layout of its kind
-- @tparam function digest `(name of a look-up, value)`, 32 bytes
-- @treturn cdata what follows
function _M.read(value, at, memory, of, digest)
    local count, used = cast(words, at)[0], 0
    at = at + 4
    if count == 0 then
        return at
    end
    local list = cast(texts, memory:take(count * ffi.sizeof("sluice_core_text_t")))
    for i = 1, count do
        local length = cast(words, at)[0]
        at = at + 4
        if length ~= NONE then
            local key = digest(of.look_ups[i].name, ffi.string(at, length))
            list[used].data, list[used].length = memory:put(key), DIGEST_BYTES
            used, at = used + 1, at + length
        end
    end
    if used > 0 then
        value.data, value.count = list, used
    end
    return at
end

return _M
