--- `kong.db.schema`: schemas as objects, for plugins that check entities themselves. What is right
-- is decided by gateway.schema, as for all configurations.
--
-- A record has null for a field that is not set once `process_auto_fields` has seen it.
-- @module gateway.schema.class

local cjson = require("cjson")
local auto_fields = require("gateway.schema.auto_fields")
local equal = require("gateway.schema.equal")
local metaschema = require("gateway.schema.metaschema")
local nested = require("gateway.schema.nested")
local plans = require("gateway.schema.plan")
local rules = require("gateway.schema.rules")
local schema = require("gateway.schema")
local transformations = require("gateway.schema.transformations")

local concat = table.concat
local format = string.format
local ipairs = ipairs
local next = next
local pairs = pairs
local setmetatable = setmetatable
local type = type

local NULL = cjson.null
local REQUIRED = "required field missing"

local Schema = {}
Schema.__index = Schema

--- The types of fields.
Schema.valid_types = {}
for _, name in ipairs(metaschema.TYPES) do
    Schema.valid_types[name] = true
end

--- The rules that fields have: name -> function `(value, argument) -> true`, or nil and why not.
Schema.validators = {}
for _, name in ipairs(rules.order) do
    Schema.validators[name] = function(value, argument)
        local ok, message = rules.check[name](value, argument == nil or argument)
        if ok then
            return true
        end
        return nil, message
    end
end
Schema.validators_order = rules.order

-- name -> schema: what others refer to
local by_name = {}
-- field -> the same, as it is checked
local fields_seen = setmetatable({}, { __mode = "k" })
-- schema -> name of a subschema -> definition of both
local joined = setmetatable({}, { __mode = "k" })

-- Fields by their names, too, where the list of them is.
local function name_fields(definition, seen)
    if seen[definition] then
        return
    end
    seen[definition] = true
    for _, entry in ipairs(definition.fields) do
        local name, field = next(entry)
        definition.fields[name] = field
        if field.type == "record" and field.fields then
            name_fields(field, seen)
        end
    end
end

--- Makes a field type: calling it with attributes gives a field that has these, and its own.
-- @tparam table definition
-- @treturn table the same
function Schema.define(definition)
    return setmetatable(definition, {
        __call = function(base, field)
            field = field or {}
            for name, value in pairs(base) do
                if field[name] == nil then
                    field[name] = value
                end
            end
            return field
        end,
    })
end

--- Makes an object of a schema.
-- @tparam table definition is copied
-- @treturn table|nil
-- @treturn nil|string why not
function Schema.new(definition)
    if not definition then
        return nil, "expected a definition table"
    elseif not definition.fields then
        return nil, "error in schema definition: no 'fields' table"
    end
    local self = setmetatable(plans.adopt(plans.merged(definition, {})), Schema)
    name_fields(self, {})
    if self.cache_key then
        self.cache_key_set = {}
        for _, name in ipairs(self.cache_key) do
            self.cache_key_set[name] = true
        end
    end
    for _, field in self:each_field() do
        if field.type == "foreign" then
            field.schema = by_name[field.reference]
        end
    end
    by_name[self.name or ""] = self
    return self
end

-- The name of the subschema of an entity, which may be the first of a set.
local function key_of(self, entity)
    local key = self.subschemas and self.subschema_key and entity[self.subschema_key]
    for _, name in ipairs(type(key) == "table" and key or { key }) do
        if type(name) == "string" and self.subschemas[name] then
            return name
        end
    end
    return nil
end

local function subschema_of(self, entity)
    local key = key_of(self, entity)
    return key and self.subschemas[key]
end

