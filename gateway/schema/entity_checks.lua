--- Rules over several fields of a record.
-- A schema lists them as `entity_checks = { { name = argument }, ... }`. A check
-- that judges values (`conditional`, `custom_entity_check`) is skipped while
-- fields of the record are wrong: its answer would follow from their errors.
-- @module gateway.schema.entity_checks

local cjson = require("cjson")
local rules = require("gateway.schema.rules")

local format = string.format
local ipairs = ipairs
local next = next
local pairs = pairs
local setmetatable = setmetatable
local type = type
local quoted = rules.quoted

local NULL = cjson.null

local _M = {}

-- dotted name -> its parts; the names stand in schemas
local parts = {}

local function split(name)
    local list = {}
    for part in name:gmatch("[^.]+") do
        list[#list + 1] = part
    end
    parts[name] = list
    return list
end

local function get(record, name)
    local list = parts[name] or split(name)
    for i = 1, #list do
        if type(record) ~= "table" then
            return nil
        end
        record = record[list[i]]
    end
    return record
end

local function is_set(value)
    return not (value == nil or value == "" or (type(value) == "table" and next(value) == nil))
end

local function count_set(record, names)
    local n = 0
    for _, name in ipairs(names) do
        if is_set(get(record, name)) then
            n = n + 1
        end
    end
    return n
end

-- A `match` of a conditional is a field definition that leaves out what the
-- field itself already says. Made once: match -> definition.
local completed = setmetatable({}, { __mode = "k" })

local function complete(host, definition, name, match)
    local field = host.field(definition, name)
    local full = { type = field and field.type or "any", elements = field and field.elements }
    for key, argument in pairs(match) do
        full[key] = argument
    end
    completed[match] = full
    return full
end

local function fails(host, name, match, value)
    if match.required and value == nil then
        return "required field missing"
    end
    if match.eq == NULL then
        return is_set(value) and "value must be null" or nil
    end
    local full = completed[match] or complete(host, host.definition, name, match)
    return value ~= nil and host.fails(full, value) or nil
end

local checks = {}

function checks.at_least_one_of(record, names, host)
    if count_set(record, names) == 0 then
        host.report("at least one of these fields must be non-empty: " .. quoted(names))
    end
end

function checks.only_one_of(record, names, host)
    if count_set(record, names) ~= 1 then
        host.report("exactly one of these fields must be non-empty: " .. quoted(names))
    end
end

function checks.mutually_required(record, names, host)
    local n = count_set(record, names)
    if n ~= 0 and n ~= #names then
        host.report("all or none of these fields must be set: " .. quoted(names))
    end
end

function checks.mutually_exclusive(record, names, host)
    if count_set(record, names) > 1 then
        host.report("only one or none of these fields must be set: " .. quoted(names))
    end
end

function checks.mutually_exclusive_sets(record, sets, host)
    if count_set(record, sets.set1) > 0 and count_set(record, sets.set2) > 0 then
        local list = quoted({ sets.set1, sets.set2 })
        host.report("only one or none of these fields must be set: " .. list)
    end
end

function checks.distinct(record, names, host)
    local seen = {}
    for _, name in ipairs(names) do
        local value = get(record, name)
        if is_set(value) then
            if seen[value] then
                host.report("values of these fields must be distinct: " .. quoted(names))
                return
            end
            seen[value] = true
        end
    end
end

function checks.conditional(record, rule, host)
    local given = get(record, rule.if_field)
    if given == nil or fails(host, rule.if_field, rule.if_match, given) then
        return
    end
    local message = fails(host, rule.then_field, rule.then_match, get(record, rule.then_field))
    if message then
        local why = rule.then_err and rule.then_err:format(rule.if_field)
            or format("%s (given the value of field '%s')", message, rule.if_field)
        host.report(why, rule.then_field)
    end
end

function checks.conditional_at_least_one_of(record, rule, host)
    local given = get(record, rule.if_field)
    if given == nil then
        return
    end
    local names, message = rule.then_at_least_one_of, rule.then_err
    if fails(host, rule.if_field, rule.if_match, given) then
        if not rule.else_match or fails(host, rule.if_field, rule.else_match, given) then
            return
        end
        names, message = rule.else_then_at_least_one_of, rule.else_then_err
    end
    if count_set(record, names) == 0 then
        message = message or "at least one of these fields must be non-empty: %s"
        host.report(message:format(quoted(names)))
    end
end

function checks.custom_entity_check(record, rule, host)
    local ok, message = host.run(rule.fn, record)
    if not ok then
        host.report(message or "entity check failed")
    end
end

local NEEDS_VALID_FIELDS = { conditional = true, custom_entity_check = true }

--- Runs a schema's checks over a record.
-- @tparam table definition schema with `entity_checks`
-- @tparam table record validated fields
-- @tparam boolean has_errors whether a field of the record is wrong
-- @tparam table host what the validator lends: `fails(field, value)`,
-- `field(definition, name)`, `report(message, name)`, `run(fn, ...)`
function _M.run(definition, record, has_errors, host)
    host.definition = definition
    for _, entry in ipairs(definition.entity_checks) do
        local name, argument = next(entry)
        if checks[name] and not (has_errors and NEEDS_VALID_FIELDS[name]) then
            checks[name](record, argument, host)
        end
    end
end

return _M
