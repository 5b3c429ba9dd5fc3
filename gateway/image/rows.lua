--- The store's rows as records: all of them for a base, the changed ones for a delta.
--
-- What is no image's is left out: disabled services, their routes, disabled plugins. A change of
-- such a service is a change of its routes.
-- @module gateway.image.rows

local core = require("sluice.ffi.core")
local ffi = require("ffi")
local layout = require("gateway.store.layout")
local memory = require("gateway.image.memory")
local packed_rows = require("gateway.store.packed_rows")
local placeholders = require("gateway.image.placeholders")
local records = require("gateway.image.records")

local C = core.C
local cast = ffi.cast

local COLUMNS = packed_rows.COLUMNS
-- core.h: slots of a kind
local SLOTS_MAX = 2 ^ 24

local _M = {}

-- hexadecimal digit -> value
local NIBBLES = ffi.new("uint8_t[256]")
for i = 0, 15 do
    NIBBLES[("%x"):format(i):byte()] = i
    NIBBLES[("%X"):format(i):byte()] = i
end
local DASH = 45

local unsigned_chars = ffi.typeof("const uint8_t *")

-- The 16 bytes of a UUID.
local function put_id(id, text, length)
    text = cast(unsigned_chars, text)
    local at, high = 0, -1
    for i = 0, length - 1 do
        local char = text[i]
        if char ~= DASH and at < 16 then
            if high < 0 then
                high = NIBBLES[char] * 16
            else
                id[at] = high + NIBBLES[char]
                at, high = at + 1, -1
            end
        end
    end
end