-- The schema with the fields and checks of a subschema, as one definition.
local function definition_of(self, entity)
    local key = key_of(self, entity)
    if not key then
        return self
    end
    joined[self] = joined[self] or {}
    if not joined[self][key] then
        local subschema = self.subschemas[key]
        local fields, checks = {}, {}
        for i, entry in ipairs(self.fields) do
            local name, field = next(entry)
            fields[i] = { [name] = subschema.fields[name] or field }
        end
        for _, of in ipairs({ self, subschema }) do
            for _, check in ipairs(of.entity_checks or {}) do
                checks[#checks + 1] = check
            end
        end
        local shorthands = self.shorthand_fields
        local definition =
            { fields = fields, entity_checks = checks, shorthand_fields = shorthands }
        joined[self][key] = plans.adopt(definition)
    end
    return joined[self][key]
end

--- The definition of an entity's fields, those of its subschema among them: of Kong's internals,
-- for gateway.schema.auto_fields.
Schema.definition_of = definition_of

-- A map has one error, which does not say of which key.
local function to_nested(definition, errors)
    local out = {}
    nested.each(errors, function(keys, message, is_of_record)
        local short, field = {}, definition
        for _, key in ipairs(keys) do
            if field and field.type == "map" then
                is_of_record = false
                break
            end
            short[#short + 1] = key
            if field and type(key) == "number" then
                field = field.elements
            elseif field then
                field = field.fields and plans.fields(field)[key]
            end
        end
        if #short == 0 and not is_of_record and definition.type then
            out = message
        elseif type(out) == "table" then
            nested.place(out, short, message, is_of_record)
        end
    end)
    return out
end

--- Checks a value by a field.
-- @tparam table field
-- @param value null where it is not set
-- @treturn true|nil
-- @treturn nil|string|table what is wrong; of a record or a list, by what stands in it
function Schema.validate_field(_, field, value)
    fields_seen[field] = fields_seen[field] or plans.adopt(field)
    field = fields_seen[field]
    local errors = schema.check_field(field, value)
    if errors then
        return nil, to_nested(field, errors)
    end
    return true
end

-- The function `check` of a schema, which asks for an entity that is whole.
local function run_check(self, entity, errors)
    local ok, err = self.check(entity)
    if ok then
        return
    end
    for key, message in pairs(type(err) == "table" and err or { err or "entity check failed" }) do
        if type(key) == "number" then
            nested.place(errors, {}, message, true)
        else
            errors[key] = message
        end
    end
end

--- Checks an entity; it stays as it is, and nothing is filled in.
-- @tparam table entity
-- @tparam[opt=true] boolean full_check required fields have to be there
-- @tparam[opt] table original_input what a client gave
-- @tparam[opt] table stored the entity that is changed
-- @treturn true|nil
-- @treturn nil|table messages by field; `@entity`: a list of those about the whole
function Schema:validate(entity, full_check, original_input, stored)
    local key = self.subschema_key
    if key and (entity[key] == nil or entity[key] == NULL) then
        return nil, { [key] = REQUIRED }
    elseif key and not subschema_of(self, entity) then
        local name = type(entity[key]) == "table" and entity[key][1] or entity[key]
        return nil, { [key] = format(self.subschema_error or "unknown type: %s", tostring(name)) }
    end
    local judged = {}
    for name, value in pairs(entity) do
        if name ~= "updated_at" and not (name == "ttl" and self.ttl) then
            judged[name] = value
        end
    end
    local definition = definition_of(self, entity)
    local found = schema.check(definition, judged, full_check == false)
    local errors = found and to_nested(definition, found) or {}
    for _, message in ipairs(transformations.check(self, entity, original_input, stored)) do
        nested.place(errors, {}, message, true)
    end
    if self.check and full_check ~= false and not next(errors) then
        run_check(self, entity, errors)
    end
    if next(errors) then
        return nil, errors
    end
    return true
end

--- Checks an entity that is new, or replaces another: `validate` of a whole one.
function Schema:validate_insert(entity, original_input)
    return self:validate(entity, true, original_input)
end

Schema.validate_upsert = Schema.validate_insert

--- Checks a part of an entity, which is to be changed.
function Schema:validate_update(entity, original_input, stored)
    local ok, errors = self:validate(entity, false, original_input, stored)
    for i, message in ipairs(errors and errors["@entity"] or {}) do
        if message:find("^at least one of") then
            errors["@entity"][i] = "when updating, " .. message
        end
    end
    return ok, errors
end

--- Checks that a table has the fields of the primary key.
-- @tparam table key
-- @tparam[opt] boolean ignore_others it may have others
-- @treturn true|nil
-- @treturn nil|table messages by field
function Schema:validate_primary_key(key, ignore_others)
    local errors, known = {}, {}
    if type(key) ~= "table" then
        return nil, "missing primary key"
    end
    for _, name in ipairs(self.primary_key) do
        local field, value = self.fields[name], key[name]
        known[name] = true
        if not value then
            errors[name] = "missing primary key"
        elseif (field.required or field.auto) and value == NULL then
            errors[name] = REQUIRED
        else
            errors[name] = select(2, self:validate_field(field, value))
        end
    end
    for name in pairs(ignore_others and {} or key) do
        errors[name] = not known[name] and "not a primary key" or errors[name]
    end
    if next(errors) then
        return nil, errors
    end
    return true
end

-- Whether lists have the same, in whatever order.
local function same_items(a, b)
    if type(a) ~= "table" or type(b) ~= "table" or #a == 0 or #a ~= #b then
        return equal(a, b)
    end
    local left = { unpack(b) }
    for _, item in ipairs(a) do
        local at
        for i, other in ipairs(left) do
            at = at or (equal(item, other) and i)
        end
        if not at then
            return false
        end
        table.remove(left, at)
    end
    return true
end

--- Checks that fields which may not change do not.
-- @tparam table input
-- @tparam table entity that is stored
-- @treturn true|nil
-- @treturn table messages by field
function Schema:validate_immutable_fields(input, entity)
    local errors = {}
    for name, field in self:each_field(input) do
        local is_known = field.immutable and entity[name] ~= nil
        if is_known and not same_items(input[name], entity[name]) then
            errors[name] = "immutable field cannot be updated"
        end
    end
    if next(errors) then
        return nil, errors
    end
    return true, errors
end

--- Fills in what an entity does not say, as each operation of the database needs it.
-- @function process_auto_fields
-- @see gateway.schema.auto_fields
Schema.process_auto_fields = auto_fields.process

--- Iterates over the fields.
-- @tparam[opt] table entity whose subschema counts
-- @treturn function of a loop: name, field
function Schema:each_field(entity)
    local i, subschema = 0, entity and subschema_of(self, entity)
    return function()
        i = i + 1
        local entry = self.fields[i]
        if not entry then
            return nil
        end
        local name, field = next(entry)
        return name, subschema and subschema.fields[name] or field
    end
end

--- Errors as one text.
-- @tparam table errors of `validate`
-- @treturn string|nil nil where there are none
function Schema:errors_to_string(errors)
    if type(errors) ~= "table" or not next(errors) then
        return nil
    end
    local lines = {}
    for _, message in ipairs(errors["@entity"] or {}) do
        lines[#lines + 1] = message
    end
    for _, message in ipairs(errors) do
        lines[#lines + 1] = message
    end
    for _, name in ipairs(schema.sorted_keys(errors)) do
        local message = errors[name]
        if type(name) == "string" and name ~= "@entity" then
            message = type(message) == "table" and self:errors_to_string(message) or message
            lines[#lines + 1] = name .. ": " .. tostring(message)
        end
    end
    return "Validation error: " .. concat(lines, "; ")
end

--- The fields of the primary key of an entity.
function Schema:extract_pk_values(entity)
    local out = {}
    for _, name in ipairs(self.primary_key) do
        out[name] = entity[name]
    end
    return out
end

--- Two entities into one: records field by field, lists not.
-- @tparam table top wins
-- @tparam table|nil bottom
-- @treturn table
function Schema:merge_values(top, bottom)
    local out = {}
    bottom = bottom ~= NULL and bottom or {}
    for _, from in ipairs({ bottom, top }) do
        for name, value in pairs(from) do
            out[name] = value
        end
    end
    for name, field in self:each_field(bottom) do
        if top[name] == nil then
            out[name] = bottom[name]
        elseif field.type == "record" and not field.abstract and type(top[name]) == "table" then
            out[name] = Schema.merge_values(
                setmetatable({}, {
                    __index = function(_, key)
                        return key == "fields" and field.fields or Schema[key]
                    end,
                }),
                top[name],
                bottom[name]
            )
        end
    end
    return out
end

--- Whether an entity has transformations.
function Schema:has_transformations(entity)
    local subschema = subschema_of(self, entity)
    return self.transformations ~= nil or (subschema ~= nil and subschema.transformations ~= nil)
end

--- Runs the transformations of an entity.
-- @tparam table entity
-- @tparam[opt] table original_input what a client gave
-- @tparam string context "insert", "update", "upsert" or "select"
-- @treturn table|nil
-- @treturn nil|string
function Schema:transform(entity, original_input, context)
    local out = entity
    for _, of in ipairs({ self, subschema_of(self, entity) }) do
        local err
        out, err = transformations.apply(of, out, original_input, context)
        if not out then
            return nil, err
        end
    end
    return out
end

--- Adds a schema for the entities whose `subschema_key` has a name.
-- @tparam string key
-- @tparam table definition
-- @treturn true|nil
-- @treturn nil|string why not
function Schema:new_subschema(key, definition)
    local words = "error in definition of '%s': %s"
    if not self.subschema_key then
        local why = "entities of type '%s' cannot have subschemas"
        return nil, words:format(key, why:format(self.name))
    end
    local subschema, err = Schema.new(definition)
    if not subschema then
        return nil, err
    end
    for name, field in subschema:each_field() do
        local parent = self.fields[name]
        if not parent then
            return nil, words:format(key, name .. ": cannot create a new field")
        elseif
            parent.type ~= field.type and not (parent.type == "record" and field.type == "json")
        then
            return nil, words:format(key, name .. ": cannot change type in a specialized field")
        end
    end
    for name, field in self:each_field() do
        if field.abstract and field.required and not subschema.fields[name] then
            return nil, words:format(key, name .. ": abstract field was not specialized")
        end
    end
    self.subschemas = self.subschemas or {}
    self.subschemas[key] = subschema
    joined[self] = nil
    return true
end

return Schema
