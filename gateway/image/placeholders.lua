--- Placeholders: what stands in an image for plugins that only consumers or groups have configured.
--
-- Whose configurations a request runs is known after authentication, and which plugins it may run
-- before. So a global binding without configuration stands for each plugin that some consumer has,
-- and another one for each that some group has, with a flag that says which; those of which some
-- need phases in Lua are others. They have the slots below 256; the store's slots stand behind.
-- @module gateway.image.placeholders

local bit = require("bit")
local core = require("sluice.ffi.core")
local ffi = require("ffi")
local flags = require("gateway.image.flags")
local layout = require("gateway.store.layout")
local packed_rows = require("gateway.store.packed_rows")
local records = require("gateway.image.records")

local C = core.C
local band = bit.band
local ffi_string = ffi.string

local COLUMNS = packed_rows.COLUMNS
local SLOTS = 256

-- Who may have configurations beside routes and services.
local OWNERS = {
    {
        name = "consumer",
        field = C.SLUICE_CORE_PLUGIN_CONSUMER,
        flag = flags.plugin.OF_CONSUMERS,
    },
    {
        name = "consumer_group",
        field = C.SLUICE_CORE_PLUGIN_GROUP,
        flag = flags.plugin.OF_GROUPS,
    },
}
local BY_FLAG = {}
for _, owner in ipairs(OWNERS) do
    BY_FLAG[owner.flag] = owner
end

local _M = {
    --- Slots of plugins that are placeholders'; those of the store follow.
    SLOTS = SLOTS,
}

local OF_LUA, LUA = flags.plugin.OF_LUA, flags.plugin.LUA
local OF = flags.plugin.OF_CONSUMERS + flags.plugin.OF_GROUPS

-- One text of flags, below ten, and a plugin's name.
local function key_of(flag, name)
    return flag .. name
end

local function needs_lua(flags_of_configuration)
    return flags_of_configuration >= LUA
end

-- The flags of what stands for a configuration.
local function flag_for(owner, flags_of_configuration)
    return owner.flag + (needs_lua(flags_of_configuration) and OF_LUA or 0)
end

local function read_key(key)
    return key:byte() - 48, key:sub(2)
end

-- What stands for a record: a key, nil where none has to.
local function key_of_record(record)
    local name = record.fields[C.SLUICE_CORE_PLUGIN_NAME]
    for _, owner in ipairs(record.gone == 0 and OWNERS or {}) do
        if record.fields[owner.field].number ~= core.NOBODY then
            local own = record.fields[C.SLUICE_CORE_PLUGIN_FLAGS].number
            return key_of(flag_for(owner, own), ffi_string(name.data, name.count))
        end
    end
    return nil
end

local function key_of_found(found)
    for _, owner in ipairs(OWNERS) do
        if C.sluice_core_number(found, owner.field) ~= core.NOBODY then
            local own = C.sluice_core_number(found, C.SLUICE_CORE_PLUGIN_FLAGS)
            return key_of(flag_for(owner, own), core.text(found, C.SLUICE_CORE_PLUGIN_NAME))
        end
    end
    return nil
end

local function put(memory, key, slot, revision, gone)
    local record = memory:add()
    record.kind, record.slot = C.SLUICE_CORE_PLUGIN, slot
    record.generation, record.revision = 1, revision
    record.gone = gone and 1 or 0
    for field = C.SLUICE_CORE_PLUGIN_CONSUMER, C.SLUICE_CORE_PLUGIN_SERVICE do
        record.fields[field].number = core.NOBODY
    end
    if not gone then
        local flag, name = read_key(key)
        record.fields[C.SLUICE_CORE_PLUGIN_NAME].data = memory:put(name)
        record.fields[C.SLUICE_CORE_PLUGIN_NAME].count = #name
        record.fields[C.SLUICE_CORE_PLUGIN_FLAGS].number = flag
    end
end

