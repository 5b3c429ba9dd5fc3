--- Entities of the C core from Lua tables; sluice.core, or another, has declared its types.

local ffi = require("ffi")

local _M = {}

--- Points a text at a Lua string, which has to live as long as the text is used.
local function set_text(text, value, anchors)
    anchors[#anchors + 1] = value
    text.data = value
    text.length = #value
end

local function texts_of(list, anchors)
    local texts = ffi.new("sluice_core_text_t[?]", math.max(#list, 1))
    anchors[#anchors + 1] = texts
    for i, value in ipairs(list) do
        set_text(texts[i - 1], value, anchors)
    end
    return texts
end

local function set_headers(value, map, anchors)
    local names = {}
    for name in pairs(map) do
        names[#names + 1] = name
    end
    table.sort(names)
    local headers = ffi.new("sluice_core_header_t[?]", math.max(#names, 1))
    anchors[#anchors + 1] = headers
    for i, name in ipairs(names) do
        set_text(headers[i - 1].name, name, anchors)
        headers[i - 1].values = texts_of(map[name], anchors)
        headers[i - 1].count = #map[name]
    end
    value.data = headers
    value.count = #names
end

--- @tparam any given a number, a string, an array of strings, or headers by name
local function set_field(value, given, anchors)
    if type(given) == "number" then
        value.number = given
    elseif type(given) == "string" then
        anchors[#anchors + 1] = given
        value.data = ffi.cast("const char *", given)
        value.count = #given
    elseif type(given) == "table" and type(next(given)) == "string" then
        set_headers(value, given, anchors)
    elseif type(given) == "table" and #given > 0 then
        value.data = texts_of(given, anchors)
        value.count = #given
    end
end

--- Entities as the builder takes them.
-- @tparam table list of `{ kind =, slot =, generation =, revision =, created_at =,
--   sequence =, id =, gone =, [0] = field, [1] = field ... }`
-- @treturn cdata array
-- @treturn table what has to live as long as the array is used
function _M.entities(list)
    local anchors = {}
    local array = ffi.new("sluice_core_entity_t[?]", math.max(#list, 1))
    for i, given in ipairs(list) do
        local entity = array[i - 1]
        entity.kind, entity.slot = given.kind, given.slot
        entity.generation, entity.revision = given.generation or 0, given.revision or 1
        entity.created_at, entity.sequence = given.created_at or 0, given.sequence or i
        entity.gone = given.gone and 1 or 0
        ffi.copy(entity.id, given.id or "", math.min(#(given.id or ""), 16))
        for field = 0, 8 do
            set_field(entity.fields[field], given[field], anchors)
        end
    end
    return array, anchors
end

return _M
