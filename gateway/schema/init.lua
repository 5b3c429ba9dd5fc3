--- Validates values against schemas that are data.
-- A schema is a Lua table in Kong's own layout: `fields` is an array of
-- one-key tables `{ name = definition }`, a definition has a `type` (string,
-- integer, number, boolean, array, set, map, record, foreign, function, any),
-- flags (`required`, `default`, `auto`, `unique`) and rules
-- (`gateway.schema.rules`); `entity_checks` look at several fields at once
-- (`gateway.schema.entity_checks`). `follows` says which fields follow from others, whatever was
-- given for them: `{ field = function(record) return value end }`. What is kept in the place of a
-- given value is another thing (`gateway.schema.transformations`).
--
-- An explicit null counts as a field left out: it takes the default. A record
-- is always expanded to its fields unless it says `required = false`.
-- @module gateway.schema
-- @usage
-- local schema = require("gateway.schema")
-- local service, errors = schema.validate(entities.get("services"), { host = "a" }, "services[0]")

local cjson = require("cjson")
local context = require("gateway.schema.context")
local entity_checks = require("gateway.schema.entity_checks")
local generated = require("gateway.schema.generated")
local plans = require("gateway.schema.plan")
local rules = require("gateway.schema.rules")
local shorthands = require("gateway.schema.shorthands")
local to_json = require("gateway.schema.to_json")
local types = require("gateway.schema.types")

local byte = string.byte
local find = string.find
local sort = table.sort

local new_table = require("table.new")

local NULL = cjson.null
local NO_KEYS = {}
local BRACE = byte("{")
-- What an entity is given later: an id, times, which of these nobody gave.
local LATER_FIELDS = 4
-- One more than anybody shows (gateway.config.report); then nothing more is looked at.
local MAX_ERRORS = 101
-- Unknown fields of a record that are sorted.
local MAX_UNKNOWN = 10000

local _M = {}

local default_of, merged, plan_of = plans.default, plans.merged, plans.of
local fail = context.fail
local has_type = types.has
local is_null = types.is_null
local normal_id = rules.normal_id

local fill

local function enter(ctx, key, field, value)
    local depth = ctx.depth + 1
    ctx.depth = depth
    ctx.keys[depth] = key
    local filled = fill(ctx, field, value)
    ctx.depth = depth - 1
    return filled
end

-- Runs a rule of a schema; a rule that throws is an error of the value, too.
local function run(fn, ...)
    local done, ok, message, is_unsupported = pcall(fn, ...)
    if not done then
        return nil, "cannot be checked: " .. tostring(ok)
    end
    return ok, message, is_unsupported
end

local function check_rules(ctx, field, value)
    for _, rule in ipairs(plan_of(field).rules) do
        local ok, message, is_unsupported = run(rule.fn, value, rule.argument)
        if not ok then
            local report = is_unsupported and context.fail_unsupported or context.fail_all
            return report(ctx, field.err or message or "invalid value")
        end
    end
end

