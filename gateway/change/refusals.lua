--- Why a change is refused, in Kong's words: what clients of its Admin API read.
--
-- A refusal is `{ status =, message =, name =, code =, fields = }`; without name and code where
-- Kong has none.
-- @module gateway.change.refusals

local cjson = require("cjson")
local entities = require("gateway.entities")
local nested = require("gateway.schema.nested")
local schema = require("gateway.schema")
local secrets = require("gateway.schema.secrets")
local text = require("gateway.schema.text")

local NULL = cjson.null
-- Bytes of one message: some quote what was sent.
local MAX_MESSAGE = 300

-- Kong's numbers.
local INVALID, PRIMARY_KEY, FOREIGN_KEY, UNIQUE, REFERENCED = 2, 3, 4, 5, 19

-- Status of what the store or its files refuse, by the words of gateway.writer.queue; 500 else.
local STATUS = {
    busy = 503,
    changed = 503,
    full = 507,
    locked = 503,
    moved = 503,
    ["no memory"] = 507,
    ["not ready"] = 503,
    ["read only"] = 503,
    ["reference missing"] = 400,
    ["unique violation"] = 409,
    unbuildable = 400,
}

-- What is said of a word without a message.
local MESSAGES = { changed = "too many concurrent changes; try again" }

local _M = {}

--- Ends an operation.
-- @tparam table refusal
function _M.throw(refusal)
    error({ refusal = refusal }, 0)
end

--- What `throw` has thrown; a program's fault goes on.
-- @param thrown
-- @treturn table refusal
function _M.thrown(thrown)
    if type(thrown) ~= "table" or not thrown.refusal then
        error(thrown, 0)
    end
    return thrown.refusal
end

--- The status of what cannot be done.
-- @tparam string word of gateway.writer.queue
-- @treturn number
function _M.status(word)
    return STATUS[word] or 500
end

--- Nobody waits for the answer any more: nginx's own status, for its logs.
_M.CLIENT_LEFT = { status = 499, message = "the client closed the connection" }

--- There is nothing of this name.
_M.NOT_FOUND = { status = 404, message = "Not found" }

