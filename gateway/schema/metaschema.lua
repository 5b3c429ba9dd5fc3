--- Checks schemas of plugins that are not bundled: which words there are, and what stands under
-- each.
--
-- A word that nobody knows would have no effect, and its author would not learn of it: so it is an
-- error that names it, as in Kong. What our own schemas have beyond Kong's words is known, too.
-- @module gateway.schema.metaschema

local cjson = require("cjson")
local nearest = require("sluice.nearest")
local plans = require("gateway.schema.plan")
local schema = require("gateway.schema")
local types = require("gateway.schema.types")
local words = require("gateway.schema.metaschema_words")

local format = string.format
local ipairs = ipairs
local next = next
local pairs = pairs
local type = type

local NULL = cjson.null
local MIN_DESCRIPTION, MAX_DESCRIPTION = 10, 500

local _M = {}

--- The types of fields.
_M.TYPES = words.TYPES

-- Kinds of values that attributes have; each says what is wrong through `at.fail`.
local kinds = {}

-- Where a check is, and what it found ------------------------------------------------------------

local at_mt = { __index = {} }

-- `name`: for people, `...`: Kong's keys.
function at_mt.__index:below(name, ...)
    local path = self.path
    if name then
        path = path == "" and name or path .. "." .. name
    end
    local keys = { unpack(self.keys) }
    for _, key in ipairs({ ... }) do
        keys[#keys + 1] = key
    end
    return setmetatable({ path = path, keys = keys, errors = self.errors }, at_mt)
end

function at_mt.__index:fail(message)
    self.errors[#self.errors + 1] = { path = self.path, keys = self.keys, message = message }
end

local function in_order(map)
    return ipairs(schema.sorted_keys(map))
end

-- Checks the words of a table, each by its kind.
local function check_words(at, value, known)
    if type(value) ~= "table" then
        return at:fail("expected a record")
    end
    for _, name in in_order(value) do
        local kind = known[name]
        local below = at:below(tostring(name), name)
        if not kind then
            below:fail("unknown field")
            local last = below.errors[#below.errors]
            last.near = nearest.find(tostring(name), schema.sorted_keys(known))
        else
            kinds[kind](below, value[name])
        end
    end
end

-- Kinds ------------------------------------------------------------------------------------------

local function of_type(wanted)
    return function(at, value)
        if not types.has(value, wanted) then
            at:fail("expected " .. types.NAMES[wanted])
        elseif wanted == "string" and value == "" then
            at:fail("length must be at least 1")
        end
    end
end

for _, name in ipairs({ "boolean", "string", "number", "integer", "function" }) do
    kinds[name] = of_type(name)
end

function kinds.any() end

kinds.list = of_type("array")

kinds.table = of_type("map")

function kinds.strings(at, value)
    if not types.has(value, "array") then
        return at:fail("expected an array")
    end
    for i, item in ipairs(value) do
        kinds.string(at:below(nil, i), item)
    end
end

function kinds.subsets(at, value)
    if not types.has(value, "array") then
        return at:fail("expected an array")
    end
    for i, item in ipairs(value) do
        kinds.strings(at:below(nil, i), item)
    end
end

function kinds.pair(at, value)
    if not types.has(value, "array") then
        at:fail("expected an array")
    elseif #value ~= 2 then
        at:fail("length must be 2")
    else
        for i, item in ipairs(value) do
            kinds.number(at:below(nil, i), item)
        end
    end
end

function kinds.patterns(at, value)
    if not types.has(value, "array") then
        return at:fail("expected an array")
    end
    for i, item in ipairs(value) do
        local below = at:below(nil, i)
        check_words(below, item, { err = "string", pattern = "string" })
        if type(item) == "table" and item.pattern == nil then
            below:below("pattern", "pattern"):fail("required field missing")
        end
    end
end

function kinds.any_pattern(at, value)
    check_words(at, value, { err = "string", patterns = "strings" })
    if type(value) == "table" and value.patterns == nil then
        at:below("patterns", "patterns"):fail("required field missing")
    end
end

local function one_of(names)
    return function(at, value)
        for _, name in ipairs(names) do
            if value == name then
                return
            end
        end
        at:fail("expected one of: " .. table.concat(names, ", "))
    end
end

kinds.type = one_of(_M.TYPES)
kinds.on_delete = one_of({ "restrict", "cascade", "null" })

function kinds.description(at, value)
    if type(value) ~= "string" then
        at:fail("expected a string")
    elseif #value < MIN_DESCRIPTION then
        at:fail("length must be at least " .. MIN_DESCRIPTION)
    elseif #value > MAX_DESCRIPTION then
        at:fail("length must be at most " .. MAX_DESCRIPTION)
    end
end

-- A default has to be one of the field's values.
local function check_default(at, value, field)
    if not words.HAS_DEFAULT[field.type] or value == nil or value == NULL then
        return
    end
    local ok, message = pcall(schema.first_error, field, value)
    if not ok then
        at:fail("error in schema prevents from validating this field")
    elseif message then
        at:fail(message)
    end
end

function kinds.deprecation(at, value)
    check_words(at, value, {
        message = "string",
        old_default = "any",
        removal_in_version = "string",
        replaced_with = "replacements",
    })
    for _, name in ipairs(type(value) == "table" and { "message", "removal_in_version" } or {}) do
        if value[name] == nil then
            at:below(name, name):fail("required field missing")
        end
    end
end

function kinds.replacements(at, value)
    if not types.has(value, "array") then
        return at:fail("expected an array")
    end
    for i, item in ipairs(value) do
        local below = at:below(nil, i)
        check_words(below, item, { path = "strings", reverse_mapping_function = "function" })
        if type(item) == "table" and item.path == nil then
            below:below("path", "path"):fail("required field missing")
        end
    end
end

local function check_field(at, field, is_shorthand)
    if type(field) ~= "table" then
        return at:fail("expected a record")
    end
    local of, errors_before = field.type, #at.errors
    if of == nil then
        at:below("type", "type"):fail("required field missing")
    elseif is_shorthand and words.NO_SHORTHAND[of] then
        at:below("type", "type"):fail(format("a shorthand cannot be a %s", of))
    end
    check_words(at, field, words.ATTRIBUTES)
    if is_shorthand then
        if field.func == nil then
            at:below("func", "func"):fail("required field missing")
        end
    elseif field.func ~= nil then
        at:below("func", "func"):fail("unknown field")
    end
    for _, name in ipairs(not (field.abstract and of == "record") and words.NEEDS[of] or {}) do
        if field[name] == nil then
            at:fail(format("field of type '%s' must declare '%s'", of, name))
        end
    end
    for _, name in in_order(field) do
        if type(of) == "string" and words.ONLY[name] and not words.ONLY[name][of] then
            at:fail(format("field of type '%s' cannot have attribute '%s'", of, name))
        end
    end
    if field.unique_across_ws and not field.unique then
        at:below("unique", "unique"):fail("required field missing")
    end
    -- Rules that are wrong themselves say nothing of it.
    if #at.errors == errors_before then
        check_default(at:below("default", "default"), field.default, field)
    end
end

function kinds.field(at, field)
    check_field(at, field, false)
end

local function check_fields(at, list, is_shorthand)
    if not types.has(list, "array") then
        return at:fail("expected an array")
    end
    for i, entry in ipairs(list) do
        local name, field
        if type(entry) == "table" then
            name, field = next(entry)
        end
        if type(entry) ~= "table" then
            at:below(nil, i):fail("each entry in fields must be a sub-table")
        elseif name == nil then
            at:below(nil, i):fail("field entry table is empty")
        elseif next(entry, name) ~= nil then
            at:below(nil, i):fail("length must be 1")
        elseif type(name) ~= "string" then
            at:below(nil, i):fail("each key in fields must be a string")
        else
            local named = at:below(nil, i)
            named.path = (at.path:gsub("%.?[%w_]+$", "")) -- not that of the list
            check_field(named:below(name), field, is_shorthand)
        end
    end
end

function kinds.fields(at, list)
    check_fields(at, list, false)
end

function kinds.shorthands(at, list)
    check_fields(at, list, true)
end

function kinds.match(at, value)
    local known = {}
    for name, kind in pairs(words.ATTRIBUTES) do
        known[name] = plans.is_rule(name) and kind or nil
    end
    known.required, known.elements, known.keys, known.values = "boolean", "match", "match", "match"
    known.err, known.type = "string", "type"
    check_words(at, value, known)
end

function kinds.checks(at, list)
    if not types.has(list, "array") then
        return at:fail("expected an array")
    end
    for i, entry in ipairs(list) do
        local below = at:below(nil, i)
        if type(entry) ~= "table" or next(entry) == nil or next(entry, next(entry)) ~= nil then
            below:fail("expected a table with the name of one check")
        else
            local name, argument = next(entry)
            local wanted = words.CHECKS[name]
            below = below:below(tostring(name), name)
            if not wanted then
                below:fail("unknown field")
            elseif type(wanted) == "table" then
                check_words(below, argument, wanted)
            else
                kinds[wanted](below, argument)
            end
        end
    end
end

local TRANSFORMATION = {
    input = "strings",
    needs = "strings",
    on_read = "function",
    on_write = "function",
}

function kinds.transformations(at, list)
    if not types.has(list, "array") then
        return at:fail("expected an array")
    end
    for i, item in ipairs(list) do
        local below = at:below(nil, i)
        check_words(below, item, TRANSFORMATION)
        if type(item) == "table" and not item.on_write and not item.on_read then
            local names = "'on_write', 'on_read'"
            below:fail("at least one of these fields must be non-empty: " .. names)
        end
    end
end

-- Schemas ----------------------------------------------------------------------------------------

local function fields_by_name(definition)
    local found = {}
    for _, entry in ipairs(definition.fields) do
        local name, field = next(entry)
        found[name] = field
    end
    return found
end

-- Whether a dotted name leads to a field; what others refer to has any.
local function leads_to(definition, name)
    local head, rest = name:match("^([^.]+)%.?(.*)$")
    local field = head and definition.fields and fields_by_name(definition)[head]
    if not field or rest == "" then
        return field ~= nil and field ~= false
    end
    return field.type == "foreign" or leads_to(field, rest)
end

local function check_transformed(at, definition)
    for i, item in ipairs(definition.transformations or {}) do
        for _, list in ipairs({ "input", "needs" }) do
            for j, name in ipairs(item[list] or {}) do
                if not leads_to(definition, name) then
                    at:below("transformations", "transformations", list, i, j)
                        :fail("invalid field name: " .. name)
                end
            end
        end
    end
end

local function check_keys(at, definition)
    local fields = fields_by_name(definition)
    if definition.endpoint_key and not fields[definition.endpoint_key] then
        at:below("endpoint_key", "endpoint_key"):fail("value must be a field name")
    end
    local cache_key = definition.cache_key or {}
    for _, name in ipairs(cache_key) do
        if not fields[name] then
            at:below("cache_key", "cache_key"):fail("values must be field names")
            return
        end
    end
    if #cache_key == 1 and not fields[cache_key[1]].unique then
        local message = "a field used as a single cache key must be unique"
        at:below("cache_key", "cache_key"):fail(message)
    end
    if definition.ttl and fields.ttl then
        at:below("ttl", "ttl"):fail("ttl is a reserved field name when ttl is enabled")
    end
end

--- Checks the schema of a plugin, or of a kind of entities that it brings. Does not yield.
-- @tparam table definition
-- @tparam[opt=false] boolean is_entity
-- @treturn nil|{table,...} what is wrong: `{ path =, keys =, message = }`; `path` by the names of
-- fields, for people; `keys` as Kong nests its errors; `near`, the word that an unknown one is near
function _M.check(definition, is_entity)
    local at = setmetatable({ path = "", keys = {}, errors = {} }, at_mt)
    if type(definition) ~= "table" then
        at:fail("expected a definition table")
        return at.errors
    end
    local known = words.OF_PLUGIN
    if is_entity then
        known = plans.merged(known, words.OF_ENTITY)
    end
    for _, name in ipairs(is_entity and { "name", "primary_key" } or { "name" }) do
        if definition[name] == nil then
            at:below(name, name):fail("required field missing")
        end
    end
    if definition.fields == nil then
        at:below("fields", "fields"):fail("'fields' must be a table")
    end
    check_words(at, definition, known)
    if #at.errors == 0 then
        check_transformed(at, definition)
        if is_entity then
            check_keys(at, definition)
        end
    end
    return #at.errors > 0 and at.errors or nil
end

--- What is wrong with a schema, as one line for people.
-- @tparam {table,...} errors of `check`
-- @treturn string
function _M.text(errors)
    local lines = {}
    for i, err in ipairs(errors) do
        local hint = err.near and format("; did you mean %s?", err.near) or ""
        lines[i] = (err.path == "" and "" or err.path .. ": ") .. err.message .. hint
    end
    return table.concat(lines, "; ")
end

return _M