local function fill_list(ctx, field, value)
    local out, seen = {}, field.type == "set" and #value > 1 and {} or nil
    for i = 1, #value do
        local item = value[i]
        if is_null(item) then
            fail(ctx, "required field missing", i - 1)
        else
            local filled = enter(ctx, i - 1, field.elements, item)
            if filled ~= nil and not (seen and seen[filled]) then
                out[#out + 1] = filled
                if seen then
                    seen[filled] = true
                end
            end
        end
    end
    return out
end

local function by_text(a, b)
    return tostring(a) < tostring(b)
end

--- The keys of a table in the order of their text, so that errors have an order: of very many only
-- some, as nobody is told of all.
-- @tparam table map
-- @tparam[opt] table known keys to leave out: key -> true value
-- @treturn table array of keys, not to be changed
function _M.sorted_keys(map, known)
    local keys
    for key in pairs(map) do
        if not known or not known[key] then
            keys = keys or {}
            keys[#keys + 1] = key
            if known and #keys == MAX_UNKNOWN then
                break
            end
        end
    end
    if keys and #keys > 1 then
        sort(keys, by_text)
    end
    return keys or NO_KEYS
end

local function fill_map(ctx, field, value)
    local out = {}
    for _, key in ipairs(_M.sorted_keys(value)) do
        local item = value[key]
        enter(ctx, key, field.keys, key)
        if is_null(item) then
            fail(ctx, "required field missing", key)
        else
            out[key] = enter(ctx, key, field.values, item)
        end
    end
    return out
end

-- A field that was given but is wrong must not look absent to the checks.
local function with_given(out, value)
    local all = {}
    for key, item in pairs(value) do
        if not is_null(item) then
            all[key] = item
        end
    end
    for key, item in pairs(out) do
        local given = value[key]
        local both = type(item) == "table" and type(given) == "table"
        all[key] = both and with_given(item, given) or item
    end
    return all
end

-- What a field is when it is not given, found out once: most fields are not. Without one where
-- that is an error.
local function find_absent(entry)
    if plans.is_drawn(entry.field) then
        return false -- each has one of its own
    elseif entry.has_absent == nil then
        local ctx = context.take("")
        entry.absent = fill(ctx, entry.field, nil)
        entry.has_absent = #ctx.errors == 0
        context.give_back(ctx)
    end
    return entry.has_absent
end

-- What expands shorthands is lent.
local lent = { enter = enter, run = run }

local function copy(value)
    return type(value) == "table" and merged(value, {}) or value
end

-- What functions that check a record are given.
local function lent_to_checks(definition, record, names)
    local is_adopted = plans.is_adopted(definition)
    return is_adopted and plans.with_nulls(definition, record, names) or record
end

-- What the checks of several fields are lent; `ctx` is that of the record in hand.
local host
host = {
    run = run,
    is_wrong = function(name)
        local ctx = host.ctx
        for i = host.first, #ctx.errors do
            if ctx.errors[i].keys[ctx.depth + 1] == name then
                return true
            end
        end
        return false
    end,
    lent = function(...)
        return lent_to_checks(host.definition, ...)
    end,
    report = function(err)
        context.report(host.ctx, err, plans.parts(err.field or ""))
    end,
}

local function check_record(ctx, definition, record, given, first)
    local outer = { host.ctx, host.definition, host.first, host.given }
    host.ctx, host.first, host.given = ctx, first, given
    entity_checks.run(definition, record, #ctx.errors >= first, host)
    host.ctx, host.definition, host.first, host.given = unpack(outer, 1, 4)
end

-- Sets the fields that follow from others (`cert_digest`), whatever was given for them.
local function set_followers(definition, record)
    for name, make in pairs(definition.follows) do
        record[name] = make(record)
    end
end

-- How many fields a record of this value has at most: those with a default, and those given.
local function count_fields(plan, value)
    local count = plan.defaults
    for _ in pairs(value) do
        count = count + 1
    end
    return count + LATER_FIELDS
end

local function fill_record(ctx, definition, value)
    local errors_before = #ctx.errors
    local plan = plan_of(definition)
    -- A record that is complete but for what it leaves out: nothing is filled in.
    local as_is = ctx.as_is and ctx.depth == 0
    if definition.shorthand_fields and not as_is then
        value = shorthands.expand(ctx, definition, value, lent)
    end
    -- what a wrong shorthand should have set is not missing
    local lenient = #ctx.errors > errors_before
    local out = new_table(0, count_fields(plan, value))
    for _, entry in ipairs(plan.fields) do
        local given = value[entry.name]
        if not is_null(given) or (given ~= nil and plans.is_adopted(entry.field)) then
            out[entry.name] = enter(ctx, entry.name, entry.field, given)
        elseif as_is then
            if entry.field.required and not ctx.as_is.is_partial then
                fail(ctx, "required field missing", entry.name)
            end
        elseif not lenient then
            if not find_absent(entry) then
                out[entry.name] = enter(ctx, entry.name, entry.field, nil)
            elseif entry.absent ~= nil then -- nil would take a place, too
                out[entry.name] = copy(entry.absent)
            end
        end
    end
    for _, key in ipairs(_M.sorted_keys(value, plan.by_name)) do
        fail(ctx, "unknown field", key)
        ctx.errors[#ctx.errors].known = plan.by_name
    end
    if definition.entity_checks then
        local has_errors = #ctx.errors > errors_before
        local record = has_errors and with_given(out, value) or out
        check_record(ctx, definition, record, value, errors_before + 1)
    end
    if definition.follows and #ctx.errors == errors_before then
        set_followers(definition, out)
    end
    return out
end

local function check_foreign(ctx, value)
    if type(value) == "string" and value ~= "" then
        return value
    end
    if type(value) == "table" then
        for _, key in ipairs({ "id", "name", "username" }) do
            if type(value[key]) == "string" and value[key] ~= "" then
                return { [key] = key == "id" and normal_id(value.id) or value[key] }
            end
        end
    end
    return fail(ctx, "expected a reference: a name, an id, { id = ... } or { name = ... }")
end

local fillers = {
    array = fill_list,
    set = fill_list,
    map = fill_map,
    record = fill_record,
    foreign = check_foreign,
}

-- The value that a reference stands for. What is wrong with it is not said: it may be a secret.
local function dereference(ctx, field, reference)
    if ctx.as_is then
        return reference
    elseif not field.referenceable then
        return fail(ctx, "a vault reference is not allowed in this field")
    elseif not ctx.vault then
        return fail(ctx, "vault references are not looked up here")
    end
    local value, err = ctx.vault(reference)
    if value == nil then
        return fail(ctx, err)
    end
    local inner = context.take("")
    value = fill(inner, field, value)
    if #inner.errors > 0 then
        return fail(ctx, "what " .. reference .. " refers to is not valid in this field")
    end
    context.give_back(inner)
    context.note_reference(ctx, reference)
    return value
end

-- An id or a text of a plugin's configuration that nobody gives.
local function drawn(field)
    if field.uuid then
        return require("kong.tools.uuid").uuid()
    end
    return field.type == "string" and require("kong.tools.rand").random_string() or nil
end

-- Checks one value and returns it with defaults; errors go to the context.
fill = function(ctx, field, value)
    -- The first byte settles it for most, and that the JIT compiles.
    local may_refer = type(value) == "string" and byte(value) == BRACE
    if may_refer and find(value, "^{vault://.*}$") and (field.referenceable or not ctx.as_is) then
        return dereference(ctx, field, value)
    end
    if is_null(value) then
        local is_adopted = plans.is_adopted(field)
        if value == NULL and is_adopted then
            value = nil -- and no default
        else
            value = default_of(field)
            if value == nil and is_adopted and ctx.depth > 1 and field.auto then
                value = drawn(field)
            end
        end
        if value == nil then
            if field.required and not field.auto then
                fail(ctx, "required field missing")
            end
            return nil
        end
    elseif field.eq == NULL then
        return fail(ctx, field.err or "value must be null")
    end
    if not has_type(value, field.type) then
        return fail(ctx, "expected " .. (types.NAMES[field.type] or field.type))
    end
    local errors_before = #ctx.errors
    local filler = fillers[field.type]
    if filler and (field.type ~= "record" or field.fields) then
        if field.type == "foreign" then
            value = filler(ctx, value)
        else
            value = filler(ctx, field, value)
        end
    end
    if #ctx.errors == errors_before then
        check_rules(ctx, field, value)
    end
    if field.uuid and #ctx.errors == errors_before then
        value = normal_id(value)
    end
    if field.normalize and #ctx.errors == errors_before then
        value = field.normalize(value)
    end
    return value
end

--- Checks a value as `validate` does, by walking over the schema.
-- @tparam[opt] boolean is_lenient what this version does not support is no error, but the fourth
-- that is returned: an array of `{ path =, message = }`
function _M.walk(definition, value, path, vault, is_lenient)
    local ctx = context.take(path or "", vault, MAX_ERRORS)
    ctx.waived = is_lenient and {} or nil
    if not has_type(value, "record") then
        fail(ctx, "expected a record")
        return nil, ctx.errors
    end
    local ok, filled = pcall(fill_record, ctx, definition, value)
    if not ok and filled ~= context.ENOUGH then
        error(filled, 0)
    elseif #ctx.errors > 0 then
        return nil, ctx.errors
    end
    context.give_back(ctx)
    return filled, nil, ctx.references, ctx.waived
end

--- Checks a value against a schema and fills in the defaults.
-- Errors are collected, 101 at most. The given value is not changed. Yields where `vault` does; the
-- cost is linear in the size of the value. What is right is told by a generated function, all else
-- by a walk over the schema.
-- @tparam table definition schema (a record: it has `fields`)
-- @param value what to check, any Lua value
-- @tparam[opt=""] string path where the value stands, for the messages
-- @tparam[opt] function vault looks references up, of gateway.config.vault
-- @treturn table|nil a new table with defaults filled, unset fields nil
-- @treturn nil|table array of `{ path =, keys =, message = }` when the value is not valid: where it
-- stands as a text, and as the keys below `path`, indices of lists from 0. With `known`, the fields
-- that there are in place of an unknown one; with `unless` of gateway.schema.entity_checks; with
-- `is_unsupported` where this version is what does not support it
-- @treturn nil|table array of `{ keys =, text = }`: the references that were looked up
function _M.validate(definition, value, path, vault)
    if has_type(value, "record") then
        local ok, filled = pcall(generated.record(definition), value)
        if ok and filled then
            return filled
        end
    end
    return _M.walk(definition, value, path, vault)
end

--- Checks a record as it is: nothing is filled in, and references to vaults stay what they are.
-- @tparam table definition schema
-- @tparam table record
-- @tparam[opt=false] boolean is_partial required fields may be missing
-- @treturn nil|table errors as of `validate`
function _M.check(definition, record, is_partial)
    local ctx = context.take("")
    ctx.as_is = { is_partial = is_partial }
    fill_record(ctx, definition, record)
    context.give_back(ctx)
    return #ctx.errors > 0 and ctx.errors or nil
end

--- Checks one value against one field definition, as it is: see `check`.
-- @tparam table field definition
-- @param value
-- @treturn nil|table errors as of `validate`
function _M.check_field(field, value)
    local ctx = context.take("")
    -- a record of it has its fields filled in
    ctx.as_is, ctx.depth, ctx.keys[1] = {}, 1, ""
    fill(ctx, field, value)
    ctx.depth = 0
    for _, err in ipairs(ctx.errors) do
        table.remove(err.keys, 1)
        if err.of_record then
            table.remove(err.of_record.keys, 1)
        end
    end
    context.give_back(ctx)
    return #ctx.errors > 0 and ctx.errors or nil
end

--- Checks one value against one field definition.
-- @tparam table field definition
-- @param value
-- @treturn string|nil the first error's message, nil when the value is valid
function _M.first_error(field, value)
    local ctx = context.take("")
    fill(ctx, field, value)
    context.give_back(ctx)
    return ctx.errors[1] and ctx.errors[1].message
end

--- As those of gateway.schema.plan.
_M.fields, _M.field = plans.fields, plans.field

host.fails = _M.first_error
host.field = _M.field

-- The fields that shorthands stand for, in a new table; nil where one is wrong.
local function expand(definition, value)
    local ctx = context.take("")
    local expanded = shorthands.expand(ctx, definition, value, lent)
    context.give_back(ctx)
    return #ctx.errors == 0 and expanded or nil
end

generated.lend({
    absent = find_absent,
    expand = expand,
    lent = lent_to_checks,
    run = run,
    follow = set_followers,
})

--- As `to_json.entity`.
_M.to_json_entity = to_json.entity

return _M
