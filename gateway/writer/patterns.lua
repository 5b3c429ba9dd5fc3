--- Sees to it that a worker can keep what it compiles: the regular expressions of all routes and
-- plugins that are live together (gateway.entities.patterns). Each transaction counts what it
-- changes, so it costs nothing for the others.
-- @module gateway.writer.patterns

local cjson = require("cjson")
local core = require("sluice.ffi.core")
local ffi = require("ffi")
local flags = require("gateway.image.flags")
local of_plugins = require("gateway.image.of_plugins")
local patterns = require("gateway.entities.patterns")

local C = core.C
local cast = ffi.cast

-- Where a record of a kind says it, and by what that number is units.
local KINDS = {
    [C.SLUICE_CORE_ROUTE] = { field = C.SLUICE_CORE_ROUTE_FLAGS, per_unit = flags.route.PATTERNS },
    [C.SLUICE_CORE_PLUGIN] = { field = C.SLUICE_CORE_PLUGIN_UNITS, per_unit = 1 },
}

local _M = {}

local function bytes_of_number(of, number)
    return math.floor(number / of.per_unit) * patterns.UNIT
end

local function bytes_in(view, kind, slot)
    local of = KINDS[kind]
    local found = C.sluice_core_by_slot(view, kind, slot)
    return found.record ~= nil and bytes_of_number(of, C.sluice_core_number(found, of.field)) or 0
end

local function count_kind(view, kind)
    local count = C.sluice_core_slots(view, kind, nil, 0)
    local slots = ffi.new("uint32_t[?]", count + 1)
    local bytes = 0
    for i = 0, C.sluice_core_slots(view, kind, slots, count) - 1 do
        bytes = bytes + bytes_in(view, kind, slots[i])
    end
    return bytes
end

--- Counts those of a view. Takes 0.1 s for 100,000 routes.
-- @tparam cdata view `sluice_core_view_t`
-- @treturn number bytes
function _M.count(view)
    local bytes = 0
    for kind in pairs(KINDS) do
        bytes = bytes + count_kind(view, kind)
    end
    return bytes
end

local function bytes_of(record)
    local of = KINDS[record.kind]
    return record.gone == 0 and bytes_of_number(of, record.fields[of.field].number) or 0
end

--- Counts those of records.
-- @tparam table memory of gateway.image.memory
-- @tparam number before bytes of what they are put on
-- @tparam[opt] cdata view what that is; nil: nothing
-- @treturn number bytes of all, then
-- @treturn cdata|nil the first record with which it is more than there may be
function _M.after(memory, before, view)
    local bytes, first = before, nil
    for i = 0, memory.count - 1 do
        local record = memory.records[i]
        if KINDS[record.kind] then
            local old = view and bytes_in(view, record.kind, record.slot) or 0
            local more = bytes_of(record) - old
            bytes = bytes + more
            if more > 0 and bytes > patterns.MOST then
                first = first or record
            end
        end
    end
    return bytes, first
end

local function text_of(value)
    return value.data ~= nil and ffi.string(value.data, value.count) or nil
end

local function uuid_of(record)
    local hex = ffi.string(record.id, 16):gsub(".", function(byte)
        return ("%02x"):format(byte:byte())
    end)
    local parts = { hex:sub(1, 8), hex:sub(9, 12), hex:sub(13, 16), hex:sub(17, 20), hex:sub(21) }
    return table.concat(parts, "-")
end

-- Which of the two has patterns.
local function field_of_route(record)
    local paths = record.fields[C.SLUICE_CORE_ROUTE_PATHS]
    local texts = cast("const sluice_core_text_t *", paths.data)
    for i = 0, paths.count - 1 do
        if texts[i].length > 0 and texts[i].data[0] == 0x7e then
            return "paths"
        end
    end
    return "headers"
end

-- kind, field, and what people know it by.
local function describe(record, of_kind_plugins)
    if record.kind == C.SLUICE_CORE_ROUTE then
        local name = text_of(record.fields[C.SLUICE_CORE_ROUTE_NAME]) or uuid_of(record)
        return "routes", field_of_route(record), ("route '%s'"):format(name)
    end
    local plugin = cjson.decode(ffi.string(record.body, record.body_length))
    local field = of_plugins.field_of_patterns(plugin, of_kind_plugins)
    return "plugins", field, ("plugin '%s' (%s)"):format(plugin.name, uuid_of(record))
end

--- Refuses what is more than there may be, unless there was as much before: a change that makes it
-- less is right.
-- @tparam number before bytes
-- @tparam number bytes
-- @tparam cdata|nil record of `after`
-- @tparam table of_kind_plugins their layout
-- @raise `{ refused = { err = "unbuildable", kind =, id =, field =, reason =, message = } }`
function _M.check(before, bytes, record, of_kind_plugins)
    if bytes <= patterns.MOST or bytes <= before or not record then
        return
    end
    local reason = patterns.too_much(bytes)
    local kind, field, name = describe(record, of_kind_plugins)
    error({
        refused = {
            err = "unbuildable",
            kind = kind,
            id = uuid_of(record),
            field = field,
            reason = reason,
            message = name .. ": " .. reason,
        },
    }, 0)
end

return _M
