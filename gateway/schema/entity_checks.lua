--- Rules over several fields of a record.
-- A schema lists them as `entity_checks = { { name = argument }, ... }`. A check
-- that judges values (`conditional`, `custom_entity_check`) is skipped while
-- fields of the record are wrong: its answer would follow from their errors.
--
-- Schemas of plugins written for Kong (`plan.adopt`) have Kong's rules for when a check runs, and
-- what an unset field is to it: users of theirs know these answers.
--
-- A condition may hold for a default. What it reports has `unless = { field =, message = }` then
-- for who asks whether the field was given: if not, that message says the same.
-- @module gateway.schema.entity_checks

local cjson = require("cjson")
local plans = require("gateway.schema.plan")
local rules = require("gateway.schema.rules")

local format = string.format
local quoted = rules.quoted
local text = rules.text

local NULL = cjson.null
local CONDITIONAL = "failed conditional validation given value of field '%s'"
local MISSING = "field required for entity check"

local _M = {}

local function get(record, name)
    local list = plans.parts(name)
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
    local full = {}
    for key, argument in pairs(host.field(definition, name) or { type = "any" }) do
        full[key] = argument
    end
    for key, argument in pairs(match) do
        full[key] = argument
    end
    completed[match] = full
    return full
end

-- What is wrong with a field that is not set.
local function fails_unset(full)
    if full.ne == NULL then
        return full.err or "value must not be null"
    elseif full.eq ~= nil and full.eq ~= NULL then
        return "value must be " .. tostring(full.eq)
    end
    return full.required and "required field missing" or nil
end

local function fails(host, name, match, value)
    if not plans.is_adopted(host.definition) and match.eq == NULL then
        return is_set(value) and "value must be null" or nil
    end
    local full = completed[match] or complete(host, host.definition, name, match)
    if value == nil then
        return fails_unset(full)
    elseif full.eq == NULL then
        return full.err or "value must be null"
    end
    return host.fails(full, value)
end

local checks = {}

function checks.at_least_one_of(record, names, host)
    if count_set(record, names) == 0 then
        host.report({
            message = "at least one of these fields must be non-empty: " .. quoted(names),
        })
    end
end

function checks.only_one_of(record, names, host)
    if count_set(record, names) ~= 1 then
        local message = "exactly one of these fields must be non-empty: "
        host.report({ message = message .. quoted(names) })
    end
end

function checks.mutually_required(record, names, host)
    local n = count_set(record, names)
    if n ~= 0 and n ~= #names then
        host.report({ message = "all or none of these fields must be set: " .. quoted(names) })
    end
end

function checks.mutually_exclusive(record, names, host)
    if count_set(record, names) > 1 then
        host.report({ message = "only one or none of these fields must be set: " .. quoted(names) })
    end
end

function checks.mutually_exclusive_sets(record, sets, host)
    if count_set(record, sets.set1) > 0 and count_set(record, sets.set2) > 0 then
        local list = quoted({ sets.set1, sets.set2 })
        host.report({ message = "only one or none of these fields must be set: " .. list })
    end
end

function checks.distinct(record, names, host)
    local seen = {}
    for _, name in ipairs(names) do
        local value = get(record, name)
        if is_set(value) then
            if seen[value] then
                host.report({
                    message = "values of these fields must be distinct: " .. quoted(names),
                })
                return
            end
            seen[value] = true
        end
    end
end

function checks.conditional(record, rule, host)
    local given = get(record, rule.if_field)
    local is_other = given == nil and not plans.is_adopted(host.definition)
    if is_other or fails(host, rule.if_field, rule.if_match, given) then
        return
    end
    local value = get(record, rule.then_field)
    local message = fails(host, rule.then_field, rule.then_match, value)
    local is_missed = value == nil and rule.then_match.required
    if is_missed then
        message = "required field missing"
    elseif not message then
        return
    end
    local err = { field = rule.then_field, plain = message, replaces = true }
    if rule.then_err and not (is_missed and plans.is_adopted(host.definition)) then
        err.message = rule.then_err:format(rule.if_field)
        err.of_record = err.message
    else
        err.message = format("%s (given the value of field '%s')", message, rule.if_field)
        err.of_record = format(CONDITIONAL, rule.if_field)
        local by_default = format("%s (%s is %s by default)", message, rule.if_field, text(given))
        err.unless = { field = rule.if_field, message = by_default }
    end
    host.report(err)
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
        local plain = "at least one of these fields must be non-empty: " .. quoted(names)
        host.report({
            message = message and message:format(quoted(names)) or plain,
            unless = { field = rule.if_field, message = plain },
        })
    end
