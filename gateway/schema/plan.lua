--- What is looked up in a schema, found once: rules with their arguments, fields by name and in
-- order.
-- @module gateway.schema.plan

local cjson = require("cjson")
local equal = require("gateway.schema.equal")
local rules = require("gateway.schema.rules")

local NULL = cjson.null

local _M = {}

-- definition -> plan
local plans = setmetatable({}, { __mode = "k" })
-- Definitions of plugins written for Kong -> true.
local adopted = setmetatable({}, { __mode = "k" })
-- dotted name -> its parts; the names stand in schemas
local parts = {}
local NESTED = { "elements", "keys", "values" }

--- Two tables into a new one; where both say something, `over` wins.
-- @tparam table under
-- @tparam table over
-- @tparam[opt] boolean is_aware a null of `over` says nothing
-- @tparam[opt] number depth of tables that are merged, beyond which one replaces the other
-- @treturn table
function _M.merged(under, over, is_aware, depth)
    local out = {}
    for key, value in pairs(under) do
        out[key] = value
    end
    for key, value in pairs(over) do
        local is_inner = depth ~= 1 and type(value) == "table" and type(out[key]) == "table"
        if is_inner then
            out[key] = _M.merged(out[key], value, is_aware, depth and depth - 1)
        elseif not is_aware or value ~= NULL or out[key] == nil then
            out[key] = value
        end
    end
    return out
end

--- What a field is where nobody has given it, before that is checked: its own to change.
-- @tparam table field definition
-- @return nil where it has no default
function _M.default(field)
    local default = field.default
    if default ~= nil and default ~= NULL then
        return type(default) == "table" and _M.merged({}, default) or default
    end
    if field.type == "record" and field.required == true and field.fields then
        return {}
    end
end

--- What stands in a record under names within each other.
-- @tparam table record
-- @tparam {string,...} path names
-- @return nil, or cjson.null, where nothing does
function _M.at_path(record, path)
    local value = record
    for _, name in ipairs(path) do
        if type(value) ~= "table" then
            return value
        end
        value = value[name]
    end
    return value
end

--- What a shorthand is a former name of, nil: of nothing. Kong 3.6 and 3.7 called it
-- `translate_backwards`, a path.
-- @tparam table field definition of the shorthand
-- @treturn {table,...}|nil `{ path = {string,...}, reverse_mapping_function = function|nil }`
function _M.instead_of(field)
    local path = field.translate_backwards
    return field.deprecation and field.deprecation.replaced_with or (path and { { path = path } })
end

--- What a former name would have to be for what a record has under today's.
-- @tparam table instead of `instead_of`
-- @tparam table record
-- @return nil where that cannot be said
function _M.former_value(instead, record)
    if instead.reverse_mapping_function then
        local ok, value = pcall(instead.reverse_mapping_function, record)
        return ok and value or nil
    end
    return _M.at_path(record, instead.path)
end

--- Makes records required where they do not say otherwise, as Kong's of entities are: what is
-- answered then has their structure, and clients who fill in defaults by `/schemas` agree. Not
-- within lists.
-- @tparam table definition a schema, or a field; changed
function _M.require_records(definition)
    plans[definition] = nil -- of what it was before
    for _, entry in ipairs(definition.fields) do
        local _, field = next(entry)
        if field.type == "record" and field.fields then
            field.required = field.required ~= false
            _M.require_records(field)
        end
    end
end

local with_nulls

local function items_with_nulls(field, value)
    local out = {}
    for key, item in pairs(value) do
        out[key] = with_nulls(field, item)
    end
    return setmetatable(out, getmetatable(value))
end

-- A value as functions of Kong's schemas expect it: null in each field that is not set.
with_nulls = function(field, value)
    if type(value) ~= "table" or not field then
        return value
    elseif field.type == "record" and field.fields then
        return _M.with_nulls(field, value)
    end
    local items = field.elements or (field.type == "map" and field.values)
    return items and items_with_nulls(items, value) or value
end

--- A record as functions of Kong's schemas expect it: null in each field that is not set.
-- @tparam table definition schema
-- @tparam table record
-- @tparam[opt] {string,...} names of the fields wanted; all
-- @treturn table a new one
function _M.with_nulls(definition, record, names)
    local out = {}
    if names then
        for _, name in ipairs(names) do
            local value = _M.at_path(record, _M.parts(name))
            value = with_nulls(_M.field(definition, name), value)
            _M.put(out, _M.parts(name), value == nil and NULL or value)
        end
        return out
    end
    for _, entry in ipairs(definition.fields) do
        local name, field = next(entry)
        local value = record[name]
        if value ~= nil then
            out[name] = with_nulls(field, value)
        elseif not field.required then
            out[name] = NULL
        end
    end
    return out
end

