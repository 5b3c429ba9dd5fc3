--- What the store has to know of a kind of entity, derived from its schema: plain data, so that it
-- can be handed to a thread.
--
-- | of the schema | in the store |
-- |---|---|
-- | `unique = true` | a column with a unique index |
-- | `endpoint_key` that is not unique, a field of some kind's `used_by` | a column with an index |
-- | `used_by` | who has the name of an entity: `if_unused` of a deletion |
-- | `cache_key` | one column of all its fields, unique; what `kong.cache` keeps it under |
-- | `type = "foreign"` of a known kind | a reference; `on_delete` is `"cascade"`, `"null"`, or
--     its target's deletion is refused |
-- | a list whose elements have a `reference`, of plugins too | nothing; looked at where a reference
--     would break |
-- | `names_secrets` of a plugin's list | nothing; read when it changes |
-- | `has_secret_name` | nothing; what stands before a name in paths of the Admin API |
-- | `tags` | a table of tags |
-- | a required reference to consumers, and a unique name | credentials: they share their slots |
-- | `label`, a field | what plugins' C can ask of a consumer (SLUICE_CORE_LABEL) |
-- | `pack` of a plugin's kind | what plugins' C reads of a credential |
-- | `expires` | a column of `expires_at` with an index: `expiry`, its name |
-- | `internal = true`, `no_export` | in no export |
-- | `of_plugin` | an image has it, with a look-up for each column that is unique and has no other
--     use there: `look_ups`, `number` |
-- @module gateway.store.layout

local lists = require("gateway.entities.lists")
local secrets = require("gateway.schema.secrets")

local _M = {}

-- Names become parts of SQL, so that they are letters, digits and _ only.
local function checked(name)
    if not name:find("^%a[%w_]*$") then
        error("'" .. name .. "' cannot be the name of a kind or field in the store", 0)
    end
    return name
end

local function foreign_column(kind, name, field)
    local action = field.on_delete or "restrict"
    if action ~= "cascade" and action ~= "restrict" and action ~= "null" then
        error(("%s.%s: on_delete has to be cascade, null or restrict"):format(kind, name), 0)
    end
    return {
        role = "foreign",
        -- another action is another column: SQLite cannot change that of one
        column = "f_" .. name .. "_" .. action,
        fields = { name },
        reference = field.reference,
        on_delete = action,
    }
end

-- Kinds whose slots are of one space: an image finds them by keys that they share.
local function space_of(schema)
    local has_key, has_consumer = false, false
    for _, entry in ipairs(schema.fields) do
        local name, field = next(entry)
        has_key = has_key or (field.unique and name == schema.endpoint_key)
        has_consumer = has_consumer or (field.reference == "consumers" and field.required)
    end
    return has_key and has_consumer and "credentials" or schema.name
end

-- A number for a kind in images, where a name would be as long as a record.
local function number_of(kind)
    local number = 5381
    for i = 1, #kind do
        number = (number * 33 + kind:byte(i)) % 2 ^ 32
    end
    return number
end

-- What images find an entity by, beside its id, and a credential's name.
local function look_ups_of(layout)
    local look_ups = {}
    for _, column in ipairs(layout.columns) do
        local is_key = layout.space == "credentials" and column.is_name
        if column.role == "unique" and not is_key then
            local what = #column.fields == 1 and column.fields[1] or "cache_key"
            look_ups[#look_ups + 1] = {
                name = layout.kind .. "." .. what,
                field = #column.fields == 1 and what or nil,
                fields = column.fields,
            }
        end
    end
    return look_ups
end

