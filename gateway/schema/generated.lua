--- Functions that check and fill values, generated from schemas as Lua source: the JIT compiles
-- what a schema asks of a value as one piece, where a walk over the schema would be many.
--
-- They know what is right and nothing of errors. What they do not take (anything wrong, a reference
-- to a vault) is walked by gateway.schema, which says what is wrong with it. So a file without
-- mistakes is checked here, and for all that is taken a walk gives the same.
-- @module gateway.schema.generated

local cjson = require("cjson")
local entity_checks = require("gateway.schema.entity_checks")
local plans = require("gateway.schema.plan")
local rules = require("gateway.schema.rules")

local concat = table.concat
local format = string.format
local ipairs = ipairs
local load = loadstring
local next = next
local pairs = pairs
local setmetatable = setmetatable
local sort = table.sort
local tostring = tostring
local type = type

local NULL = cjson.null

local _M = {}

-- What every piece of source begins with. `C` holds the constants that are no texts.
local HEAD = [[
local C, NULL, new_table = ...
local byte, find, floor, next, pairs, sub, type =
    string.byte, string.find, math.floor, next, pairs, string.sub, type
local none
return function(value)
]]
local NO = " then return nil end\n"

-- definition of a field -> its function, definition of a record -> its function
local fields = setmetatable({}, { __mode = "k" })
local records = setmetatable({}, { __mode = "k" })

-- What gateway.schema lends.
local lent

local function constant(out, value)
    local count = #out.constants + 1
    out.constants[count] = value
    return "C[" .. count .. "]"
end

local function compile(out)
    local source = HEAD .. concat(out) .. "return value\nend"
    return load(source, "=schema")(out.constants, NULL, require("table.new"))
end

-- Rules ------------------------------------------------------------------------------------------

local function set_of(list)
    local set = {}
    for _, item in ipairs(list) do
        set[item] = true
    end
    return set
end

