--- What an entity does not say, filled in as each operation of Kong's database needs it: defaults,
-- ids, times, null for all that is not set, and the other way round what is read.
-- @module gateway.schema.auto_fields

local cjson = require("cjson")
local context = require("gateway.schema.context")
local plans = require("gateway.schema.plan")
local schema = require("gateway.schema")
local shorthands = require("gateway.schema.shorthands")
local types = require("gateway.schema.types")

local floor = math.floor
local ipairs = ipairs
local next = next
local pairs = pairs
local type = type

local NULL = cjson.null
local REFERENCE = "^{vault://.*}$"

local _M = {}

local fill_record, fill

local function copy(value)
    if type(value) ~= "table" then
        return value
    end
    local out = {}
    for key, item in pairs(value) do
        out[key] = copy(item)
    end
    return setmetatable(out, getmetatable(value))
end

-- A field that is not there.
local function absent(field, value, state)
    if field.default ~= nil and not state.no_defaults then
        return copy(field.default)
    elseif field.nilable then
        return value
    elseif field.required ~= true then
        return NULL
    elseif field.type == "record" and field.fields and not field.abstract then
        return fill_record(field, {}, { context = "insert" })
    end
    return nil -- which is found wrong later
end

-- A set has each value once.
local function without_twins(list)
    local out, seen = {}, {}
    for _, item in ipairs(list) do
        if not seen[item] then
            seen[item] = true
            out[#out + 1] = item
        end
    end
    return out
end

fill = function(field, value, state)
    if state.is_select and value == NULL and field.required == true then
        return absent(field, value, state)
    elseif field.abstract then
        return value
    end
    if field.type == "record" then
        local goes_in = value ~= NULL and (value ~= nil or field.required == true)
        if state.context == "update" then
            goes_in = value ~= NULL and value ~= nil
        end
        if goes_in then
            value = value or absent(field, value, state)
            return type(value) == "table" and fill_record(field, value, state) or value
        end
    elseif type(value) == "table" then
        local items = field.elements or (field.type == "map" and field.values)
        local is_set = field.type == "set" and types.has(value, "set")
        value = is_set and without_twins(value) or value
        for key, item in pairs(items and value or {}) do
            value[key] = fill(items, item, state)
        end
    end
    if value == nil and state.context ~= "update" then
        return absent(field, value, state)
    end
    return value
end

-- Ids, texts and times that nobody gives.
local function automatic(name, field, value, state)
    local is_new = state.context == "insert" or state.context == "upsert"
    if field.uuid or field.type == "string" then
        if is_new and value == nil then
            return state.drawn(field.uuid)
        end
        return value
    end
    local is_created = name == "created_at" and is_new and (value == nil or value == NULL)
    local is_updated = name == "updated_at" and (is_new or state.context == "update")
    if is_created or is_updated then
        local now = state.now()
        return field.type == "integer" and floor(now) or now
    end
    return value
end

-- What is read of a field.
local function shown(field, value, state)
    if value == NULL and not state.nulls then
        return nil
    elseif field.type == "integer" and type(value) == "number" then
        return floor(value)
    end
    local is_reference = type(value) == "string" and value:find(REFERENCE)
    if field.referenceable and is_reference and not state.nulls then
        return state.looked_up(value)
    elseif type(value) == "table" and not state.nulls and field.type ~= "record" then
        local items = field.elements or (field.type == "map" and field.values)
        for key, item in pairs(items and items.referenceable and value or {}) do
            value[key] = shown(items, item, state)
        end
    end
    return value
end

local function lent()
    return {
        enter = function(ctx, key, field, value)
            local errors = schema.check_field(field, value)
            for _, err in ipairs(errors or {}) do
                context.fail(ctx, err.message, key, unpack(err.keys))
            end
            return value
        end,
        run = function(fn, ...)
            return fn(...)
        end,
    }
end

-- Replaces shorthands; errors by name where there are any.
local function expand(definition, record)
    local ctx = context.take("")
    local out = shorthands.expand(ctx, definition, record, lent())
    context.give_back(ctx)
    if #ctx.errors == 0 then
        return out
    end
    local errors = {}
    for _, err in ipairs(ctx.errors) do
        errors[err.keys[1]] = err.message
    end
    return nil, errors
end

local function show_former(definition, record, state)
    for _, entry in ipairs(not state.hide_shorthands and definition.shorthand_fields or {}) do
        local name, field = next(entry)
        local instead = plans.instead_of(field)
        if instead then
            record[name] = plans.former_value(instead[1], record)
        end
    end
end

-- Leaves out what no field is.
local function drop_unknown(definition, record, state)
    local known = plans.fields(definition)
    for name in pairs(record) do
        local is_kept = known[name] or (name == "ttl" and definition.ttl)
        if not is_kept and not (name == "ws_id" and state.show_ws_id) then
            record[name] = nil
        end
    end
end

fill_record = function(definition, record, state)
    if definition.shorthand_fields and not state.is_select then
        local out, errors = expand(definition, record)
        if not out then
            return nil, errors
        end
        record = out
    end
    local is_fixed = false
    for _, entry in ipairs(definition.fields) do
        local name, field = next(entry)
        local value = record[name]
        if field.auto and not state.is_select then
            value = automatic(name, field, value, state)
        end
        local err
        value, err = fill(field, value, state)
        if err then
            return nil, err
        elseif state.is_select then
            value = shown(field, value, state)
        elseif state.context == "update" and field.immutable then
            is_fixed = true
        end
        record[name] = value
    end
    if state.is_select then
        show_former(definition, record, state)
        drop_unknown(definition, record, state)
        return record
    end
    return record, nil, is_fixed
end

--- Fills in what an entity does not say.
-- @tparam table self of gateway.schema.class
-- @tparam table data entity; is changed where it is read ("select"), copied where it is written
-- @tparam string operation "insert", "update", "upsert" or "select"
-- @tparam[opt] boolean nulls what is read has null for what is not set, and references to vaults
-- @tparam[opt] table options `no_defaults`, `hide_shorthands`, `show_ws_id`
-- @treturn table|nil
-- @treturn nil|table messages by field: a shorthand is wrong
-- @treturn boolean|nil of an update: whether the schema has fields that may not change
function _M.process(self, data, operation, nulls, options)
    options = options or {}
    local kong = rawget(_G, "kong")
    local state = {
        context = operation,
        is_select = operation == "select",
        nulls = nulls,
        no_defaults = options.no_defaults,
        hide_shorthands = options.hide_shorthands,
        show_ws_id = options.show_ws_id,
        now = function()
            return ngx and ngx.now and ngx.now() or os.time()
        end,
        drawn = function(is_uuid)
            return is_uuid and require("kong.tools.uuid").uuid()
                or require("kong.tools.rand").random_string()
        end,
        looked_up = function(reference)
            return kong and kong.vault and kong.vault.get(reference) or ""
        end,
    }
    data = state.is_select and data or copy(data)
    return fill_record(self.definition_of and self:definition_of(data) or self, data, state)
end

return _M
