--- Fields that stand for others, such as `url` and the former names of fields: replaced before the
-- rest of a record is looked at.
--
-- `shorthand_fields = { { name = { type =, func = function(value) return { other = } end } } }`.
-- With a `deprecation` what stands under the names of today wins, else what the shorthand says.
-- @module gateway.schema.shorthands

local cjson = require("cjson")
local context = require("gateway.schema.context")
local equal = require("gateway.schema.equal")
local plans = require("gateway.schema.plan")
local secrets = require("gateway.schema.secrets")
local types = require("gateway.schema.types")

local concat = table.concat

local NULL = cjson.null
local MISMATCH = "both deprecated and new field are used but their values mismatch: "

local _M = {}

local fail = context.fail
local is_null = types.is_null

-- A former name may stand beside the one of today, as in what was answered; not with another value.
local function check_former(ctx, name, field, given, value)
    for _, instead in ipairs(plans.instead_of(field) or {}) do
        local of_today = plans.former_value(instead, value)
        if of_today and of_today ~= NULL and not equal(of_today, given) then
            local both = { name, concat(instead.path, ".") }
            -- what may stand for a secret may be one
            if not field.referenceable and not secrets.is_secret(field, name) then
                both[1] = name .. " = " .. tostring(given)
                both[2] = both[2] .. " = " .. tostring(of_today)
            end
            return fail(ctx, MISMATCH .. concat(both, " vs "), name)
        end
    end
    return true
end

-- Puts what a shorthand stands for into a record.
local function put(record, fields, is_former)
    for name, item in pairs(fields) do
        local known = record[name]
        if type(item) == "table" then
            known = type(known) == "table" and known or {}
            record[name] = is_former and plans.merged(item, known, true, 1)
                or plans.merged(known, item, false, 1)
        elseif not is_former or is_null(known) then
            record[name] = item
        end
    end
end

--- Replaces shorthands; errors go to the context.
-- @tparam table ctx
-- @tparam table definition schema with `shorthand_fields`
-- @tparam table value a record
-- @tparam table lent `enter(ctx, key, field, value)`, which checks a field, and `run(fn, ...)`
-- @treturn table the same where it has none, else a new one
function _M.expand(ctx, definition, value, lent)
    local out = value
    for _, entry in ipairs(definition.shorthand_fields) do
        local name, field = next(entry)
        local given = value[name]
        if given ~= nil and out == value then
            out = {}
            for key, item in pairs(value) do
                out[key] = item
            end
        end
        if given ~= nil then
            out[name] = nil
        end
        local counts = not is_null(given) or (given ~= nil and plans.is_adopted(definition))
        local errors_before = #ctx.errors
        if counts then
            lent.enter(ctx, name, field, given)
        end
        if counts and #ctx.errors == errors_before then
            local fields, err = nil, nil
            if is_null(given) or check_former(ctx, name, field, given, value) then
                fields, err = lent.run(field.func, given)
            end
            if fields then
                put(out, fields, field.deprecation)
            elseif err then
                fail(ctx, err, name)
            end
        end
    end
    return out
end

return _M
