--- The changes that the operations of one run have made so far, over what the store has: each sees
-- those before it, and in the end all are one transaction (`changes`, for gateway.writer.queue).
--
-- Reading yields. Errors are those of gateway.writer.queue.
-- @module gateway.change.draft

local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local rules = require("gateway.schema.rules")
local schema = require("gateway.schema")

local normal_id = rules.normal_id

-- Rows that are read at a time.
local PAGE = 1000

local _M = {}
local methods = {}
local mt = { __index = methods }

--- Begins with what the store has.
-- @tparam function read of gateway.writer.role
-- @treturn table
function _M.new(read)
    -- changes in the order in which they came; kind -> id -> change; kind -> name -> the last one
    -- that put it
    return setmetatable({ read = read, changes = {}, by_id = {}, by_its_name = {} }, mt)
end

local function change_of(self, kind, id)
    local of_kind = self.by_id[kind]
    return of_kind and of_kind[id]
end

-- A row as it is now: nothing where it has been changed or deleted since.
local function unchanged(self, kind, row)
    if row and not change_of(self, kind, row.id) then
        return entity_text.decode(row.text), row.revision
    end
    return nil
end

local function absent(err)
    if err and err.err ~= "not found" then
        return nil, err
    end
    return nil
end

-- The changed entity of a kind that has certain values.
local function find_changed(self, kind, matches)
    for _, change in ipairs(self.by_id[kind] and self.changes or {}) do
        if change.kind == kind and change.put and matches(change.put) then
            return change.put
        end
    end
    return nil
end

--- Whether something of a kind was changed here.
-- @tparam string kind
-- @tparam[opt] string id of an entity that is there; of any when absent
-- @treturn boolean
function methods:has(kind, id)
    if not id then
        return self.by_id[kind] ~= nil
    end
    return self:changed(kind, id) ~= nil
end

--- Whether an entity was changed or deleted here.
-- @tparam string kind
-- @tparam string id
-- @treturn boolean
function methods:knows(kind, id)
    return change_of(self, kind, id) ~= nil
end

--- An entity as it was changed here.
-- @tparam string kind
-- @tparam string id
-- @treturn table|nil
function methods:changed(kind, id)
    local change = change_of(self, kind, id)
    return change and change.put
end

--- Finds an entity by its id.
-- @tparam string kind
-- @tparam string id
-- @treturn table|nil entity, not to be changed
-- @treturn nil|number|table the revision at which it was read, nil where it comes from here; after
-- a nil the error, none where there is no such entity
function methods:by_its_id(kind, id)
    id = normal_id(id)
    local change = change_of(self, kind, id)
    if change then
        return change.put
    end
    local row, err = self.read("get", kind, id)
    if row and row.id == id then
        return unchanged(self, kind, row)
    end
    return absent(err)
end

--- Finds an entity by its name, where names of its kind are unique; else there is none.
-- @return as `by_its_id`
function methods:by_name(kind, name)
    local field = entities.get(kind).endpoint_key
    if not field then
        return nil
    end
    local last = (self.by_its_name[kind] or {})[name]
    if last and last.put and last.put[field] == name then
        return last.put
    end
    -- One that was put before it may have the name.
    local found = last
        and find_changed(self, kind, function(entity)
            return entity[field] == name
        end)
    if found then
        return found
    end
    local row, err = self.read("named", kind, name)
    if row then
        return unchanged(self, kind, row)
    end
    return absent(err)
end

--- Finds what an entity would be in the place of: the one that has its name or what else is unique,
-- or its id. Looks into the store alone.
-- @tparam string kind
-- @tparam table entity checked, its references resolved
-- @tparam string id
-- @treturn table|nil row of gateway.store.reading; after a nil the error, none where there is none
function methods:same(kind, entity, id)
    -- A given id means that entity and no other.
    local row, err =
        self.read("find", kind, entity.id and {} or entities.unique_values(kind, entity), id)
    if row then
        return row
    end
    return absent(err)
end

--- A name as entities of its kind have it: the host of a target gets its port.
-- @tparam string kind
-- @tparam string name
-- @treturn string
function _M.normal_name(kind, name)
    local definition = entities.get(kind)
    local field = schema.field(definition, definition.endpoint_key)
    local ok, normal = pcall(field.normalize or type, name)
    return field.normalize and ok and normal or name
