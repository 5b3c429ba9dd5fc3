--- Keys of entities in `kong.cache`, as `kong.db.<entity>:cache_key()` makes them: the kind, up to
-- five values, and a workspace, with colons in between.
--
-- There is one workspace here, and its keys end with nothing, whether its id was given or not. So
-- the writer knows each key that an entity can be kept under (gateway.writer.raising).
-- @module gateway.entities.cache_key

local cjson = require("cjson")

local concat = table.concat
local error = error
local format = string.format
local tostring = tostring
local type = type

local NULL = cjson.null
local VALUES = 5

local _M = {
    --- The id of the one workspace: Kong's own where it has no database.
    WORKSPACE = "0dc6f45b-8f8d-40d2-a504-473544ee190b",
}

local function text(value)
    return (value == nil or value == NULL) and "" or value
end

--- The key of values. Does not yield; some 200 ns.
-- @tparam string kind such as "consumers"
-- @tparam string first
-- @tparam[opt] string|number second the others; none, nil and null are ""
-- @tparam[opt] string|number third
-- @tparam[opt] string|number fourth
-- @tparam[opt] string|number fifth
-- @tparam[opt] string workspace that of the only one counts as none
-- @treturn string
function _M.of_values(kind, first, second, third, fourth, fifth, workspace)
    local behind = workspace ~= _M.WORKSPACE and text(workspace) or ""
    return format(
        "%s:%s:%s:%s:%s:%s:%s",
        kind,
        text(first),
        text(second),
        text(third),
        text(fourth),
        text(fifth),
        behind
    )
end

-- What stands in a key of a field; nil: it has nothing.
local function value_of(entity, name)
    local value = entity[name]
    if type(value) == "table" then
        -- that of a reference
        value = value.id
    end
    if value == nil or value == NULL then
        return nil
    end
    return tostring(value)
end

-- The key of these fields; nil where none of them has a value.
local function of_fields(kind, fields, entity)
    local parts, has_value = { kind }, false
    for i = 1, VALUES do
        local value = fields[i] and value_of(entity, fields[i])
        has_value = has_value or value ~= nil
        parts[i + 1] = value or ""
    end
    parts[VALUES + 2] = ""
    return has_value and concat(parts, ":") or nil
end

--- The key of an entity: of its schema's `cache_key`, or, where all of those fields are empty or
-- there are none, of its `primary_key`.
-- @tparam table schema `name`, `primary_key`, `cache_key`
-- @tparam table entity
-- @treturn string
-- @raise it is no table
function _M.of_entity(schema, entity)
    if type(entity) ~= "table" then
        error("key must be a string or an entity table", 2)
    end
    return schema.cache_key and of_fields(schema.name, schema.cache_key, entity)
        or of_fields(schema.name, schema.primary_key, entity)
        or _M.of_values(schema.name)
end

--- All keys that an entity can be kept under: of its id, of its `cache_key`, and of each field that
-- is unique or refers to another entity, since plugins keep those, too: all of a consumer's, say.
-- @tparam table of layout of its kind (gateway.store.layout)
-- @tparam table entity
-- @treturn {string,...} one may come twice
function _M.all(of, entity)
    local kind = of.kind
    local keys = { of_fields(kind, { "id" }, entity) }
    keys[#keys + 1] = of.cache_key and of_fields(kind, of.cache_key, entity)
    for _, column in ipairs(of.columns) do
        if column.role ~= "name" then
            keys[#keys + 1] = of_fields(kind, column.fields, entity)
        end
    end
    return keys
end

return _M