-- Whether a text has a pattern, as source. Some need no pattern, and so the JIT compiles them.
local function match_source(pattern)
    local prefix = pattern:match("^%^([%w/~_]*)$")
    if prefix then
        return format("sub(value, 1, %d) == %q", #prefix, prefix)
    elseif not pattern:find("[^%w/~_]") then
        return format("find(value, %q, 1, true)", pattern)
    end
    return format("find(value, %q)", pattern)
end

local SOURCES = {}

function SOURCES.one_of(out, list)
    return format("if not %s[value]", constant(out, set_of(list)))
end

function SOURCES.not_one_of(out, list)
    return format("if %s[value]", constant(out, set_of(list)))
end

function SOURCES.between(_, limits)
    return format("if value < %.17g or value > %.17g", limits[1], limits[2])
end

function SOURCES.len_min(_, least, field)
    return field.type == "string" and format("if #value < %d", least)
end

function SOURCES.starts_with(_, prefix)
    return format("if sub(value, 1, %d) ~= %q", #prefix, prefix)
end

function SOURCES.match_none(_, list)
    local parts = {}
    for i, item in ipairs(list) do
        parts[i] = match_source(item.pattern)
    end
    return format("if %s", concat(parts, " or "))
end

function SOURCES.match_any(_, any)
    local parts = {}
    for i, pattern in ipairs(any.patterns) do
        parts[i] = match_source(pattern)
    end
    return format("if not (%s)", concat(parts, " or "))
end

function SOURCES.custom_validator(out, fn)
    return format("if not %s(value)", constant(out, fn))
end

local function put_rules(out, field)
    for _, rule in ipairs(plans.of(field).rules) do
        local write = SOURCES[rule.name]
        local source = write and write(out, rule.argument, field)
        if not source then
            local check = constant(out, rule.fn)
            source = format("if not %s(value, %s)", check, constant(out, rule.argument))
        end
        out[#out + 1] = source .. NO
    end
    if field.uuid then
        out[#out + 1] = format("value = %s(value)\n", constant(out, rules.normal_id))
    end
    if field.normalize then
        out[#out + 1] = format("value = %s(value)\n", constant(out, field.normalize))
    end
end

-- Fields -----------------------------------------------------------------------------------------

local make_field

-- The function of what stands within a field, as source. Where a schema has none, a walk throws.
local function inner(out, field)
    return constant(out, field and make_field(field) or function() end)
end

local NO_REFERENCE = [[if byte(value) == 123 and find(value, "^{vault://.*}$")]] .. NO

local PUT = {}

function PUT.string(out)
    out[#out + 1] = [[if type(value) ~= "string"]] .. NO .. NO_REFERENCE
end

function PUT.any(out)
    out[#out + 1] = [[if type(value) == "string" and find(value, "^{vault://.*}$")]] .. NO
end

PUT.json = PUT.any

function PUT.integer(out)
    out[#out + 1] = [[if type(value) ~= "number" or floor(value) ~= value or value - value ~= 0]]
        .. NO
end

function PUT.number(out)
    out[#out + 1] = [[if type(value) ~= "number" or value - value ~= 0]] .. NO
end

PUT["function"] = function(out)
    out[#out + 1] = [[if type(value) ~= "function"]] .. NO
end

function PUT.boolean(out)
    out[#out + 1] = [[if type(value) ~= "boolean"]] .. NO
end

local FOREIGN = [[
    if type(value) == "table" then
        local key = "id"
        if type(value.id) ~= "string" or value.id == "" then
            key = "name"
            if type(value.name) ~= "string" or value.name == "" then
                key = "username"
            end
        end
        local name = value[key]
        if type(name) ~= "string" or name == "" then
            return nil
        end
        value = { [key] = key == "id" and %s(name) or name }
    elseif type(value) ~= "string" or value == "" then
        return nil
    else
]]

function PUT.foreign(out)
    out[#out + 1] = format(FOREIGN, constant(out, rules.normal_id)) .. NO_REFERENCE .. "end\n"
end

local LIST = [[
    if type(value) ~= "table" then
        return nil
    end
    local count = 0
    for _ in pairs(value) do
        count = count + 1
    end
    if count ~= #value then
        return nil
    end
    local out, size = new_table(count, 0), 0
    %s
    for i = 1, count do
        local item = value[i]
        if item == NULL then
            return nil
        end
        item = %s(item)
        if item == nil then
            return nil
        end
        %s
        size = size + 1
        out[size] = item
        %s
    end
    value = out
]]

function PUT.array(out, field)
    out[#out + 1] = format(LIST, "", inner(out, field.elements), "", "")
end

function PUT.set(out, field)
    out[#out + 1] = format(
        LIST,
        "local seen = count > 1 and {}",
        inner(out, field.elements),
        "if not (seen and seen[item]) then",
        "if seen then\nseen[item] = true\nend\nend"
    )
end

function PUT.map(out, field)
    local map = [[
    if type(value) ~= "table" then
        return nil
    end
    local out = {}
    for key, item in pairs(value) do
        if item == NULL or %s(key) == nil then
            return nil
        end
        item = %s(item)
        if item == nil then
            return nil
        end
        out[key] = item
    end
    value = out
    ]]
    out[#out + 1] = format(map, inner(out, field.keys), inner(out, field.values))
end

function PUT.record(out, field)
    out[#out + 1] = [[if type(value) ~= "table" or value[1] ~= nil]] .. NO
    if field.fields then
        local record = constant(out, _M.record(field))
        out[#out + 1] = format("value = %s(value)\nif value == nil", record) .. NO
    end
end

-- The function of a field: what a given value becomes, nil where it is not taken.
make_field = function(field)
    local made = fields[field]
    if made then
        return made
    end
    local out = { constants = {} }
    if field.eq == NULL or not PUT[field.type] then
        out[1] = "do return nil end\n"
    else
        PUT[field.type](out, field)
        put_rules(out, field)
    end
    made = compile(out)
    fields[field] = made
    return made
end

-- Records ----------------------------------------------------------------------------------------

-- A default as source, where it can be written as such.
local function literal(value)
    if type(value) == "string" then
        return format("%q", value)
    elseif type(value) == "number" then
        return format("%.17g", value)
    elseif type(value) == "boolean" then
        return tostring(value)
    elseif type(value) ~= "table" then
        return nil
    end
    local parts = {}
    for key, item in pairs(value) do
        local source = literal(item)
        if not source or type(key) == "table" then
            return nil
        end
        parts[#parts + 1] = format("[%s] = %s", literal(key), source)
    end
    sort(parts)
    return "{ " .. concat(parts, ", ") .. " }"
end

-- What an entity is given later has its place from the start.
local LATER = { "created_at", "id", "updated_at", "__undated" }

local function put_table(out, plan)
    local parts, has = {}, {}
    for _, entry in ipairs(plan.fields) do
        if lent.absent(entry) and type(entry.absent) ~= "table" and literal(entry.absent) then
            parts[#parts + 1] = format("[%q] = %s", entry.name, literal(entry.absent))
            has[entry.name] = true
        end
    end
    for _, name in ipairs(LATER) do
        parts[#parts + 1] = not has[name] and format("[%q] = none", name) or nil
    end
    out[#out + 1] = format("local out, count = { %s }, 0\nlocal field\n", concat(parts, ", "))
end

-- What stands for a field that is not given.
local function absent_source(out, entry)
    if not lent.absent(entry) then
        return "return nil"
    elseif type(entry.absent) ~= "table" then
        return nil
    end
    local source = literal(entry.absent)
    if not source then
        source = format("%s({}, %s)", constant(out, plans.merged), constant(out, entry.absent))
    end
    return format("out[%q] = %s", entry.name, source)
end

local FIELD = [[
    field = value[%q]
    if field ~= nil then
        count = count + 1
    end
    %sif field ~= nil and field ~= NULL then
        field = %s(field)
        if field == nil then
            return nil
        end
        out[%q] = field
    %s
    end
]]

local function put_field(out, entry)
    local absent = absent_source(out, entry)
    local check = inner(out, entry.field)
    absent = absent and "else\n" .. absent or ""
    local null = plans.is_adopted(entry.field) and "if field == NULL" .. NO or ""
    out[#out + 1] = format(FIELD, entry.name, null, check, entry.name, absent)
end

-- What the checks of several fields are lent.
local host
host = {
    fails = function(field, value)
        return make_field(field)(value) == nil and "not taken" or nil
    end,
    field = plans.field,
    is_wrong = function()
        return false
    end,
    lent = function(...)
        return lent.lent(host.definition, ...)
    end,
    run = function(...)
        return lent.run(...)
    end,
    report = function()
        host.has_failed = true
    end,
}

local function passes(definition, record)
    local outer, had_failed, given = host.definition, host.has_failed, host.given
    host.has_failed, host.given = false, record
    entity_checks.run(definition, record, false, host)
    local has_failed = host.has_failed
    host.definition, host.has_failed, host.given = outer, had_failed, given
    return not has_failed
end

--- The function of a schema.
-- @tparam table definition schema (a record: it has `fields`)
-- @treturn function takes a table whose [1] is nil; a new one with defaults filled. Where it gives
-- nil or throws, walk
function _M.record(definition)
    local made = records[definition]
    if made then
        return made
    end
    local out, plan = { constants = {} }, plans.of(definition)
    local this = constant(out, definition)
    for _, entry in ipairs(definition.shorthand_fields or {}) do
        local expand = constant(out, lent.expand)
        out[#out + 1] = format("if value[%q] ~= nil then\n", (next(entry)))
        out[#out + 1] = format("value = %s(%s, value)\nif value == nil", expand, this) .. NO
        out[#out + 1] = "end\n"
    end
    put_table(out, plan)
    for _, entry in ipairs(plan.fields) do
        put_field(out, entry)
    end
    out[#out + 1] = "for _ in pairs(value) do\ncount = count - 1\nend\nif count ~= 0" .. NO
    if definition.entity_checks then
        out[#out + 1] = format("if not %s(%s, out)", constant(out, passes), this) .. NO
    end
    if definition.follows then
        out[#out + 1] = format("%s(%s, out)\n", constant(out, lent.follow), this)
    end
    out[#out + 1] = "value = out\n"
    made = compile(out)
    records[definition] = made
    return made
end

--- Takes what gateway.schema lends, before the first call.
-- @tparam table functions `absent(entry)`: whether a field of a plan may be left out, whose
-- `entry.absent` is then what it becomes; `expand(definition, value)`: the value with the fields
-- that shorthands stand for, or nil; `lent(definition, record, names)`: what custom checks of a
-- record are given; `run(fn, ...)`: calls a function that may throw;
-- `follow(definition, record)`: sets the fields that follow from others
function _M.lend(functions)
    lent = functions
end

return _M
