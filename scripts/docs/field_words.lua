--- What schemas say, in words, for scripts/docs/entities.lua: types, defaults and limits of fields,
-- and checks of several fields.

local cjson = require("cjson")
local rules = require("gateway.schema.rules")
local schema = require("gateway.schema")
local secrets = require("gateway.schema.secrets")

local NULL = cjson.null

-- Rules that the words of a description have to say: code, patterns, and what follows from others.
local IN_WORDS = {
    custom_validator = true,
    match = true,
    match_all = true,
    match_any = true,
    match_none = true,
    mutually_exclusive_subsets = true,
    timestamp = true,
    uuid = true,
}

local _M = {}

-- Values ---------------------------------------------------------------------------------------

--- As Markdown has a word of a program.
function _M.code(value)
    return "`" .. tostring(value) .. "`"
end

local function number(value)
    return ("%.14g"):format(value)
end

--- The same of several, between commas.
-- @tparam table list
-- @tparam[opt] string last what stands before the last one
function _M.codes(list, last)
    local out = {}
    for i, item in ipairs(list) do
        out[i] = _M.code(item)
    end
    if last and #out > 1 then
        out[#out - 1] = out[#out - 1] .. last .. table.remove(out)
    end
    return table.concat(out, ", ")
end

local code, codes = _M.code, _M.codes

-- Statuses that follow each other, as "200 to 208".
local function ranges(list)
    local out, i = {}, 1
    while i <= #list do
        local first = i
        while list[i + 1] == list[i] + 1 do
            i = i + 1
        end
        out[#out + 1] = first == i and number(list[i])
            or number(list[first]) .. " to " .. number(list[i])
        i = i + 1
    end
    return table.concat(out, ", ")
end

--- What a field is where it is not given.
function _M.default(field)
    local value = field.default
    if value == nil or value == NULL then
        local is_wanted = field.required and field.type ~= "record"
        return field.auto and "generated" or is_wanted and "required" or ""
    elseif type(value) ~= "table" then
        return type(value) == "number" and code(number(value)) or code(value)
    elseif type(value[1]) == "number" then
        return ranges(value)
    end
    return code("[" .. table.concat(value, ", ") .. "]")
end

-- Types ------------------------------------------------------------------------------------------

local PLURALS = {
    integer = "integers",
    number = "numbers",
    record = "records",
    string = "strings",
}

--- The type of a field.
-- @tparam table field
-- @tparam function link makes the link to a kind
function _M.type(field, link)
    local list = field.type == "array" and "list" or field.type == "set" and "set"
    local elements = field.elements
    if list and elements.reference then
        return list .. " of ids of " .. link(elements.reference)
    elseif list then
        return list .. " of " .. PLURALS[elements.type]
    elseif field.type == "map" then
        local values = field.values
        local of = values.elements and "lists of " .. PLURALS[values.elements.type]
        return "map of names to " .. (of or PLURALS[values.type])
    elseif field.type == "foreign" then
        return "reference to " .. link(field.reference)
    end
    return field.uuid and "UUID" or field.type
end

-- Limits -----------------------------------------------------------------------------------------

local function is_list(field)
    return field.type == "array" or field.type == "set"
end

local SAYS = {}

function SAYS.between(limits)
    return ("From %s to %s."):format(number(limits[1]), number(limits[2]))
end

function SAYS.gt(limit)
    return ("More than %s."):format(number(limit))
end

function SAYS.len_min(least, field)
    if is_list(field) then
        return ("At least %d."):format(least)
    end
    return least == 0 and "May be empty." or nil
end

function SAYS.len_max(most, field)
    return ("At most %d%s."):format(most, is_list(field) and "" or " bytes")
end

function SAYS.one_of(list, field)
    if field.supported then
        return nil
    end
    return #list == 1 and ("Only %s."):format(code(list[1])) or ("One of %s."):format(codes(list))
end

function SAYS.not_one_of(list)
    return ("Not %s."):format(codes(list, " or "))
end

function SAYS.is_regex()
    return "A regex."
end

function SAYS.starts_with(prefix)
    return ("Starts with %s."):format(code(prefix))
end

function SAYS.supported(list)
    if not list then
        return "Not supported by this version: must be null."
    end
    local only = #list == 1 and "only " or ""
    return ("This version supports %s%s."):format(only, codes(list, " and "))
end

function SAYS.eq()
    return nil
end

local ATTRIBUTES = {
    { "unique", "Unique." },
    { "referenceable", "May be a reference to a vault." },
}

-- The sentences on what a field may be.
local function limits_of(field)
    local out = {}
    for _, name in ipairs(rules.order) do
        local argument = field[name]
        if argument ~= nil and not IN_WORDS[name] then
            local says = SAYS[name] or error("no words for the rule " .. name)
            out[#out + 1] = says(argument, field)
        end
    end
    for _, attribute in ipairs(ATTRIBUTES) do
        out[#out + 1] = field[attribute[1]] and attribute[2] or nil
    end
    out[#out + 1] = secrets.is_secret(field) and "Secret." or nil
    return out
end

local function delete_rule(field)
    local is_id = field.elements and field.elements.reference
    if field.eq == NULL or not (field.type == "foreign" or is_id) then
        return nil
    end
    return field.on_delete == "cascade" and "Deleted together with the referenced entity."
        or "The referenced entity cannot be deleted."
end

--- What a field may be, in sentences.
function _M.limits(field)
    local out = limits_of(field)
    for _, inner in ipairs({ field.elements or false, field.values or false }) do
        for _, sentence in ipairs(inner and limits_of(inner) or {}) do
            out[#out + 1] = "Each: " .. sentence:sub(1, 1):lower() .. sentence:sub(2)
        end
    end
    out[#out + 1] = delete_rule(field)
    return table.concat(out, " ")
end

-- Rules over several fields ----------------------------------------------------------------------

local CHECKS = {}

function CHECKS.at_least_one_of(names)
    return ("At least one of %s must be set."):format(codes(names, " and "))
end

function CHECKS.mutually_required(names)
    return ("%s must be set together."):format(codes(names, " and "))
end

function CHECKS.mutually_exclusive(names)
    return ("Exactly one of %s must be set."):format(codes(names, " and "))
end

function CHECKS.distinct(names)
    return ("%s must differ."):format(codes(names, " and "))
end

-- Of the values that a check names those that this version supports.
local function supported(field, values)
    local out = {}
    for _, value in ipairs(values) do
        if not field.supported or rules.contains(field.supported, value) then
            out[#out + 1] = value
        end
    end
    return out
end

function CHECKS.only_one_of(names)
    return ("At most one of %s can be set."):format(codes(names, " and "))
end

function CHECKS.conditional(rule, definition)
    local field, match = schema.field(definition, rule.if_field), rule.if_match
    local values = supported(field, match.not_one_of or { match.eq })
    if #values == 0 then
        return nil
    end
    return ("%s %s is %s, %s must be %s."):format(
        match.not_one_of and "Unless" or "If",
        code(rule.if_field),
        codes(values, " or "),
        code(rule.then_field),
        rule.then_match.required and "set" or "null"
    )
end

function CHECKS.conditional_at_least_one_of(rule)
    local words = "if %s contains %s, at least one of %s must be set"
    local field = code(rule.if_field)
    local first =
        words:format(field, code(rule.if_match.contains), codes(rule.then_at_least_one_of, " and "))
    local second = words:format(
        field,
        code(rule.else_match.contains),
        codes(rule.else_then_at_least_one_of, " and ")
    )
    return "I" .. first:sub(2) .. "; otherwise, " .. second .. "."
end

function CHECKS.custom_entity_check(check)
    return assert(check.description, "a check without description")
end

--- The checks of a schema, a sentence each.
-- @tparam table definition schema
-- @treturn {string,...}
function _M.checks(definition)
    local out = {}
    for _, entry in ipairs(definition.entity_checks or {}) do
        local name, argument = next(entry)
        local says = CHECKS[name] or error("no words for the check " .. name)
        out[#out + 1] = says(argument, definition)
    end
    return out
end

return _M