--- The names in a dotted one.
-- @tparam string name such as `config.redis.host`
-- @treturn {string,...} not to be changed
function _M.parts(name)
    local list = parts[name]
    if not list then
        list = {}
        for part in name:gmatch("[^.]+") do
            list[#list + 1] = part
        end
        parts[name] = list
    end
    return list
end

--- Puts a value into records within each other, which it makes.
-- @tparam table record
-- @tparam {string,...} path names
-- @param value
function _M.put(record, path, value)
    for i = 1, #path - 1 do
        local inner = record[path[i]]
        if type(inner) ~= "table" then
            inner = {}
            record[path[i]] = inner
        end
        record = inner
    end
    record[path[#path]] = value
end

local function copy(value, seen)
    if type(value) ~= "table" then
        return value
    elseif seen[value] then
        return seen[value]
    end
    local out = {}
    seen[value] = out
    for key, item in pairs(value) do
        out[key] = copy(item, seen)
    end
    return setmetatable(out, getmetatable(value))
end

local function mark(definition)
    if adopted[definition] then
        return
    end
    adopted[definition] = true
    for _, list in ipairs({ definition.fields or {}, definition.shorthand_fields or {} }) do
        for _, entry in ipairs(list) do
            mark(select(2, next(entry)))
        end
    end
    for _, name in ipairs(NESTED) do
        if definition[name] then
            mark(definition[name])
        end
    end
end

--- The schema of a plugin that was written for Kong: an explicit null in a record stays null
-- in place of a default, and functions of the schema get null for what is not set.
-- @tparam table definition schema or field
-- @treturn table a copy, as others may share parts of it; the same where it is one
function _M.adopt(definition)
    if not adopted[definition] then
        definition = copy(definition, {})
        mark(definition)
    end
    return definition
end

--- Whether a field that nobody gives is drawn anew for each entity, or has such a field in it.
-- @tparam table field
-- @treturn boolean
function _M.is_drawn(field)
    if not adopted[field] then
        return false
    elseif field.auto then
        return true
    end
    for _, entry in ipairs(field.type == "record" and field.fields or {}) do
        if _M.is_drawn(select(2, next(entry))) then
            return true
        end
    end
    return false
end

--- The fields of a record that its schema calls deprecated, and that are set to something else than
-- their former default.
-- @tparam table definition schema
-- @tparam table record
-- @tparam[opt=""] string at path of the record
-- @tparam[opt] {table,...} found is added to
-- @treturn {table,...} `{ field = path, message = the schema's }`
function _M.deprecated(definition, record, at, found)
    found = found or {}
    for _, entry in ipairs(definition.fields) do
        local name, field = next(entry)
        local value, deprecation = record[name], field.deprecation
        local path = (at and at .. "." or "") .. name
        if deprecation and value ~= nil and not equal(value, deprecation.old_default) then
            found[#found + 1] = { field = path, message = deprecation.message }
        end
        if field.type == "record" and field.fields and type(value) == "table" then
            _M.deprecated(field, value, path, found)
        end
    end
    return found
end

--- Whether a word of a field is a rule for its value.
-- @tparam string name
-- @treturn boolean
function _M.is_rule(name)
    return rules.check[name] ~= nil
end

--- Whether a schema or field is of a plugin that was written for Kong.
-- @tparam table definition
-- @treturn boolean|nil
function _M.is_adopted(definition)
    return adopted[definition]
end

-- What a rule of a schema is asked with.
local function argument_of(definition, name)
    local argument = definition[name]
    local is_plain = name ~= "custom_validator" or not adopted[definition]
    if
        is_plain
        or not argument
        or not (definition.fields or definition.elements or definition.values)
    then
        return argument
    end
    return function(value)
        return argument(with_nulls(definition, value))
    end
end

local function find_rules(definition)
    local found = {}
    for _, name in ipairs(rules.order) do
        local argument = argument_of(definition, name)
        -- an empty string is no value in Kong, unless a field says so
        if name == "len_min" and argument == nil and definition.type == "string" then
            argument = 1
        end
        if argument ~= nil and not (name == "eq" and argument == NULL) then
            found[#found + 1] = { name = name, fn = rules.check[name], argument = argument }
        end
    end
    return found
end

local function make(definition)
    local plan = { rules = find_rules(definition), fields = nil, by_name = {}, defaults = 0 }
    if definition.fields then
        plan.fields = {}
        for i, entry in ipairs(definition.fields) do
            local name, field = next(entry)
            plan.fields[i] = { name = name, field = field }
            plan.by_name[name] = field
            if _M.default(field) ~= nil then
                plan.defaults = plan.defaults + 1
            end
        end
    end
    for _, entry in ipairs(definition.shorthand_fields or {}) do
        local name, field = next(entry)
        plan.by_name[name] = field
    end
    plans[definition] = plan
    return plan
end

--- The plan of a schema or of a field.
-- @tparam table definition
-- @treturn table not to be changed: `rules`, array of `{ name =, fn =, argument = }` in their
-- order; `fields`, array of `{ name =, field = }`; `by_name`, shorthands among them; `defaults`,
-- how many of the fields have one
function _M.of(definition)
    return plans[definition] or make(definition)
end

--- The fields of a schema by name, shorthands among them.
-- @tparam table definition schema
-- @treturn table name -> definition, not to be changed
function _M.fields(definition)
    return _M.of(definition).by_name
end

--- Finds a field's definition by its dotted name.
-- @tparam table definition schema
-- @tparam string name such as `config.redis.host`
-- @treturn table|nil
function _M.field(definition, name)
    for _, part in ipairs(_M.parts(name)) do
        definition = definition and definition.fields and _M.of(definition).by_name[part]
    end
    return definition
end

return _M
