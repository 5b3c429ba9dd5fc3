--- Answers what plugins of all workers ask of entities (`kong.db`, gateway.kit.db.remote).
--
-- An answer is `{ text = of one entity }`, `{ rows = texts, offset = }` or `{ err = { code =,
-- message =, fields =, name = } }`, an error of gateway.kit.db_errors.
-- @module gateway.control.asked

local entities = require("gateway.entities")
local entity_text = require("gateway.store.entity_text")
local errors = require("gateway.kit.db.errors")
local files = require("gateway.store.files")
local plan = require("gateway.schema.plan")
local queue = require("gateway.writer.queue")
local refusals = require("gateway.change.refusals")
local remote = require("gateway.kit.db.remote")
local role = require("gateway.writer.role")
local runs = require("gateway.change.run")
local schema = require("gateway.schema")
local text_rules = require("gateway.schema.text")

local CODES = errors.codes
-- Tables in tables of what is sent.
local MAX_DEPTH = 100
local VIOLATION = "schema violation (%s: %s)"

local _M = {}

-- Workers that have not the role yet, or no more: another one answers.
local SILENT = { left = true, starting = true, waiting = true }

local live

local function failed(code, message, fields)
    return { err = { code = code, message = message, fields = fields } }
end

local function unreadable(err)
    return failed(CODES.DATABASE_ERROR, err.message or err.err)
end

-- Reading ----------------------------------------------------------------------------------------

-- The fields of a cache key: the last value may have colons.
local function values_of(kind, text)
    local definition, values, rest = entities.get(kind), {}, text
    for i, name in ipairs(definition.cache_key) do
        local value = i < #definition.cache_key and rest:match("^([^:]*):") or rest
        rest = rest:sub(#value + 2)
        if value ~= "" then
            local field = schema.field(definition, name)
            values[name] = field.type == "foreign" and { id = value } or value
        end
    end
    return values
end

-- The row of an entity by one of its values; nil and an error; nil alone: there is none.
local function find_row(kind, by, value)
    local row, err
    if by == "id" then
        row, err = role.read("get", kind, value)
        row = row and row.id == value and row or nil
    elseif by == "cache_key" then
        row, err = role.read("find", kind, values_of(kind, value), "")
    else
        local rows
        rows, err = role.read("list", kind, { size = 1, where = { [by] = value } })
        row = rows and rows[1]
    end
    if not row and type(err) == "table" and err.err ~= "not found" then
        return nil, err
    end
    return row
end

local verbs = {}

function verbs.find(question)
    local row, err = find_row(question.kind, question.by, question.value)
    if err then
        return unreadable(err)
    end
    return { text = row and row.text }
end

function verbs.page(question)
    local rows, offset = role.read("list", question.kind, {
        size = question.size,
        offset = question.offset,
        tags = question.tags,
        where = question.where,
    })
    if rows then
        local texts = {}
        for i, row in ipairs(rows) do
            texts[i] = row.text
        end
        return { rows = texts, offset = offset }
    elseif offset.err == "invalid offset" then
        local message = "'%s' is not a valid offset: bad offset string"
        return failed(CODES.INVALID_OFFSET, message:format(tostring(question.offset)))
    elseif offset.err == "invalid tags" then
        local what = { tags = "invalid filter syntax" }
        return failed(CODES.INVALID_OPTIONS, "invalid option (tags: invalid filter syntax)", what)
    end
    return unreadable(offset)
end

-- Changing ---------------------------------------------------------------------------------------

local function not_found(question)
    local words = question.by and "could not find the entity with '%s'"
        or "could not find the entity with primary key '%s'"
    local key = { [question.by or "id"] = question.key }
    return failed(CODES.NOT_FOUND, words:format(errors.key(key)), key)
end

-- What gateway.change.refusals says, as `kong.db` does.
local function error_of(question, refusal)
    if refusal == refusals.NOT_FOUND or refusal.status == 404 then
        return not_found(question)
    end
    local code = refusal.code or CODES.DATABASE_ERROR
    return failed(code, refusal.message, refusal.fields)
end

-- A number or boolean of a text by which a field is looked up.
local function value_of(question)
    local field = schema.field(entities.get(question.kind), question.by)
    if field.type == "boolean" then
        return question.key == "true"
    elseif field.type == "foreign" then
        return { id = question.key }
    elseif field.type ~= "string" then
        return tonumber(question.key)
    end
    return question.key
end

-- The key and the value of an operation, where one of `kong.db` has named its entity by a field.
local function by_field(question, value)
    local row, err = find_row(question.kind, question.by, question.key)
    if err then
        return nil, unreadable(err)
    elseif question.method == "PUT" then
        value[question.by] = value_of(question)
        return row and row.id or files.draw_uuid()
    end
    return row and row.id
end

-- What is made of the answer to a question that was asked again: the entity that it has made.
local function made_before(question, tries, refusal)
    if question.method == "POST" and tries > 1 and refusal.code == CODES.PRIMARY_KEY_VIOLATION then
        return verbs.find({ kind = question.kind, by = "id", value = question.value.id })
    end
    return nil
end

-- What no client of the Admin API could have sent: nil, or what is wrong.
local function wrong_text(value, depth)
    if type(value) == "string" then
        local is_utf8, why = text_rules.utf8(value)
        return value:find("\0", 1, true) and "a NUL byte" or not is_utf8 and why or nil
    elseif type(value) ~= "table" then
        return nil
    elseif depth > MAX_DEPTH then
        return "is nested too deep"
    end
    for key, item in pairs(value) do
        local why = wrong_text(key, depth + 1) or wrong_text(item, depth + 1)
        if why then
            return why
        end
    end
    return nil
end

-- The same of what is to be stored: the error.
local function wrong_value(question, value)
    local by = question.method == "PUT" and question.by
    local why = by and wrong_text(question.key, 0)
    if why then
        return failed(CODES.SCHEMA_VIOLATION, VIOLATION:format(by, why), { [by] = why })
    end
    for name, item in pairs(value) do
        why = wrong_text(name, 0) or wrong_text(item, 0)
        if why then
            local message = VIOLATION:format(tostring(name), why)
            return failed(CODES.SCHEMA_VIOLATION, message, { [name] = why })
        end
    end
    return nil
end

function verbs.change(question, tries)
    if not live.is_writable then
        return failed(CODES.OPERATION_UNSUPPORTED, "a file is the configuration")
    end
    local key, value = question.key, plan.merged(question.value or {}, {})
    local wrong = wrong_value(question, value)
    if wrong then
        return wrong
    end
    if question.ttl then
        value.ttl = question.ttl
    end
    if question.by then
        local refused
        key, refused = by_field(question, value)
        if refused then
            return refused
        elseif not key then
            return question.method == "DELETE" and {} or not_found(question)
        end
    end
    local by = question.plugin and "plugin " .. question.plugin or "a plugin"
    local operation = {
        method = question.method,
        kind = question.kind,
        key = key,
        value = value,
        is_kept = question.is_kept,
    }
    local done, refusal = runs.run(live, { operation }, 0, by)
    if not done then
        return made_before(question, tries, refusal) or error_of(question, refusal)
    end
    local entity = done.results[1].entity
    return { text = entity and entity_text.encode(entity) }
end

--- Answers from then on.
-- @tparam table of_control what gateway.admin is given
-- @phases init_worker
function _M.start(of_control)
    live = of_control
    remote.serve(function(question, tries)
        if SILENT[queue.state().state] then
            return nil
        end
        return verbs[question.verb](question, tries)
    end)
end

return _M
