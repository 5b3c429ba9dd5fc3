--- An entity as the store keeps it: JSON, the same text for the same entity.
--
-- Keys are sorted and numbers exact: Debian's cjson writes 14 digits, which a plugin's large
-- integer does not survive. A table without elements is written as `{}` unless its metatable has
-- `__jsontype` "array"; to Lua and to the schemas both are the same when read. An entity's dates
-- stand last, so that they can be told from the rest without reading it (`with_dates`).
-- @module gateway.store.entity_text

local cjson = require("cjson")
local string_buffer = require("string.buffer")

local byte = string.byte
local error = error
local floor = math.floor
local format = string.format
local getmetatable = getmetatable
local gsub = string.gsub
local match = string.match
local pairs = pairs
local pcall = pcall
local sort = table.sort
local sub = string.sub
local type = type

local NULL = cjson.null
local MAX_DEPTH = 100
local MAX_KEYS = 1000
local MAX_STEPS = 10000
local DATES = { "created_at", "updated_at" }
local UNDERSCORE = 95
local BLANK, QUOTE, BACKSLASH, DELETE = byte(' "\\\127', 1, 4)
local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["\n"] = "\\n" }

local json = cjson.new()
json.decode_invalid_numbers(false)

local _M = {}

local write

local function escape(char)
    return ESCAPES[char] or format("\\u%04x", char:byte())
end

-- By the byte, as the JIT compiles that.
local function is_plain(text)
    for i = 1, #text do
        local char = byte(text, i)
        if char < BLANK or char == QUOTE or char == BACKSLASH or char == DELETE then
            return false
        end
    end
    return true
end

local function quote(text)
    if not is_plain(text) then
        text = gsub(text, '[%c"\\]', escape)
    end
    return text
end

-- Names of fields, quoted; a few dozen come again and again.
local quoted, quoted_count = {}, 0

local function quote_key(key)
    local text = quoted[key]
    if not text then
        text = '"' .. quote(key) .. '":'
        if quoted_count < MAX_KEYS then
            quoted[key] = text
            quoted_count = quoted_count + 1
        end
    end
    return text
end

local function number_text(number)
    if floor(number) == number and number > -2 ^ 53 and number < 2 ^ 53 then
        return format("%d", number)
    elseif number - number ~= 0 then
        error("not a finite number", 0)
    end
    return format("%.17g", number)
end

-- The keys of a table in their order, by the order in which `pairs` has them: each key leads to a
-- step, the last step has the sorted keys. Entities come in few orders, and each is sorted once.
-- Forgotten all at once.
local first_step, steps = { next = {} }, 0

local function add_step(step, key)
    if type(key) ~= "string" then
        error("a key that is no string", 0)
    end
    steps = steps + 1
    local added = { next = {} }
    step.next[key] = added
    return added
end

local function sort_keys(map)
    local keys = {}
    for key in pairs(map) do
        keys[#keys + 1] = key
    end
    sort(keys)
    return keys
end

local function sorted(map)
    if steps > MAX_STEPS then
        first_step, steps = { next = {} }, 0
    end
    local step = first_step
    for key in pairs(map) do
        step = step.next[key] or add_step(step, key)
    end
    local keys = step.keys
    if not keys then
        keys = sort_keys(map)
        step.keys = keys
    end
    return keys
end

local function write_list(out, list, depth)
    out:put("[")
    for i = 1, #list do
        if i > 1 then
            out:put(",")
        end
        write(out, list[i], depth)
    end
    out:put("]")
end

local function write_map(out, map, depth)
    local keys = sorted(map)
    out:put("{")
    for i = 1, #keys do
        if i > 1 then
            out:put(",")
        end
        out:put(quote_key(keys[i]))
        write(out, map[keys[i]], depth)
    end
    out:put("}")
end

-- What the configuration notes beside an entity, and what comes later.
local function is_left_out(key)
    return byte(key) == UNDERSCORE and sub(key, 1, 2) == "__" or key == DATES[1] or key == DATES[2]
end

local function write_entity(out, entity)
    local keys = sorted(entity)
    out:put("{")
    local separator = ""
    for i = 1, #keys do
        local key = keys[i]
        if not is_left_out(key) then
            out:put(separator, quote_key(key))
            write(out, entity[key], 1)
            separator = ","
        end
    end
    for i = 1, #DATES do
        local key = DATES[i]
        if entity[key] ~= nil then
            out:put(separator, quote_key(key))
            write(out, entity[key], 1)
            separator = ","
        end
    end
    out:put("}")
end

write = function(out, value, depth)
    local kind = type(value)
    if kind == "string" then
        out:put('"', quote(value), '"')
    elseif kind == "number" then
        out:put(number_text(value))
    elseif kind == "boolean" then
        out:put(value and "true" or "false")
    elseif value == NULL then
        out:put("null")
    elseif kind ~= "table" then
        error("a " .. kind, 0)
    elseif depth == MAX_DEPTH then
        error("deeper than " .. MAX_DEPTH, 0)
    else
        local meta = getmetatable(value)
        local is_list = #value > 0 or (meta and meta.__jsontype == "array")
        return (is_list and write_list or write_map)(out, value, depth + 1)
    end
end

--- Writes an entity. Names that begin with `__` at the top (what the configuration notes beside an
-- entity) are left out.
-- @tparam userdata buffer `string.buffer`, which gets the text
-- @tparam table entity checked by its schema
-- @treturn boolean|nil
-- @treturn nil|string what cannot be written
function _M.write(buffer, entity)
    local ok, err = pcall(write_entity, buffer, entity)
    return ok or nil, err
end

local own_buffer = string_buffer.new()

--- The same as a string.
-- @tparam table entity
-- @treturn string|nil
-- @treturn nil|string what cannot be written
function _M.encode(entity)
    own_buffer:reset()
    local ok, err = _M.write(own_buffer, entity)
    return ok and own_buffer:get(), err
end

--- The text of an entity that differs in its dates alone.
-- @tparam string text of `encode`; where it has no date, it gets none
-- @tparam number|nil created_at
-- @tparam number|nil updated_at
-- @treturn string
function _M.with_dates(text, created_at, updated_at)
    local dates = { created_at, updated_at }
    local tail = ""
    for i = #DATES, 1, -1 do
        local rest = match(text, '^(.*),"' .. DATES[i] .. '":[-+.%de]+}$')
        if rest and dates[i] then
            tail = format(',"%s":%s', DATES[i], number_text(dates[i])) .. tail
        end
        text = rest and rest .. "}" or text
    end
    return sub(text, 1, -2) .. tail .. "}"
end

--- The text of an entity as a file has it: without what stands there for workers alone, in fields
-- that begin with `_`: `_vaults` of gateway.config.references.
-- @tparam string text of `encode`
-- @treturn string
function _M.as_file(text)
    return (gsub(text, '^{"_vaults":{[^{}]*},', "{"))
end

--- Reads a text of `encode`, or any JSON object.
-- @tparam string text
-- @treturn table|nil
function _M.decode(text)
    local ok, entity = pcall(json.decode, text)
    return ok and type(entity) == "table" and entity or nil
end

return _M
