--- Entities as rows of a table: a few telling columns of each kind, derived from its schema.

local certificate = require("cli.commands.certificate")
local cjson = require("cjson")
local entities = require("gateway.entities")

local _M = {}

local NULL = cjson.null

-- Telling, where a kind has them: beside its name, and what else makes an entity unique.
local ALSO = { "algorithm", "weight", "enabled", "tags", "id" }

-- What answers have of an entity beside its fields, and what its certificate says.
local SHOWN = { certificates = { "snis", "names", "expires" }, snis = { "names", "expires" } }

local function field_of(definition, name)
    for _, entry in ipairs(definition.fields) do
        if entry[name] then
            return entry[name]
        end
    end
    return nil
end

--- The columns of a kind.
-- @tparam string kind
-- @tparam boolean reveals whether secrets are among them
-- @treturn {table,...} `{ name =, reference = kind that it refers to }`
function _M.columns(kind, reveals)
    local definition, columns, seen = entities.get(kind), {}, {}
    local function add(name)
        local field = name and not seen[name] and field_of(definition, name)
        if field and (reveals or not entities.is_secret(field, name)) then
            seen[name] = true
            columns[#columns + 1] = { name = name, reference = field.reference }
        end
    end
    add(definition.endpoint_key)
    for _, list in ipairs({ definition.cache_key or {}, definition.identity or {} }) do
        for _, name in ipairs(list) do
            add(name)
        end
    end
    for _, reference in ipairs(entities.foreign(kind)) do
        add(reference.name)
    end
    for _, name in ipairs(SHOWN[kind] or {}) do
        columns[#columns + 1] = { name = name }
    end
    for _, entry in ipairs(reveals and definition.fields or {}) do
        local name, field = next(entry)
        add(entities.is_secret(field, name) and name or nil)
    end
    for _, name in ipairs(ALSO) do
        add(name)
    end
    return columns
end

local text_of

local function table_text(value)
    local parts = {}
    for i, item in ipairs(value) do
        parts[i] = text_of(item)
    end
    if #parts == 0 then
        for key, item in pairs(value) do
            parts[#parts + 1] = key .. "=" .. text_of(item)
        end
        table.sort(parts)
    end
    return table.concat(parts, ",")
end

text_of = function(value)
    if value == nil or value == NULL then
        return ""
    elseif type(value) == "table" then
        return table_text(value)
    elseif type(value) == "number" then
        return ("%.14g"):format(value)
    end
    value = tostring(value)
    -- A certificate is no cell.
    return value:find("-----BEGIN ", 1, true) and "" or value
end

local function cell(column, entity, names)
    local value = entity[column.name]
    if column.reference and type(value) == "table" then
        return text_of(names[column.reference][value.id] or value.id)
    end
    return text_of(value)
end

--- Adds what certificates say: the names that they are for, and until when.
-- @tparam string kind
-- @tparam {table,...} list of entities, changed in place
-- @tparam table certificates id -> entity, of those that they refer to
-- @tparam number now seconds since 1970
function _M.add_certificates(kind, list, certificates, now)
    for _, entity in ipairs(SHOWN[kind] and list or {}) do
        local reference = entity.certificate
        local found = kind == "certificates" and entity
            or type(reference) == "table" and certificates[reference.id]
        if found then
            entity.names = certificate.names(found.cert)
            entity.expires = certificate.expiry_text(certificate.expiry(found.cert), now)
        end
    end
end

--- The ids that entities refer to.
-- @tparam {table,...} columns
-- @tparam {table,...} list of entities
-- @treturn table kind -> array of ids, each once
function _M.references(columns, list)
    local found, seen = {}, {}
    for _, column in ipairs(columns) do
        local kind = column.reference
        found[kind or 0] = kind and found[kind] or {}
        for _, entity in ipairs(kind and list or {}) do
            local value = entity[column.name]
            local id = type(value) == "table" and value.id
            if id and not seen[id] then
                seen[id] = true
                table.insert(found[kind], id)
            end
        end
    end
    found[0] = nil
    return found
end

--- The rows; columns in which nobody has anything are left out.
-- @tparam {table,...} columns
-- @tparam {table,...} list of entities
-- @tparam table names kind -> id -> name, for references
-- @treturn {table,...} rows of texts, the first one the titles
function _M.rows(columns, list, names)
    local rows = { {} }
    for r = 1, #list do
        rows[r + 1] = {}
    end
    for _, column in ipairs(columns) do
        local cells, is_used = {}, column.name == "id"
        for r, entity in ipairs(list) do
            cells[r] = cell(column, entity, names)
            is_used = is_used or cells[r] ~= ""
        end
        if is_used then
            table.insert(rows[1], column.name)
            for r, text in ipairs(cells) do
                table.insert(rows[r + 1], text)
            end
        end
    end
    return rows
end

return _M