-- Lists of ids, of those kinds that are kept.
local function known_lists(found, of_plugins, known)
    local out = {}
    for _, all in ipairs({ found, of_plugins and of_plugins.id_lists or {} }) do
        for _, list in ipairs(all) do
            out[#out + 1] = known[list.reference] and list
        end
    end
    return #out > 0 and out or nil
end

-- Paths of the Admin API in which a secret follows: `kind/`, and `parents/kind/` for
-- /parents/name/kind/secret.
local function secret_paths(schema)
    if not schema.has_secret_name then
        return nil
    end
    local nested = (schema.admin_api_nested_name or schema.name) .. "/"
    local paths = { (schema.admin_api_name or schema.name) .. "/" }
    for _, entry in ipairs(schema.fields) do
        local _, field = next(entry)
        if field.type == "foreign" then
            paths[#paths + 1] = field.reference .. "/" .. nested
        end
    end
    return paths
end

local function of_schema(schema, known, all_plugins)
    local of_plugins = schema.subschema_key and all_plugins
    local packers = all_plugins and all_plugins.entity_packers or {}
    local layout = {
        kind = checked(schema.name),
        space = space_of(schema),
        columns = {},
        has_tags = false,
        is_internal = schema.internal,
        no_export = schema.no_export,
        label = schema.label,
        packer = packers[schema.name],
        packers = of_plugins and of_plugins.packers,
        lists = known_lists(lists.of_ids(schema), of_plugins, known),
        secret_names = of_plugins and of_plugins.secret_names,
        secret_paths = secret_paths(schema),
        cache_key = schema.cache_key,
    }
    local columns = layout.columns
    for _, entry in ipairs(schema.fields) do
        local name, field = next(entry)
        if field.type == "foreign" and known[field.reference] then
            columns[#columns + 1] = foreign_column(schema.name, checked(name), field)
        end
        if field.unique then
            columns[#columns + 1] = {
                role = "unique",
                column = "u_" .. checked(name),
                fields = { name },
                is_name = name == schema.endpoint_key,
                is_secret = secrets.is_secret(field, name),
            }
        elseif name == schema.endpoint_key or known[schema.name][name] then
            columns[#columns + 1] =
                { role = "name", column = "n_" .. checked(name), fields = { name } }
        end
        layout.has_tags = layout.has_tags or name == "tags"
    end
    if schema.expires then
        layout.expiry = "n_expires_at"
        columns[#columns + 1] = { role = "name", column = layout.expiry, fields = { "expires_at" } }
    end
    -- of one field it is that field's own column
    if schema.cache_key and #schema.cache_key > 1 then
        local fields = {}
        for i, name in ipairs(schema.cache_key) do
            fields[i] = name
        end
        -- other fields are another column: what stands in this one was made of these
        local column = checked("k_" .. table.concat(fields, "_"))
        columns[#columns + 1] = { role = "unique", column = column, fields = fields }
    end
    if schema.of_plugin and not schema.label then
        layout.number = number_of(schema.name)
        layout.look_ups = look_ups_of(layout)
    end
    return layout
end

-- Their records share one kind of the core's, and its slots: `turn` of so many `turns`.
local function take_turns(layouts)
    local taking = {}
    for _, layout in ipairs(layouts) do
        if layout.look_ups and layout.space ~= "credentials" then
            taking[#taking + 1] = layout
        end
    end
    for i, layout in ipairs(taking) do
        layout.turn, layout.turns = i - 1, #taking
    end
end

-- Who has the names of a kind: the columns of `used_by`, as far as these kinds are kept.
local function users_of(schema, layouts)
    local users = {}
    for _, used_by in ipairs(schema.used_by) do
        for _, of in ipairs(layouts) do
            for _, column in ipairs(of.kind == used_by.kind and of.columns or {}) do
                if column.role == "name" and column.fields[1] == used_by.field then
                    users[#users + 1] = {
                        kind = of.kind,
                        column = column.column,
                        up_to = used_by.up_to,
                        unless = used_by.unless,
                    }
                end
            end
        end
    end
    return users
end

--- The layouts of kinds.
-- @tparam {table,...} schemas of all kinds that there are, plugins' own ones among them
-- @tparam[opt] table of_plugins of gateway.entities, for the kind of plugins
-- @treturn {table,...} layouts in the same order: `{ kind =, packers =, space = of its slots,
-- has_tags =, is_internal =, no_export =, expiry =, label =, packer = `{ module =, version = }`,
-- users = array of `{ kind =, column =, up_to =, unless = }`, columns = array of `{ role =
-- "unique", "name" or "foreign", column =, fields = {...}, reference =, on_delete =, is_name =,
-- is_secret = }, lists, secret_names = arrays of gateway.entities.lists, secret_paths = array of
-- strings, number, look_ups = array of `{ name =, fields = {...}, field = the only one }`, turn,
-- turns, cache_key = array of fields }`; throws where a schema cannot be kept
function _M.derive(schemas, of_plugins)
    -- kind -> its fields that are names of another kind
    local known, layouts = {}, {}
    for _, schema in ipairs(schemas) do
        if known[schema.name] then
            error("two kinds are named '" .. schema.name .. "'", 0)
        end
        known[schema.name] = {}
    end
    for _, schema in ipairs(schemas) do
        for _, user in ipairs(schema.used_by or {}) do
            if known[user.kind] then
                known[user.kind][user.field] = true
            end
        end
    end
    for i, schema in ipairs(schemas) do
        layouts[i] = of_schema(schema, known, of_plugins)
    end
    take_turns(layouts)
    for i, schema in ipairs(schemas) do
        layouts[i].users = schema.used_by and users_of(schema, layouts)
    end
    return layouts
end

local function plain(value)
    if type(value) == "table" then
        return type(value.id) == "string" and value.id or nil
    elseif type(value) == "number" then
        return ("%.17g"):format(value)
    end
    -- the rest: cjson's null
    return (type(value) == "string" or type(value) == "boolean") and tostring(value) or nil
end

--- What an entity has in one column.
-- @tparam table column of a layout
-- @tparam table entity
-- @treturn string|nil
function _M.value(column, entity)
    if #column.fields == 1 then
        return plain(entity[column.fields[1]])
    end
    -- With lengths: no two lists of values make the same text.
    local parts = {}
    for i, name in ipairs(column.fields) do
        local text = plain(entity[name])
        parts[i] = text and #text .. ":" .. text or "-"
    end
    return table.concat(parts, ",")
end

--- What an entity has in a look-up of images: of several fields Kong's cache key, without its
-- workspace.
-- @tparam table look_up of a layout
-- @tparam table entity
-- @treturn string|nil
function _M.key(look_up, entity)
    if look_up.field then
        return plain(entity[look_up.field])
    end
    local parts = {}
    for i, name in ipairs(look_up.fields) do
        parts[i] = plain(entity[name]) or ""
    end
    return table.concat(parts, ":")
end

--- Between which values a column of several fields has those with one value of the first.
-- @tparam string value
-- @treturn string the least
-- @treturn string what is greater than all of them
function _M.range(value)
    local key = #value .. ":" .. value
    return key .. ",", key .. "-"
end

--- Layouts by kind.
-- @tparam {table,...} layouts
-- @treturn table kind -> layout
function _M.by_kind(layouts)
    local out = {}
    for _, layout in pairs(layouts) do
        out[layout.kind] = layout
    end
    return out
end

return _M