end

function checks.custom_entity_check(record, rule, host)
    local ok, message = host.run(rule.fn, host.lent(record, rule.field_sources))
    if not ok then
        host.report({ message = message or "entity check failed" })
    end
end

-- What each check reads: the keys of its argument that name fields, where that is no list of them;
-- `needs`: those that have to be there, all where it says nothing; `counts`: whether unset
-- fields are what it asks about; `judges`: whether it needs fields that are right.
local READS = {
    at_least_one_of = { counts = true },
    only_one_of = {},
    distinct = {},
    mutually_required = { counts = true, judges = true },
    mutually_exclusive = { counts = true, judges = true },
    mutually_exclusive_sets = { counts = true, judges = true, sources = { "set1", "set2" } },
    conditional = {
        sources = { "if_field", "then_field" },
        needs = { if_field = true },
    },
    conditional_at_least_one_of = {
        counts = true,
        sources = { "if_field", "then_at_least_one_of", "else_then_at_least_one_of" },
    },
    custom_entity_check = {
        judges = true,
        sources = { "field_sources" },
        needs = { field_sources = true },
    },
}

-- Calls `fn(name, is_needed)` for each field that a check reads.
local function each_read(reads, argument, fn)
    if not reads.sources then
        for _, name in ipairs(argument) do
            fn(name, true)
        end
        return
    end
    for _, source in ipairs(reads.sources) do
        local names = argument[source]
        local is_needed = reads.needs and reads.needs[source] or false
        for _, name in ipairs(type(names) == "table" and names or { names }) do
            fn(name, is_needed)
        end
    end
end

-- Whether a field is one that a client has to give and did not, so that nobody can say what it is.
local function is_missing(host, record, name)
    if get(record, name) ~= nil then
        return false
    end
    local parent = name:match("^(.*)%.")
    if parent and type(get(record, parent)) ~= "table" then
        return true
    elseif get(host.given, name) == NULL then
        return false
    end
    local field = host.field(host.definition, name)
    return field ~= nil and field.required == true
end

-- Of our own schemas: these need all fields of the record right.
local JUDGES = { conditional = true, custom_entity_check = true }

-- Whether a check of a plugin written for Kong runs; reports fields that it misses.
local function may_run(name, argument, record, host)
    local reads = READS[name]
    local can_count = reads.counts or argument.run_with_missing_fields
    local all_missing, has_wrong, missing = true, false, {}
    each_read(reads, argument, function(field, is_needed)
        local misses = is_missing(host, record, field)
        all_missing = all_missing and misses
        if misses and is_needed and not can_count then
            missing[#missing + 1] = field
        end
        has_wrong = has_wrong or host.is_wrong(field)
    end)
    if has_wrong and reads.judges and not argument.run_with_invalid_fields then
        return false
    elseif all_missing and not reads.counts then
        return false
    end
    for _, field in ipairs(missing) do
        host.report({ field = field, message = MISSING, replaces = true })
    end
    return #missing == 0
end

--- Runs a schema's checks over a record.
-- @tparam table definition schema with `entity_checks`
-- @tparam table record validated fields
-- @tparam boolean has_errors whether a field of the record is wrong
-- @tparam table host what the validator lends: `fails(field, value)`,
-- `field(definition, name)`, `run(fn, ...)`; `given`: the record with nulls; `is_wrong(name)`:
-- whether a field was found wrong; `lent(record, names)`: what custom checks are given;
-- `report(err)`: takes `{ message =, field =, unless =, plain =, of_record =, replaces = }`, where
-- `plain` and `of_record` are Kong's words for the field and for the record, and `message` says
-- both; `replaces`: instead of what was said of the field before
function _M.run(definition, record, has_errors, host)
    host.definition = definition
    local is_adopted = plans.is_adopted(definition)
    for _, entry in ipairs(definition.entity_checks) do
        local name, argument = next(entry)
        local runs = checks[name] and not (has_errors and JUDGES[name])
        if is_adopted then
            runs = may_run(name, argument, record, host)
        end
        if runs then
            checks[name](record, argument, host)
        end
    end
end

return _M
