--- Raises the generations of what a change can have made wrong in `kong.cache`
-- (module/core/image/generations.h): before it is published, so that who sees the change sees the
-- new generation; and again before it is answered, since in between somebody may have kept what was
-- there before under the new one.
--
-- Which keys those are is read of the records: as they were, and as they are now. Nothing is read
-- where no worker keeps anything.
-- @module gateway.writer.raising

local cache_key = require("gateway.entities.cache_key")
local core = require("sluice.ffi.core")
local entity_text = require("gateway.store.entity_text")
local ffi = require("ffi")
local packed_rows = require("gateway.store.packed_rows")
local records = require("gateway.image.records")

local C = core.C

-- Changed entities that are read; beyond, all that is kept is raised.
local MAX_RECORDS = 500

local _M = {}
local methods = {}
local mt = { __index = methods }

--- Begins with nothing to raise.
-- @tparam[opt] number address of `sluice_core_generations_t`; nil: nobody keeps anything
-- @treturn table
function _M.new(address)
    local all = address and ffi.cast("uintptr_t", address)
    return setmetatable({
        all = all and ffi.cast("sluice_core_generations_t *", all),
        places = {},
        is_all = false,
        was_read = false,
    }, mt)
end

local function add(self, of, text)
    local ok, entity = pcall(entity_text.decode, text)
    if not ok then
        self.is_all = true
        return
    end
    for _, key in ipairs(cache_key.all(of, entity)) do
        self.places[C.sluice_core_generations_place(key, #key)] = true
    end
end

-- Kinds of a number: credentials share one, as they share their slots.
local function kinds_of(layouts)
    local of_number = {}
    for _, of in ipairs(layouts) do
        local number = records.kind_of(of)
        if number then
            local kinds = of_number[number] or {}
            of_number[number] = kinds
            kinds[#kinds + 1] = of
        end
    end
    return of_number
end

local function add_record(self, kinds, view, record)
    local old = C.sluice_core_by_slot(view, record.kind, record.slot)
    local before = old.record ~= nil and core.body(old)
    local now = record.body ~= nil and ffi.string(record.body, record.body_length)
    for _, of in ipairs(kinds) do
        if before then
            add(self, of, before)
        end
        if now then
            add(self, of, now)
        end
    end
end

-- Whether anything has come, changed or gone of kinds that no image has.
local function has_others(db, layouts, since, kinds)
    local others = {}
    for _, of in ipairs(layouts) do
        if not records.kind_of(of) and not of.is_internal then
            others[of.kind] = true
            local sql = ("SELECT 1 FROM e_%s WHERE revision > ? LIMIT 1"):format(of.kind)
            if (not kinds or kinds[of.kind]) and db:row(sql, since) then
                return true
            end
        end
    end
    local is_gone = false
    packed_rows.each_gone(db, since, function(row)
        is_gone = is_gone or others[row:string(0)] == true
        return not is_gone
    end)
    return is_gone
end

--- Whether there is any use in reading changes.
-- @treturn boolean
function methods:is_wanted()
    return self.all ~= nil and C.sluice_core_generations_are_used(self.all) ~= 0
end

--- Notes the keys of changed entities. Costs some microseconds for each, 500 at most.
-- @tparam table db connection, in the transaction of the change
-- @tparam {table,...} layouts
-- @tparam cdata view `sluice_core_view_t` of what is live
-- @tparam table change `memory` of gateway.image.rows: what changes; `kinds` as for its `changed`
function methods:note(db, layouts, view, change)
    local memory, since = change.memory, tonumber(view.revision)
    self.was_read = true
    if memory.count > MAX_RECORDS or has_others(db, layouts, since, change.kinds) then
        self.is_all = true
        return
    end
    local of_number = kinds_of(layouts)
    for i = 0, memory.count - 1 do
        local record = memory.records[i]
        add_record(self, of_number[record.kind] or {}, view, record)
    end
end

--- Notes that any key may be wrong.
function methods:note_all()
    self.was_read, self.is_all = true, true
end

--- Raises what is noted.
function methods:raise()
    if not self.all then
        return
    elseif self.is_all or (not self.was_read and self:is_wanted()) then
        C.sluice_core_generations_raise_all(self.all)
        return
    end
    for place in pairs(self.places) do
        C.sluice_core_generations_raise(self.all, place)
    end
end

return _M
