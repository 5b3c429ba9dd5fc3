--- Finds a duplicate key in an object of a JSON text.
-- cjson takes the last of such keys in silence, and with it a mistake of whoever wrote the file.
-- @module gateway.config.json_keys

local cjson = require("cjson")
local equal = require("gateway.schema.equal")

local byte = string.byte
local concat = table.concat
local find = string.find
local format = string.format
local sub = string.sub

local QUOTE, BACKSLASH, COMMA = byte('"\\,', 1, 3)
local OPEN_OBJECT, CLOSE_OBJECT, OPEN_LIST, CLOSE_LIST = byte("{}[]", 1, 4)
-- Bytes between two pauses.
local STRIDE = 64 * 1024

local _M = {}

--- Where a string ends. By the byte, as the JIT compiles that.
-- @tparam string source
-- @tparam number at its first quote
-- @treturn number|nil its last one; nil: it has none
function _M.string_end(source, at)
    for _ = at, #source do
        at = at + 1
        local char = byte(source, at)
        if char == QUOTE then
            return at
        elseif char == BACKSLASH then
            at = at + 1
        end
    end
    return nil
end

local string_end = _M.string_end

local function key_at(source, first, last)
    local key = sub(source, first + 1, last - 1)
    if find(key, "\\", 1, true) then
        key = cjson.decode("[" .. sub(source, first, last) .. "]")[1]
    end
    return key
end

local function path_of(places, depth)
    local parts = {}
    for i = 1, depth do
        local place = places[i]
        if type(place) == "number" then
            parts[i] = format("[%d]", place)
        else
            parts[i] = (i > 1 and "." or "") .. place
        end
    end
    return concat(parts)
end

-- The value behind a key that ends there.
local function value_behind(source, at)
    local first = find(source, "[^ \t\r\n:]", at + 1)
    local depth, last = 0, first
    while true do
        local char = byte(source, last)
        if char == QUOTE then
            last = string_end(source, last)
        elseif char == OPEN_OBJECT or char == OPEN_LIST then
            depth = depth + 1
        elseif char == CLOSE_OBJECT or char == CLOSE_LIST then
            depth = depth - 1
        elseif depth == 0 then
            last = find(source, "[, \t\r\n%]}]", last) - 1
        end
        if depth == 0 then
            return cjson.decode("[" .. sub(source, first, last) .. "]")[1]
        end
        last = last + 1
    end
end

-- Whether the keys that begin at two places have the same value.
local function have_same(source, first, second)
    return equal(
        value_behind(source, string_end(source, first)),
        value_behind(source, string_end(source, second))
    )
end

--- Finds the first duplicate key that has another value than before.
-- About 10 ms a megabyte, as cjson.
-- @tparam string source JSON that cjson has decoded: nothing is checked again
-- @tparam function pause called now and then, may yield
-- @treturn table|nil `{ path =, key =, offset =, first = }` of the second one, such as
-- `services[0].name`; offsets of both from 1; nil when there is none
function _M.find_double(source, pause)
    -- By depth: the keys so far of an object, false for a list; and the key or the index (from 0)
    -- of what is being read.
    local keys, places = {}, {}
    local depth, at = 0, 1
    local is_key, look = false, STRIDE
    while at <= #source do
        if at > look then
            pause()
            look = at + STRIDE
        end
        local char = byte(source, at)
        if char == QUOTE then
            local last = string_end(source, at)
            if is_key then
                local key = key_at(source, at, last)
                places[depth] = key
                local first = keys[depth][key]
                if first and not have_same(source, first, at) then
                    return { path = path_of(places, depth), key = key, offset = at, first = first }
                end
                keys[depth][key] = first or at
                is_key = false
            end
            at = last
        elseif char == COMMA then
            if keys[depth] then
                is_key = true
            else
                places[depth] = places[depth] + 1
            end
        elseif char == OPEN_OBJECT then
            depth = depth + 1
            keys[depth], is_key = {}, true
        elseif char == OPEN_LIST then
            depth = depth + 1
            keys[depth], places[depth], is_key = false, 0, false
        elseif char == CLOSE_OBJECT or char == CLOSE_LIST then
            depth, is_key = depth - 1, false
        end
        at = at + 1
    end
    return nil
end

return _M
