--- What is looked up in a schema, found once: rules with their arguments, fields by name and in
-- order.
-- @module gateway.schema.plan

local cjson = require("cjson")
local rules = require("gateway.schema.rules")

local ipairs = ipairs
local next = next
local pairs = pairs
local setmetatable = setmetatable
local type = type

local NULL = cjson.null

local _M = {}

-- definition -> plan
local plans = setmetatable({}, { __mode = "k" })

--- Two tables into a new one; where both say something, `over` wins.
-- @tparam table under
-- @tparam table over
-- @treturn table
function _M.merged(under, over)
    local out = {}
    for key, value in pairs(under) do
        out[key] = value
    end
    for key, value in pairs(over) do
        local both = type(value) == "table" and type(out[key]) == "table"
        out[key] = both and _M.merged(out[key], value) or value
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
    if field.type == "record" and field.required ~= false and field.fields then
        return {}
    end
end

local function find_rules(definition)
    local found = {}
    for _, name in ipairs(rules.order) do
        local argument = definition[name]
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
    for part in name:gmatch("[^.]+") do
        definition = definition and _M.of(definition).by_name[part]
    end
    return definition
end

return _M