local function quoted(value)
    if type(value) == "string" then
        return '"' .. value .. '"'
    elseif type(value) ~= "table" then
        return tostring(value == NULL and "null" or value)
    end
    local names, parts = {}, {}
    for name in pairs(value) do
        names[#names + 1] = name
    end
    table.sort(names)
    for i, name in ipairs(names) do
        parts[i] = name .. "=" .. quoted(value[name])
    end
    return "{" .. table.concat(parts, ",") .. "}"
end

local function line_of(keys, message)
    if #keys == 0 then
        return message
    end
    local names = {}
    for i, key in ipairs(keys) do
        names[i] = tostring(type(key) == "number" and key + 1 or key)
    end
    return table.concat(names, ".") .. ": " .. message
end

--- An entity is not as its schema wants it.
-- @tparam {table,...} errors of gateway.schema
-- @treturn table
function _M.invalid(errors)
    local fields, lines = {}, {}
    nested.each(errors, function(keys, message, is_of_record)
        message = text.shorten(message, MAX_MESSAGE)
        nested.place(fields, keys, message, is_of_record)
        lines[#lines + 1] = line_of(keys, message)
    end)
    local count = #lines > 1 and #lines .. " schema violations" or "schema violation"
    return {
        status = 400,
        message = string.format("%s (%s)", count, table.concat(lines, "; ")),
        name = "schema violation",
        code = INVALID,
        fields = fields,
    }
end

--- One field is not as it has to be.
-- @tparam string field
-- @tparam string message
-- @treturn table
function _M.invalid_field(field, message)
    return _M.invalid({ { keys = { field }, message = message } })
end

--- A reference has a name where entities have none. Kong's paths know them by another's.
-- @tparam table draft gateway.change.draft
-- @tparam table field of gateway.entities' `foreign`
-- @tparam string name
-- @treturn table
function _M.id_wanted(draft, field, name)
    local known_by = entities.get(field.reference).known_by
    local other = known_by and _M.must(draft:by_name(known_by.kind, name))
    local message = other
            and ("expected an id; that of '%s' is %s"):format(name, other[known_by.field].id)
        or ("expected the id of an entity of '%s'"):format(field.reference)
    return _M.invalid_field(field.name, message)
end

--- An entity with this id is there already.
-- @tparam string id
-- @treturn table
function _M.known_id(id)
    local key = { id = id }
    return {
        status = 409,
        message = string.format("primary key violation on key '%s'", quoted(key)),
        name = "primary key violation",
        code = PRIMARY_KEY,
        fields = key,
    }
end

--- A reference leads to nothing.
-- @tparam {string,...} keys to the field
-- @tparam string kind that it refers to
-- @tparam table reference `{ id = }` or `{ name = }`
-- @treturn table
function _M.no_reference(keys, kind, reference)
    local message = "the foreign key '%s' does not reference an existing '%s' entity."
    local fields = {}
    nested.place(fields, keys, reference)
    return {
        status = 400,
        message = string.format(message, quoted(reference), kind),
        name = "foreign key violation",
        code = FOREIGN_KEY,
        fields = fields,
    }
end

local function referenced(err)
    if err.by_list then
        local one = err.kind:gsub("_", " "):gsub("s$", "")
        local words = "%s %s is still referenced by %s (id = %s)"
        return {
            status = 400,
            message = string.format(words, one, err.value, err.by, err.by_id),
            name = "referenced by others",
            code = REFERENCED,
        }
    end
    local message = "an existing '%s' entity references this '%s' entity"
    return {
        status = 400,
        message = string.format(message, err.by, err.kind),
        name = "foreign key violation",
        code = FOREIGN_KEY,
        fields = { ["@referenced_by"] = err.by },
    }
end

local function taken(err, entity)
    local fields, definition = {}, entities.get(err.kind)
    for name in err.field:gmatch("[^, ]+") do
        local field = schema.field(definition, name)
        local value = entity and entity[name]
        if secrets.is_secret(field, name) then
            value = secrets.HIDDEN
        end
        fields[name] = value == nil and NULL or value
    end
    return {
        status = 409,
        message = string.format("UNIQUE violation detected on '%s'", quoted(fields)),
        name = "unique constraint violation",
        code = UNIQUE,
        fields = fields,
    }
end

local function missing(err)
    for _, fields in ipairs({ entities.foreign(err.kind), entities.id_lists(err.kind) }) do
        for _, field in ipairs(fields) do
            if field.name == err.field then
                local keys = field.keys or { field.name }
                return _M.no_reference(keys, field.reference, { id = err.value })
            end
        end
    end
    return nil
end

-- The field of a configuration stands in its own: "config.origins".
local function invalid_path(path, message)
    local keys = {}
    for key in path:gmatch("[^.]+") do
        keys[#keys + 1] = key
    end
    return _M.invalid({ { keys = keys, message = message } })
end

--- What gateway.writer.queue said.
-- @tparam table err
-- @tparam[opt] table entity that is to blame
-- @treturn table
function _M.of(err, entity)
    local word = err.err
    if word == "unique violation" then
        return taken(err, entity)
    elseif word == "reference missing" then
        return missing(err)
    elseif word == "referenced" then
        return referenced(err)
    elseif (word == "unbuildable" or word == "invalid") and err.field then
        return invalid_path(err.field, err.reason or err.message or "cannot be stored")
    end
    local message = err.message or MESSAGES[word] or word
    return { status = _M.status(word), message = message, name = word }
end

--- The result of a read, whose error ends the operation.
-- @param value
-- @tparam[opt] table err of gateway.writer.queue
-- @return the same
function _M.must(value, err)
    if value == nil and err then
        _M.throw(_M.of(err))
    end
    return value, err
end

return _M