end

--- Finds an entity by its name among those of one parent.
-- @tparam string kind
-- @tparam string name
-- @tparam string field that refers to the parent
-- @tparam string parent id
-- @return as `by_its_id`
function methods:by_parent(kind, name, field, parent)
    local name_field = entities.get(kind).endpoint_key
    local where = { [field] = parent, [name_field] = _M.normal_name(kind, name) }
    return self:by_values(kind, where)
end

--- Finds an entity by values that no two entities of its kind have together.
-- @tparam string kind
-- @tparam table where field -> value, of a reference the id
-- @return as `by_its_id`
function methods:by_values(kind, where)
    local found = find_changed(self, kind, function(entity)
        for field, value in pairs(where) do
            local has = entity[field]
            if (type(has) == "table" and has.id or has) ~= value then
                return false
            end
        end
        return true
    end)
    if found then
        return found
    end
    local rows, err = self.read("list", kind, { size = 1, where = where })
    if not rows then
        return nil, err
    end
    return unchanged(self, kind, rows[1])
end

--- All entities of a kind that refer to one.
-- @tparam string kind
-- @tparam string field
-- @tparam string id of the other
-- @treturn {table,...}|nil entities, not to be changed
-- @treturn nil|table error
function methods:all(kind, field, id)
    local found, offset = {}, nil
    repeat
        local options = { size = PAGE, offset = offset, where = { [field] = id } }
        local rows, next_offset = self.read("list", kind, options)
        if not rows then
            return nil, next_offset
        end
        for _, row in ipairs(rows) do
            found[#found + 1] = unchanged(self, kind, row)
        end
        offset = next_offset
    until not offset
    for _, change in ipairs(self.by_id[kind] and self.changes or {}) do
        local owner = change.kind == kind and change.put and change.put[field]
        if owner and owner.id == id then
            found[#found + 1] = change.put
        end
    end
    return found
end

local function enter(self, kind, id)
    local found = change_of(self, kind, id)
    if not found then
        found = { kind = kind, id = id }
        self.by_id[kind] = self.by_id[kind] or {}
        self.by_id[kind][id] = found
        self.changes[#self.changes + 1] = found
    end
    return found
end

--- Puts an entity.
-- @tparam string kind
-- @tparam table entity checked, with its id
-- @tparam number operation its place among the operations
-- @tparam[opt] number revision that it has to have in the store; 0: there is to be none
-- @treturn table the change
function methods:put(kind, entity, operation, revision)
    local is_known = change_of(self, kind, entity.id) ~= nil
    local change = enter(self, kind, entity.id)
    change.put, change.delete, change.lenient, change.operation = entity, nil, nil, operation
    local name = entity[entities.get(kind).endpoint_key]
    if name then
        self.by_its_name[kind] = self.by_its_name[kind] or {}
        self.by_its_name[kind][name] = change
    end
    if not is_known then
        change.if_revision = revision
    end
    return change
end

--- Puts an entity where there is none of its id.
-- @tparam string kind
-- @tparam table entity with its id
-- @tparam[opt] number revision: one that is there stays as it was read then
function methods:put_missing(kind, entity, revision)
    if not change_of(self, kind, entity.id) then
        local change = enter(self, kind, entity.id)
        change.put, change.lenient, change.if_revision = entity, true, revision
    end
end

local function set_deleted(change)
    change.put, change.delete, change.lenient, change.if_revision = nil, change.id, true, nil
end

-- What goes with it by cascade, as far as it was changed here.
local function drop_children(self, kind, id)
    for child, field in pairs(entities.children(kind)) do
        local cascades = schema.field(entities.get(child), field).on_delete == "cascade"
        for _, other in ipairs(cascades and self.by_id[child] and self.changes or {}) do
            local owner = other.kind == child and other.put and other.put[field]
            if owner and owner.id == id then
                set_deleted(other)
                drop_children(self, child, other.id)
            end
        end
    end
end

--- Deletes an entity, which need not be there.
-- @tparam string kind
-- @tparam string id
-- @tparam number operation its place among the operations
function methods:delete(kind, id, operation)
    local change = enter(self, kind, id)
    change.operation = operation
    set_deleted(change)
    drop_children(self, kind, id)
end

return _M
