--- Schemas as JSON Schema has them (draft 2020-12), for OpenAPI documents: what may be sent, and
-- what is answered.
--
-- What only code knows (validators, checks of several fields, Lua patterns) is left out: all that
-- is accepted fits the result, but not all that fits is accepted.
-- @module gateway.schema.json_schema

local cjson = require("cjson")
local plans = require("gateway.schema.plan")
local secrets = require("gateway.schema.secrets")

local NULL = cjson.null
local ARRAY = { __jsontype = "array" }

local _M = {}

local convert

local function copy(value)
    if type(value) ~= "table" then
        return value
    end
    local out = {}
    for key, item in pairs(value) do
        out[key] = copy(item)
    end
    return out
end

-- One of these, described as a whole.
local function any_of(json_schema, other)
    local description = json_schema.description
    json_schema.description = nil
    return { anyOf = { json_schema, other }, description = description }
end

--- The same schema, or null.
-- @tparam table json_schema
-- @treturn table
function _M.nullable(json_schema)
    if type(json_schema.type) == "string" and json_schema.type ~= "null" then
        json_schema.type = { json_schema.type, "null" }
        if json_schema.enum then
            json_schema.enum[#json_schema.enum + 1] = NULL
        end
        return json_schema
    elseif json_schema.type or next(json_schema) == nil then
        return json_schema
    end
    return any_of(json_schema, { type = "null" })
end

local types = {}

function types.string(field)
    local least = field.len_min or 1
    return {
        type = "string",
        minLength = least > 0 and least or nil,
        maxLength = field.len_max,
        format = (field.uuid and "uuid") or (secrets.is_secret(field) and "password") or nil,
        pattern = field.starts_with == "/" and "^/" or nil,
    }
end

local function number(field)
    local between = field.between or {}
    return {
        type = field.type,
        minimum = between[1],
        maximum = between[2],
        exclusiveMinimum = field.gt or (field.timestamp and 0) or nil,
    }
end

types.integer, types.number = number, number

function types.boolean()
    return { type = "boolean" }
end

-- What stands in a list or a map: null in the place of a secret, in an answer that hides them.
local function convert_items(field, side, may_be_secret)
    local out = convert(field, side)
    return side == "answer" and may_be_secret and _M.nullable(out) or out
end

function types.array(field, side)
    return {
        type = "array",
        items = convert_items(field.elements, side, secrets.is_secret(field.elements)),
        minItems = field.len_min,
        maxItems = field.len_max,
    }
end

types.set = types.array

function types.map(field, side)
    -- Of a map the key may say it.
    local may_be_secret = field.values.type == "string" or secrets.is_secret(field.values)
    return {
        type = "object",
        additionalProperties = convert_items(field.values, side, may_be_secret),
    }
end

function types.record(field, side)
    if not field.fields then
        return { type = "object" }
    end
    return side == "body" and _M.body(field) or _M.answer(field)
end

function types.foreign(_, side)
    local text = { type = "string", minLength = 1 }
    if side == "answer" then
        local id = { type = "string", format = "uuid" }
        return {
            type = "object",
            properties = { id = id },
            required = { "id" },
            additionalProperties = false,
        }
    end
    local names = { id = text, name = text, username = text }
    return { anyOf = { text, { type = "object", properties = names, minProperties = 1 } } }
end

function types.any()
    return {}
end

types.json = types.any

types["function"] = types.string

local function enum_of(field)
    local list = field.supported or field.one_of or (field.eq ~= nil and { field.eq })
    return list and setmetatable(copy(list), ARRAY) or nil
end

local function default_of(field)
    local default = copy(field.default)
    local is_list = field.type == "array" or field.type == "set"
    return is_list and default and setmetatable(default, ARRAY) or default
end

-- A field that is set.
convert = function(field, side)
    if field.supported == false then
        local meaning = field.description and field.description .. " " or ""
        return { type = "null", description = meaning .. "Not supported by this version." }
    elseif field.eq == NULL then
        return { type = "null", description = field.description }
    end
    local out = types[field.type](field, side)
    if type(out.type) == "string" then
        out.enum = enum_of(field)
    end
    out.description = field.description
    if field.referenceable and side == "body" and field.type ~= "string" then
        out = any_of(out, { type = "string", pattern = "^\\{vault://.*\\}$" })
    end
    return out
end

-- Whether a field has a value where none is given.
local function is_filled(field)
    local default = field.default
    local is_record = field.type == "record" and field.required ~= false and field.fields
    return (default ~= nil and default ~= NULL) or is_record or false
end

local function names_in_order(names)
    return #names > 0 and names or nil
end

-- One of these has to be there, where a check of the schema says so.
local function one_of_these(definition, given)
    for _, entry in ipairs(definition.entity_checks or {}) do
        local any = {}
        for i, name in ipairs(entry.at_least_one_of or {}) do
            if given[name] or name:find(".", 1, true) then
                return nil
            end
            any[i] = { required = { name } }
        end
        if #any > 0 then
            return any
        end
    end
    return nil
end

local function add_shorthands(definition, properties)
    for _, entry in ipairs(definition.shorthand_fields or {}) do
        local name, field = next(entry)
        local out = _M.nullable(convert(field, "body"))
        out.deprecated = field.deprecation and true or nil
        properties[name] = out
    end
end

--- What a record may be when it is sent; a null is a field left out.
-- @tparam table definition schema: a record
-- @tparam[opt] table given fields that need not be there: name -> true; `["*"]`: none has to
-- @treturn table
function _M.body(definition, given)
    given = given or {}
    local properties, required = {}, {}
    for _, entry in ipairs(definition.fields) do
        local name, field = next(entry)
        local out = convert(field, "body")
        local is_wanted = field.required and not field.auto and not is_filled(field)
        if is_wanted and not given[name] and not given["*"] then
            required[#required + 1] = name
        else
            out = _M.nullable(out)
        end
        out.default = default_of(field)
        properties[name] = out
    end
    add_shorthands(definition, properties)
    return {
        type = "object",
        description = definition.description,
        properties = properties,
        required = names_in_order(required),
        additionalProperties = false,
        anyOf = not given["*"] and one_of_these(definition, given) or nil,
    }
end

--- What a record is in an answer: every field of its schema.
-- @tparam table definition schema: a record
-- @treturn table
function _M.answer(definition)
    local properties, required = {}, {}
    for i, entry in ipairs(definition.fields) do
        local name, field = next(entry)
        local out = convert(field, "answer")
        -- A listener that hides secrets shows null.
        local is_set = (field.required or field.auto or is_filled(field))
            and not secrets.is_secret(field, name)
        properties[name] = is_set and out or _M.nullable(out)
        required[i] = name
    end
    for _, entry in ipairs(definition.shorthand_fields or {}) do
        local name, field = next(entry)
        if plans.instead_of(field) then
            properties[name] = _M.nullable(convert(field, "answer"))
            properties[name].deprecated = true
            required[#required + 1] = name
        end
    end
    return {
        type = "object",
        description = definition.description,
        properties = properties,
        required = names_in_order(required),
        additionalProperties = false,
    }
end

return _M
