--- What is kept in place of a value that a client or file gives, such as the hash of a password.
--
-- A schema names them: `stored_as = { field = function(value, entity) return kept end }`.
-- They are made once the entity is checked and its references are ids. A field that was not given,
-- as in a PATCH, stays what it is. Schemas written for Kong say it by `transformations`, of which
-- one may read several fields, and refuse. A file with `_transform: false` has what is kept (as
-- exports do).
-- @module gateway.schema.transformations

local cjson = require("cjson")
local equal = require("gateway.schema.equal")
local plans = require("gateway.schema.plan")
local rules = require("gateway.schema.rules")

local ipairs = ipairs
local next = next
local pairs = pairs
local tostring = tostring
local type = type

local NULL = cjson.null
local MUTUALLY = "all or none of these fields must be set: "

local _M = {}

local function is_set(value)
    if type(value) == "table" then
        return next(value) ~= nil
    end
    return value ~= nil and value ~= NULL and value ~= ""
end

local function get(record, name)
    return plans.at_path(record, plans.parts(name))
end

-- Adds what a transformation is called with; false where one is missing.
local function add_arguments(arguments, names, asked, record)
    for _, name in ipairs(names or {}) do
        local value = get(record, name)
        if not is_set(get(asked, name)) or not is_set(value) then
            return false
        end
        arguments[#arguments + 1] = value
    end
    return true
end

-- One transformation: what it makes, nil where it does not run.
local function transformed(item, fn, record, asked)
    if not item.input and not item.needs then
        return fn(record)
    end
    local arguments = {}
    if
        add_arguments(arguments, item.input, asked, record)
        and add_arguments(arguments, item.needs, record, record)
    then
        return fn(unpack(arguments))
    end
end

--- Runs the transformations of a schema of Kong's: `{ input = {...}, needs = {...}, on_write =,
-- on_read = }`. One runs where all that it names is set: its input in what was given, what it needs
-- in the entity.
-- @tparam table definition schema
-- @tparam table entity stays as it is
-- @tparam[opt] table given what a client gave; the entity
-- @tparam string context "select" reads, all others write
-- @treturn table|nil the same, or a new one
-- @treturn nil|string what a transformation said
function _M.apply(definition, entity, given, context)
    local out, asked = entity, given or entity
    for _, item in ipairs(definition.transformations or {}) do
        local fn = item[context == "select" and "on_read" or "on_write"]
        if fn then
            local fields, err = transformed(item, fn, out, asked)
            if err then
                return nil, "transformation failed: " .. tostring(err)
            elseif fields then
                out, asked = plans.merged(out, fields), plans.merged(asked, fields)
            end
        end
    end
    return out
end

local function count_set(record, names)
    local count = 0
    for _, name in ipairs(names) do
        count = count + (is_set(get(record, name)) and 1 or 0)
    end
    return count
end

-- What a transformation needs and is no more as it is stored.
local function changed_need(item, record, stored)
    for _, name in ipairs(stored and item.needs or {}) do
        if not equal(get(record, name), get(stored, name)) then
            return name
        end
    end
    return nil
end

--- Checks that what transformations read was given together.
-- @tparam table definition schema
-- @tparam table entity
-- @tparam[opt] table given what a client gave; the entity
-- @tparam[opt] table stored the entity that is changed
-- @treturn {string,...} what is wrong
function _M.check(definition, entity, given, stored)
    local messages, asked = {}, given or entity
    for _, item in ipairs(definition.transformations or {}) do
        local input = item.input or {}
        local changed = changed_need(item, asked, stored) ~= nil
        if changed or count_set(asked, input) > 0 then
            local all = { unpack(input) }
            for _, name in ipairs(item.needs or {}) do
                all[#all + 1] = name
            end
            local record = changed and asked or entity
            local wrong
            for _, pair in ipairs({ { all, record }, { input, asked } }) do
                local count = count_set(pair[2], pair[1])
                if not wrong and count > 0 and count < #pair[1] then
                    wrong = pair[1]
                end
            end
            messages[#messages + 1] = wrong and MUTUALLY .. rules.quoted(wrong)
        end
    end
    return messages
end

--- Whether anything is kept in place of what is given.
-- @tparam table definition schema
-- @treturn boolean
function _M.has_any(definition)
    return (definition.stored_as or definition.transformations) ~= nil
end

--- Marks an entity of a file whose values are what is kept.
-- @tparam table definition schema
-- @tparam table entity
function _M.keep(definition, entity)
    entity.__is_kept = _M.has_any(definition) or nil
end

-- What was made of fields that were given once, and needs others that are now changed, is wrong.
local function outdated(definition, entity, given, stored)
    for _, item in ipairs(definition.transformations or {}) do
        local input, need = item.input or {}, changed_need(item, entity, stored)
        if need and count_set(given, input) == 0 and count_set(entity, input) > 0 then
            local all = { unpack(input) }
            all[#all + 1] = need
            return MUTUALLY .. rules.quoted(all)
        end
    end
    return nil
end

--- Puts what is kept into the place of what was given.
-- @tparam table definition schema
-- @tparam table entity is changed, unless something is wrong
-- @tparam table given the fields that count
-- @tparam[opt] table stored the entity that is changed
-- @treturn nil|string what is wrong
function _M.run(definition, entity, given, stored)
    local is_kept = entity.__is_kept
    entity.__is_kept = nil
    if is_kept then
        return nil
    end
    for name, transform in pairs(definition.stored_as or {}) do
        if type(given[name]) == "string" then
            entity[name] = transform(entity[name], entity)
        end
    end
    if not definition.transformations then
        return nil
    end
    local wrong = _M.check(definition, entity, given)[1]
        or outdated(definition, entity, given, stored)
    if wrong then
        return wrong
    end
    local out, err = _M.apply(definition, entity, given, "insert")
    for name, value in pairs(out or {}) do
        entity[name] = value
    end
    return err
end

return _M