--- The 16 bytes of a UUID.
-- @tparam string uuid
-- @treturn string
function _M.uuid_bytes(uuid)
    local id = ffi.new("uint8_t[16]")
    put_id(id, uuid, #uuid)
    return ffi.string(id, 16)
end

-- What is known of a kind before its rows: layout -> { kind, first, step, references }; the slot
-- of a row in an image is `first + slot * step`
local prepared = setmetatable({}, { __mode = "k" })

local function prepare(of)
    local found = prepared[of]
    if found then
        return found
    end
    found = {
        kind = records.kind_of(of),
        first = of.kind == "plugins" and placeholders.SLOTS or of.turn or 0,
        step = of.turns or 1,
        references = {},
    }
    for i, column in ipairs(packed_rows.references(of)) do
        local name = column.fields[1]
        found.references[i] = {
            column = column.column,
            kind = column.reference,
            at = COLUMNS.REFERENCES + 2 * (i - 1),
            field = records.reference(of, name),
            -- a route is not there while its service is disabled
            hides = of.kind == "routes" and name == "service",
            first = column.reference == "plugins" and placeholders.SLOTS or 0,
        }
    end
    prepared[of] = found
    return found
end

local function is_hidden(row, of)
    local packed = row:bytes(COLUMNS.PACKED)
    if packed == nil then
        error(("an entity of '%s' is not packed"):format(of.kind), 0)
    elseif records.is_disabled(packed) then
        return true
    end
    local references = prepare(of).references
    for i = 1, #references do
        local other = references[i].hides and row:bytes(references[i].at + 1)
        if other and records.is_disabled(other) then
            return true
        end
    end
    return false
end

-- A record with what all of them have.
local function add_record(reading, of, slot, generation, revision)
    local known = prepare(of)
    local record = reading.memory:add()
    record.kind, record.slot = known.kind, known.first + slot * known.step
    record.generation, record.revision = generation, revision
    return record
end

-- The body and the fields of a record. Bytes are copied.
local function fill_record(reading, of, record, text, length, packed, packed_length)
    local memory_ = reading.memory
    if records.has_body(of) then
        record.body, record.body_length = memory_:copy(text, length), length
    end
    local copy = memory_:copy(packed, packed_length)
    records.unpack(record, of, copy, memory_, reading.store)
end

-- The row as a record; a hidden one as one that is gone.
local function put_row(reading, of, row, hidden)
    local slot, generation = row:integer(COLUMNS.SLOT), row:integer(COLUMNS.GENERATION)
    local record = add_record(reading, of, slot, generation, row:integer(COLUMNS.REVISION))
    if hidden then
        record.gone = 1
        return record
    end
    record.sequence = row:integer(COLUMNS.SEQUENCE)
    record.created_at = row:integer(COLUMNS.CREATED_AT)
    put_id(record.id, row:bytes(COLUMNS.ID))
    local text, length = row:bytes(COLUMNS.TEXT)
    fill_record(reading, of, record, text, length, row:bytes(COLUMNS.PACKED))
    local references = prepare(of).references
    for i = 1, #references do
        local reference = references[i]
        if reference.field and not row:is_null(reference.at) then
            record.fields[reference.field].number = row:integer(reference.at) + reference.first
        end
    end
    return record
end

local function new_reading(uuid)
    return { memory = memory.new(), store = _M.uuid_bytes(uuid), seen = {}, placeholders = {} }
end

-- Calls fn with a fresh reading, whose memory is given back where it throws.
local function with_memory(uuid, fn, ...)
    local reading = new_reading(uuid)
    local ok, result = pcall(fn, reading, ...)
    if not ok or not result then
        reading.memory:free()
    end
    if not ok then
        error(result, 0)
    end
    return result or nil
end

local function read_all(reading, db, layouts, now)
    for _, of in ipairs(layouts) do
        if records.kind_of(of) then
            packed_rows.each(db, of, "1", function(row)
                local record = not is_hidden(row, of) and put_row(reading, of, row, false)
                if record and of.kind == "plugins" then
                    placeholders.note(reading.placeholders, record)
                end
            end)
        end
    end
    placeholders.put_all(reading.memory, reading.placeholders, now.revision)
    return reading.memory
end

--- All that stands in an image. Two microseconds a record, and its bytes.
-- @tparam table db connection, in a transaction
-- @tparam {table,...} layouts
-- @tparam table now `{ uuid =, revision = }` of the store
-- @treturn table memory with `records` and `count`, for the caller to free; throws
-- `{ refused = { err = "unbuildable" } }`
function _M.all(db, layouts, now)
    return with_memory(now.uuid, read_all, db, layouts, now)
end

-- Filling ----------------------------------------------------------------------------------------

local gathering_methods = {}
local gathering_mt = { __index = gathering_methods }

--- Gathers what stands in an image while entities are put into a store that has none
-- (gateway.store.filling), so that nobody has to read them back.
-- @tparam string uuid of the store
-- @treturn table `memory` with `records` and `count`, for the caller to free; `add`, `finish`
function _M.gather(uuid)
    local gathering = new_reading(uuid)
    -- kind -> slots of those that are disabled
    gathering.disabled = {}
    return setmetatable(gathering, gathering_mt)
end

local function note_disabled(gathering, of, slot)
    local slots = gathering.disabled[of.kind] or {}
    gathering.disabled[of.kind] = slots
    slots[slot] = true
end

local function bytes_of(text)
    if type(text) == "string" then
        return text, #text
    end
    return text:ref()
end

--- Takes an entity that was put. What it refers to has come before it.
-- @tparam table of layout of its kind
-- @tparam table change of gateway.store.change, with packed bytes
-- @tparam table place `slot`, `generation`, `sequence`, `revision`, and the slots of its
-- `references`, false where it has none
function gathering_methods:add(of, change, place)
    local known = prepare(of)
    if not known.kind then
        return
    end
    local packed, packed_length = bytes_of(change.packed)
    if records.is_disabled(packed) then
        return note_disabled(self, of, place.slot)
    end
    local references = known.references
    for i = 1, #references do
        local reference = references[i]
        local disabled = reference.hides and self.disabled[reference.kind]
        if disabled and disabled[place.references[i]] then
            return
        end
    end
    local record = add_record(self, of, place.slot, place.generation, place.revision)
    record.sequence, record.created_at = place.sequence, change.created_at or 0
    put_id(record.id, change.id, #change.id)
    local text, length = bytes_of(change.put)
    fill_record(self, of, record, text, length, packed, packed_length)
    for i = 1, #references do
        local reference, slot = references[i], place.references[i]
        if reference.field and slot then
            record.fields[reference.field].number = slot + reference.first
        end
    end
    if of.kind == "plugins" then
        placeholders.note(self.placeholders, record)
    end
end

--- Takes the placeholders of plugins. Throws as `all`.
-- @tparam number revision of the store
function gathering_methods:finish(revision)
    placeholders.put_all(self.memory, self.placeholders, revision)
end

-- Changes ----------------------------------------------------------------------------------------

-- What the view has in a slot.
local function old_record(reading, kind, slot)
    local found = C.sluice_core_by_slot(reading.view, kind, slot)
    return found.record ~= nil and found or nil
end

local function note_plugin(reading, record)
    local old = old_record(reading, record.kind, record.slot)
    placeholders.note_change(reading.plugins, record, old)
end

local function is_first(reading, kind, slot)
    local key = kind * SLOTS_MAX + slot
    local first = not reading.seen[key]
    reading.seen[key] = true
    return first
end

-- False: there are too many.
local function change_row(reading, of, row)
    local known, slot = prepare(of), row:integer(COLUMNS.SLOT)
    if not is_first(reading, known.kind, known.first + slot * known.step) then
        return true
    end
    local hidden = is_hidden(row, of)
    local record = put_row(reading, of, row, hidden)
    if of.kind == "services" then
        local was_hidden = not old_record(reading, known.kind, slot)
        if was_hidden ~= hidden then
            reading.flipped[#reading.flipped + 1] = row:string(COLUMNS.ID)
        end
    elseif of.kind == "plugins" then
        note_plugin(reading, record)
    end
    return reading.memory.count <= reading.limit
end

local function change_rows(reading, db, of, condition, value)
    local fits = true
    packed_rows.each(db, of, condition, function(row)
        fits = change_row(reading, of, row)
        return fits
    end, value)
    return fits
end

-- Routes of services that have come or gone.
local function change_routes(reading, db, of)
    for _, reference in ipairs(prepare(of).references) do
        for _, id in ipairs(reference.hides and reading.flipped or {}) do
            if not change_rows(reading, db, of, "e." .. reference.column .. " = ?", id) then
                return false
            end
        end
    end
    return true
end

local function change_gone(reading, db, by_kind, since)
    packed_rows.each_gone(db, since, function(row)
        local of = by_kind[row:string(0)]
        local kind = of and records.kind_of(of)
        local known = kind and prepare(of)
        local slot = kind and known.first + row:integer(1) * known.step
        -- Later ones have the slot already.
        if kind and is_first(reading, kind, slot) then
            local record = reading.memory:add()
            record.kind, record.slot, record.gone = kind, slot, 1
            record.generation, record.revision = row:integer(2), row:integer(3)
            if of.kind == "plugins" then
                note_plugin(reading, record)
            end
        end
        return reading.memory.count <= reading.limit
    end)
    return reading.memory.count <= reading.limit
end

local function read_changes(reading, db, layouts, change)
    local by_kind = layout.by_kind(layouts)
    reading.view, reading.limit = change.view, change.limit
    reading.plugins, reading.flipped = {}, {}
    for _, of in ipairs(layouts) do
        if records.kind_of(of) and (not change.kinds or change.kinds[of.kind]) then
            if not change_rows(reading, db, of, "e.revision > ?", change.since) then
                return false
            end
        end
    end
    if
        not change_gone(reading, db, by_kind, change.since)
        or (by_kind.routes and not change_routes(reading, db, by_kind.routes))
    then
        return false
    end
    placeholders.put_changed(
        reading.memory,
        change.view,
        reading.plugins,
        db,
        by_kind.plugins,
        change.now.revision
    )
    return reading.memory
end

--- What a view lacks: each entity once, as it is now. Costs a query a kind, and as `all` for each.
-- @tparam table db connection, in a transaction
-- @tparam {table,...} layouts
-- @tparam table change `since`: revision that the view has seen; `now`: `{ uuid =, revision = }`;
-- `view`: `sluice_core_view_t`; `limit`: entities, as far as they are one; `kinds`: kind -> true of
-- those with rows that are new, nil: any may have
-- @treturn table|nil memory with `records` and `count`, for the caller to free; nil: there are
-- more than the limit; throws as `all`
function _M.changed(db, layouts, change)
    return with_memory(change.now.uuid, read_changes, db, layouts, change)
end

return _M
