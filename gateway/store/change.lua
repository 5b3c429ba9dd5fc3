--- A change of an entity as the store takes it: its text, and what stands beside it in the row.
--
-- What is to be put comes as a text, as an entity, or complete: with all that the row has, so that
-- the store has nothing to decode or write.
-- @module gateway.store.change

local entity_text = require("gateway.store.entity_text")
local layout = require("gateway.store.layout")
local secrets = require("gateway.schema.secrets")
local string_buffer = require("string.buffer")

local _M = {}

local text_buffer, packed_buffer = string_buffer.new(), string_buffer.new()

local function number_or_nil(value)
    return type(value) == "number" and value or nil
end

local function invalid(of, field, value, message)
    return { err = "invalid", kind = of.kind, field = field, value = value, message = message }
end

-- Fills a change with what the row has beside the text; what is packed goes into `packed_buffer`.
local function fill(found, of, entity, text, packing)
    if type(entity.id) ~= "string" then
        return nil, invalid(of, "id", "")
    end
    local values, columns = found.values, of.columns
    for i = 1, #columns do
        local column = columns[i]
        local field = column.fields[1]
        local value = layout.value(column, entity)
        if column.role == "foreign" and not value and type(entity[field]) == "table" then
            return nil, invalid(of, field, "")
        end
        values[i] = value
    end
    local is_packed = false
    if packing then
        packed_buffer:reset()
        local err
        is_packed, err = packing.write(packed_buffer, of, entity, #text)
        if err then
            return nil, err
        end
    end
    found.kind, found.put, found.id = of.kind, text, entity.id
    found.tags = type(entity.tags) == "table" and entity.tags or nil
    found.created_at = number_or_nil(entity.created_at)
    found.updated_at = number_or_nil(entity.updated_at)
    found.undated = entity.__undated
    found.packed = is_packed and packed_buffer or nil
    return found
end

local function unwritable(of, entity, reason)
    return nil, invalid(of, "id", tostring(entity.id), reason)
end

--- A change with all that its row has, as plain data, without the entity itself: of 100,000 they
-- would be the collector's work.
-- @tparam table change `{ kind =, put =, sequence =, if_revision =, lenient = }`; of an entity,
-- `__undated` says which of its dates nobody gave: `{ created_at = boolean, updated_at = boolean }`
-- @tparam table of layout of its kind
-- @tparam[opt] table packing of gateway.store.database
-- @treturn table|nil the change itself where it is complete
-- @treturn nil|table the error of a change that cannot be made
function _M.complete(change, of, packing)
    local entity, text = change.put, change.put
    if change.values then
        return change
    elseif type(entity) == "table" then
        local reason
        text, reason = entity_text.encode(entity)
        if not text then
            return unwritable(of, entity, reason)
        end
    else
        entity = type(text) == "string" and entity_text.decode(text)
        if not entity then
            return nil, invalid(of, "id", "")
        end
    end
    local found, err = fill({ values = {} }, of, entity, text, packing)
    if not found then
        return nil, err
    end
    found.sequence, found.if_revision = change.sequence, change.if_revision
    found.lenient = change.lenient
    found.packed = found.packed and found.packed:tostring()
    return found
end

-- The change that `brief` gives, again and again.
local shared = { values = {} }

--- The same, good until the next call: text and packed bytes of an entity are buffers. To make
-- strings of them takes longer than to write them.
function _M.brief(change, of, packing)
    local entity = change.put
    if change.values or type(entity) ~= "table" then
        return _M.complete(change, of, packing)
    end
    text_buffer:reset()
    local ok, reason = entity_text.write(text_buffer, entity)
    if not ok then
        return unwritable(of, entity, reason)
    end
    shared.sequence = change.sequence
    return fill(shared, of, entity, text_buffer, packing)
end

local function value_of(column, entity)
    if column.is_secret then
        return secrets.HIDDEN
    elseif #column.fields == 1 then
        return layout.value(column, entity)
    end
    local texts = {}
    for i, name in ipairs(column.fields) do
        local value = entity[name]
        texts[i] = tostring(type(value) == "table" and value.id or value or "null")
    end
    return table.concat(texts, ", ")
end

--- The error of a change whose value another entity has.
-- @tparam table of layout of its kind
-- @tparam table column of the layout
-- @tparam string text of the entity
-- @treturn table
function _M.violation(of, column, text)
    local entity = entity_text.decode(text)
    return {
        err = "unique violation",
        kind = of.kind,
        id = entity.id,
        field = table.concat(column.fields, ", "),
        value = value_of(column, entity),
    }
end

return _M