local function too_many()
    local message = ("more than %d plugins are configured for consumers and groups"):format(SLOTS)
    local err = { err = "unbuildable", kind = "plugins", field = "consumer", message = message }
    error({ refused = err }, 0)
end

--- Notes that a plugin's record needs a placeholder, if it does.
-- @tparam table keys of those that are needed, an array and a set
-- @tparam cdata record
function _M.note(keys, record)
    local key = key_of_record(record)
    if key and not keys[key] then
        keys[key] = true
        keys[#keys + 1] = key
    end
end

--- Puts all that were noted.
-- @tparam table memory of gateway.image.memory
-- @tparam table keys
-- @tparam number revision of the store
-- @raise `{ refused = { err = "unbuildable" } }`: there are too many
function _M.put_all(memory, keys, revision)
    if #keys > SLOTS then
        too_many()
    end
    table.sort(keys)
    for i, key in ipairs(keys) do
        put(memory, key, i - 1, revision, false)
    end
end

--- Notes which placeholders a change of a plugin may make or take away.
-- @tparam table changed key -> whether it is needed for sure
-- @tparam cdata record as it is now
-- @tparam cdata|nil old `sluice_core_found_t`, what the view has in its slot
function _M.note_change(changed, record, old)
    local key = key_of_record(record)
    if key then
        changed[key] = true
    end
    key = old and key_of_found(old)
    if key then
        changed[key] = changed[key] or false
    end
end

local function is_needed(db, of, key)
    local flag, name = read_key(key)
    local unique, owner
    for _, column in ipairs(of.columns) do
        if column.role == "unique" and #column.fields > 1 and column.fields[1] == "name" then
            unique = column.column
        elseif column.fields[1] == BY_FLAG[band(flag, OF)].name then
            owner = column.column
        end
    end
    local found = false
    local condition = ("e.%s >= ? AND e.%s < ? AND e.%s IS NOT NULL"):format(unique, unique, owner)
    packed_rows.each(db, of, condition, function(row)
        local packed = row:bytes(COLUMNS.PACKED)
        found = not records.is_disabled(packed)
            and needs_lua(records.plugin_flags(packed)) == (band(flag, OF_LUA) ~= 0)
        return not found
    end, layout.range(name))
    return found
end

-- Those that the view has: key -> slot, slot -> true
local function find(view)
    local slots = ffi.new("const uint32_t *[1]")
    local count = C.sluice_core_children(view, C.SLUICE_CORE_PLUGIN, C.SLUICE_CORE_KINDS, 0, slots)
    local by_key, taken = {}, {}
    for i = 0, count - 1 do
        local slot = slots[0][i]
        if slot >= SLOTS then
            break
        end
        local found = C.sluice_core_by_slot(view, C.SLUICE_CORE_PLUGIN, slot)
        local flag = C.sluice_core_number(found, C.SLUICE_CORE_PLUGIN_FLAGS)
        by_key[key_of(flag, core.text(found, C.SLUICE_CORE_PLUGIN_NAME))] = slot
        taken[slot] = true
    end
    return by_key, taken
end

--- Puts the placeholders that have come, and those that have gone as such.
-- @tparam table memory of gateway.image.memory
-- @tparam cdata view `sluice_core_view_t`
-- @tparam table changed of `note_change`
-- @tparam table db connection, in a transaction
-- @tparam table of layout of plugins
-- @tparam number revision of the store
-- @raise as `put_all`
function _M.put_changed(memory, view, changed, db, of, revision)
    local there, taken
    for key, is_sure in pairs(changed) do
        if not there then
            there, taken = find(view)
        end
        local wanted = is_sure or is_needed(db, of, key)
        if there[key] and not wanted then
            put(memory, key, there[key], revision, true)
        elseif wanted and not there[key] then
            local slot = 0
            while taken[slot] do
                slot = slot + 1
            end
            if slot >= SLOTS then
                too_many()
            end
            taken[slot] = true
            put(memory, key, slot, revision, false)
        end
    end
end

return _M
