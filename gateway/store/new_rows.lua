--- Rows of entities that are new: each takes a slot and a place among its kind.
--
-- What is counted on is read once and written once, so a `begin` and its `finish` stand in one
-- transaction, with nobody else who counts.
-- @module gateway.store.new_rows

local tables = require("gateway.store.tables")

-- Columns before those of the layout.
local OWN = 9
local OWN_COLUMNS = "sequence, id, slot, generation, revision, created_at, updated_at, text, packed"

local _M = {}
local methods = {}
local mt = { __index = methods }

-- layout -> statement
local written = setmetatable({}, { __mode = "k" })

local function statement(of)
    local sql = written[of]
    if not sql then
        local names = {}
        for i, column in ipairs(of.columns) do
            names[i] = ", " .. column.column
        end
        local places = ("?, "):rep(OWN - 1 + #names) .. "?"
        sql = string.format(
            "INSERT INTO e_%s (%s%s) VALUES (%s)",
            of.kind,
            OWN_COLUMNS,
            table.concat(names),
            places
        )
        written[of] = sql
    end
    return sql
end

--- Begins; what is counted on is read where a row wants it.
-- @tparam table db connection, in a transaction
-- @treturn table with the verbs below; they throw what gateway.store.sqlite does
function _M.begin(db)
    return setmetatable({
        db = db,
        -- the last that is taken
        sequence = nil,
        next_slots = {},
        free = {},
        -- Values of a row, one after the other.
        row = {},
        packed = {},
    }, mt)
end

--- Writes what was counted.
function methods:finish()
    local db = self.db
    if self.sequence then
        db:run("UPDATE meta SET sequence = ? WHERE sequence <> ?", self.sequence, self.sequence)
    end
    for space, slot in pairs(self.next_slots) do
        db:run("UPDATE space SET next_slot = ? WHERE name = ?", slot, space)
    end
end

local function take_free_slot(self, space)
    if self.free[space] == false then
        return nil
    end
    local sql = "SELECT slot, generation FROM free_slot WHERE space = ? ORDER BY slot LIMIT 1"
    local free = self.db:row(sql, space)
    self.free[space] = free ~= nil
    if free then
        self.db:run("DELETE FROM free_slot WHERE space = ? AND slot = ?", space, free[1])
    end
    return free
end

local function take_slot(self, space)
    local free = take_free_slot(self, space)
    if free then
        return free[1], free[2] + 1
    end
    local slot = self.next_slots[space]
    if not slot then
        slot = self.db:row("SELECT next_slot FROM space WHERE name = ?", space)[1]
    end
    self.next_slots[space] = slot + 1
    return slot, 1
end

--- A place among equals: the given one, or behind all others.
-- @tparam number|nil given
-- @treturn number
function methods:take_sequence(given)
    local last = self.sequence or self.db:row("SELECT sequence FROM meta")[1]
    local sequence = given or last + 1
    self.sequence = sequence > last and sequence or last
    return sequence
end

--- Adds an entity.
-- @tparam table of layout of its kind
-- @tparam table change of gateway.store.change, with its `sequence` where that is given
-- @tparam number revision
-- @treturn number its slot
-- @treturn number the slot's generation
-- @treturn number its sequence
function methods:insert(of, change, revision)
    local slot, generation = take_slot(self, of.space)
    local sequence = self:take_sequence(change.sequence)
    local row, packed = self.row, nil
    if change.packed then
        packed = self.packed
        packed.bytes = change.packed
    end
    row[1], row[2], row[3], row[4], row[5] = sequence, change.id, slot, generation, revision
    row[6], row[7], row[8], row[9] = change.created_at, change.updated_at, change.put, packed
    local values, count = change.values, #of.columns
    for i = 1, count do
        row[OWN + i] = values[i]
    end
    self.db:run_with(statement(of), row, OWN + count)
    if change.tags and of.has_tags then
        tables.add_tags(self.db, of.kind, sequence, change.tags)
    end
    return slot, generation, sequence
end

return _M
