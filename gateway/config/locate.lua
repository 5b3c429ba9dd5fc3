--- Where errors stand: the name of the entity that each is about, and its line.
-- @module gateway.config.locate

local document = require("gateway.config.document")
local entities = require("gateway.entities")
local nearest = require("sluice.nearest")
local placeholder = require("sluice.placeholder")
local schema = require("gateway.schema")
local text = require("gateway.schema.text")

local char = string.char
local format = string.format

local MAX_PATH = 200
local MAX_NAME = 60
-- Unknown fields of which a file is told what was probably meant.
local MAX_HINTS = 20
-- Letters of a beginning that may stand for a name.
local LEAST_BEGINNING = 4
-- What an entity is known by, the first that it has. Keys of credentials are secrets.
local NAMES = { "name", "username", "custom_id", "target", "id" }

local _M = {}

-- The next key of a path that gateway.schema has written, and where it ends. Indices count from 1.
local function next_key(path, at)
    local key, finish = path:match("^%.?([%w_@$~*-]+)()", at)
    if key then
        return key, finish
    end
    key, finish = path:match("^%[(%d+)%]()", at)
    if key then
        return tonumber(key) + 1, finish
    end
    key, finish = path:match('^%["([^"]*)"%]()', at)
    if key then
        key = key:gsub("\\x(%x%x)", function(hex)
            return char(tonumber(hex, 16))
        end)
    end
    return key, finish
end

local function name_of(entity)
    for _, field in ipairs(NAMES) do
        local name = type(entity) == "table" and entity[field]
        if type(name) == "string" then
            return text.shorten(name, MAX_NAME):gsub("%c", "?")
        end
    end
    return nil
end

-- The shorthand in an entity that a field comes from which is not there itself: `url`.
local function written_as(field, entity, key)
    for _, entry in ipairs(entity[key] == nil and field and field.shorthand_fields or {}) do
        local name, shorthand = next(entry)
        local fields = type(entity[name]) == "string" and shorthand.func(entity[name])
        if fields and fields[key] ~= nil then
            return name
        end
    end
    return nil
end

-- The schema's field under a key of a record or list, as far as that is known here.
local function field_within(field, key)
    if not field or type(key) == "number" then
        return field and field.elements
    end
    return field.fields and schema.field(field, key)
end

local IS_LIST = { array = true, set = true }
local IS_NUMBER = { integer = true, number = true }
local BOOLEANS = { ["true"] = true, yes = true, on = true, ["false"] = true, no = true, off = true }

-- What to write in the place of a value. The value is not shown, which may be a secret.
local function correction(field, value)
    local of = field and field.type
    if of == "string" and type(value) == "number" then
        return "; write it in quotes"
    elseif of == "string" then
        return type(value) == "string" and field.hint and field.hint(value) or nil
    elseif IS_LIST[of] and type(value) == "string" then
        return "; write a list: [...]"
    elseif
        type(value) == "string"
        and (of == "boolean" and BOOLEANS[value] or IS_NUMBER[of] and tonumber(value))
    then
        return "; write it without quotes"
    end
    return nil
end

-- What to write where a whole collection is not as it has to be.
local function beginning(path, value)
    if path == "_format_version" and value == nil then
        return '; begin the file with _format_version: "3.0"'
    elseif type(value) == "table" and value[1] == nil and entities.get(path) then
        return "; begin each of its entities with -"
    end
    return nil
end

local function locate(err, top, value, lines)
    local at, kind, field = 1, nil, top
    local label, shorthand, written = "", nil, nil
    while at <= #err.path and type(value) == "table" do
        local key, finish = next_key(err.path, at)
        if not key then
            break
        end
        local where = lines[value]
        shorthand = written_as(field, value, key)
        written = value[shorthand or key]
        err.line = where and where[shorthand or key] or err.line
        value, field = value[key], field_within(field, key)
        label = label .. err.path:sub(at, finish - 1)
        at = finish
        if kind and type(key) == "number" then
            field = kind
            err.kind, err.value, err.field = kind.name, value, err.path:sub(at)
            if name_of(value) then
                err.entity = name_of(value)
                label = format('%s "%s"', label, err.entity)
            end
        end
        kind = type(key) == "string" and entities.get(key)
    end
    if at > #err.path then
        local found = placeholder.in_value(written)
        if found then
            err.hint, err.is_hinted_once = "; " .. found, nil
        end
        err.hint = err.hint
            or shorthand and "; it is from " .. shorthand
            or correction(field, value)
            or beginning(err.path, value)
    end
    err.where = text.shorten(label .. err.path:sub(at), MAX_PATH)
    err.path = text.shorten(err.path, MAX_PATH)
end

-- The only one of some names that goes on as this one.
local function continued(key, names)
    local found
    for _, name in ipairs(#key >= LEAST_BEGINNING and names or {}) do
        if name:sub(1, #key) == key then
            if found then
                return nil
            end
            found = name
        end
    end
    return found
end

-- What was probably meant by an unknown field: one that is written alike, or begins alike; by
-- `name`, what else entities of a kind are known by.
local function nearest_field(err)
    local names = {}
    for _, fields in ipairs(err.known) do
        for name in pairs(fields) do
            names[#names + 1] = name
        end
    end
    table.sort(names)
    local key, near = err.key, nil
    if type(key) == "string" then
        local own = err.field == ".name" and entities.get(err.kind or "")
        near = nearest.find(key, names)
            or continued(key:gsub("-", "_"), names)
            or (own and own.endpoint_key)
    end
    return near and format("; did you mean %s?", near) or nil
end

-- Errors of the whole text first, and last that there are more.
local function in_order(errors)
    local places = {}
    for i, err in ipairs(errors) do
        places[err] = i
    end
    table.sort(errors, function(a, b)
        if a.is_end or b.is_end then
            return b.is_end and not a.is_end
        end
        local line, other = a.line or 0, b.line or 0
        return line < other or (line == other and places[a] < places[b])
    end)
end

-- Leaves a long hint, such as the list of all plugins, to the first error that has one.
local function hint_once(errors)
    local is_said = false
    for _, err in ipairs(errors) do
        if err.is_hinted_once then
            err.hint = not is_said and err.hint or nil
            is_said = true
        end
    end
end

--- Adds to each error and warning what is known of its place: `entity`, the name of the innermost
-- entity, with its `kind`, its `value` as the file has it, and the path in it, `field`; `where`,
-- the path with the names of the entities; `line`, unless the text is one, by which they are
-- sorted then; `hint`, what was probably meant. Decodes the text once more, so that a file without
-- either does not pay for it.
-- @tparam table errors of gateway.config.report
-- @tparam {table,...} warnings
-- @tparam table top schema of a file
-- @tparam string source the text that they are about
-- @tparam[opt] string kind as for gateway.config.document
-- @tparam[opt] function pause as for gateway.config.document
function _M.run(errors, warnings, top, source, kind, pause)
    local lines = {}
    local value = document.decode(source, kind, { lines = lines, pause = pause })
    local hints = 0
    for _, err in ipairs(errors) do
        locate(err, top, value, lines)
        if err.known and hints < MAX_HINTS then
            hints = hints + 1
            err.hint = nearest_field(err)
        end
    end
    in_order(errors)
    hint_once(errors)
    for _, warning in ipairs(warnings) do
        locate(warning, top, value, lines)
    end
    in_order(warnings)
end

return _M
