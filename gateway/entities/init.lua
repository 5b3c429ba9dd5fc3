--- The entities of the gateway: their schemas, one file each, in one place.
--
-- Plugins bring kinds of their own (`add`).
-- @module gateway.entities
-- @usage
-- local entities = require("gateway.entities")
-- for _, kind in ipairs(entities.kinds) do print(kind, #entities.get(kind).fields) end

local lists = require("gateway.entities.lists")
local of_plugin_kind = require("gateway.entities.of_plugin")
local plan = require("gateway.schema.plan")
local secrets = require("gateway.schema.secrets")

local _M = {}

--- Kinds of entities; one that others refer to stands before them.
_M.kinds = {}

local OWN = {
    "certificates",
    "snis",
    "ca_certificates",
    "services",
    "upstreams",
    "consumer_groups",
    "consumers",
    "consumer_group_consumers",
    "routes",
    "targets",
    "vaults",
    "key_sets",
    "keys",
    "plugins",
}

-- Kinds that have no collection of their own, only one in their parent.
local NESTED_ONLY = { targets = true }

--- Collections that files of Kong can hold and nobody here serves, unless a plugin adds their kind.
_M.unsupported = {}
for _, name in ipairs({
    "acls",
    "acme_storage",
    "asymmetric_keys",
    "basicauth_credentials",
    "consumer_group_plugins",
    "custom_plugins",
    "degraphql_routes",
    "filter_chains",
    "graphql_ratelimiting_cost_decorations",
    "groups",
    "hmacauth_credentials",
    "jwt_secrets",
    "keyauth_credentials",
    "licenses",
    "mtls_auth_credentials",
    "oauth2_authorization_codes",
    "oauth2_credentials",
    "oauth2_tokens",
    "partials",
    "ratelimiting_metrics",
    "rbac_endpoint_permissions",
    "rbac_roles",
    "sessions",
}) do
    _M.unsupported[name] = true
end

local schemas = {}
-- kind -> array of { name = field, reference = kind } in the schema's order
local foreign = {}
-- kind -> lists of ids (gateway.entities.lists), those of plugins' configurations among them
local id_lists = {}
-- kind -> { kind of child -> the child's field }
local children = {}
-- what the store has to know of plugins (`of_plugins`)
local of_plugins = { packers = {}, entity_packers = {}, id_lists = {}, secret_names = {} }
-- plugin -> schema of its entity
local of_plugin = setmetatable({}, { __mode = "k" })

local function put(at, schema)
    local kind = schema.name
    plan.require_records(schema)
    table.insert(_M.kinds, at, kind)
    schemas[kind], foreign[kind], children[kind] = schema, {}, {}
    id_lists[kind] = lists.of_ids(schema)
    for _, entry in ipairs(schema.fields) do
        local name, field = next(entry)
        -- what refers to a kind that does not exist yet is not supported anyway
        if field.type == "foreign" and children[field.reference] then
            foreign[kind][#foreign[kind] + 1] = { name = name, reference = field.reference }
            children[field.reference][kind] = name
        end
    end
end

for i, kind in ipairs(OWN) do
    put(i, require("gateway.entities." .. kind))
end

-- What the store keeps beside the kinds that files hold.
local internal = { require("gateway.entities.names") }

--- The schemas of what a plugin's `daos.lua` returns.
-- @function of_daos
-- @tparam table daos a list of schemas, or schemas by name
-- @treturn {table,...}|nil
-- @treturn nil|string what is wrong, for people
_M.of_daos = of_plugin_kind.list

--- Adds a plugin's kind of entities, before a configuration is read; again changes nothing.
-- @tparam table given schema, as Kong takes it
-- @treturn true|nil
-- @treturn string|nil what is wrong with it, or that another kind has its name, for people
-- @phases init
function _M.add(given)
    local schema, err = of_plugin_kind.read(given)
    if not schema then
        return nil, err
    end
    local known = schemas[schema.name]
    if not known then
        put(#_M.kinds, schema)
    elseif known ~= schema then
        return nil, ("the kind '%s' exists already"):format(schema.name)
    end
    return true
end

-- Of kinds that stand before plugins, as of all that is referred to.
local function own_lists(found)
    local out = {}
    for _, list in ipairs(found) do
        for _, kind in ipairs(OWN) do
            out[#out + 1] = kind == list.reference and list or nil
        end
    end
    return out
end

-- Puts what was found of a plugin into the place of what was known of it.
local function put_lists(known, name, found)
    for i = #known, 1, -1 do
        if known[i].of == name then
            table.remove(known, i)
        end
    end
    for _, list in ipairs(found) do
        known[#known + 1] = list
    end
end

--- Notes what the store has to know of a plugin's configurations: who packs those of a native one
-- for C, who says which phases in Lua they need (gateway.image.records), and which lists of
-- gateway.entities.lists they have.
-- @tparam string name of the plugin
-- @tparam table plugin
-- @tparam string room of its files, a module's: threads have to load them by name
-- @phases init
function _M.note_plugin(name, plugin, room)
    of_plugins.packers[name] = (plugin.native or plugin.has_phases)
            and {
                version = plugin.version,
                module = room .. ".handler",
                packs = plugin.native == true,
                has_phases = plugin.has_phases == true,
            }
        or nil
    for _, schema in ipairs(of_plugin_kind.list(plugin.entities)) do
        of_plugins.entity_packers[schema.name] = schema.pack
                and { version = plugin.version, module = room .. ".daos" }
            or nil
    end
    local ids = own_lists(lists.of_ids(plugin.schema, name))
    put_lists(of_plugins.id_lists, name, ids)
    put_lists(of_plugins.secret_names, name, lists.of_secret_names(plugin.schema, name))
    put_lists(id_lists.plugins, name, ids)
end

--- The schema of a kind of entity.
-- @tparam string kind such as "services"
-- @treturn table|nil
function _M.get(kind)
    return schemas[kind]
end

--- The schema of one entity: for a configuration that of its plugin, where that is there.
-- @tparam string kind
-- @tparam table entity also one that nobody has checked
-- @tparam table registry of plugins: `registry:get(name)`
-- @treturn table
-- @treturn nil|string the name of a plugin that is not there
function _M.definition(kind, entity, registry)
    local name = kind == "plugins" and entity.name
    if type(name) ~= "string" then
        return schemas[kind]
    end
    local plugin = registry:get(name)
    if not plugin then
        return schemas[kind], name
    end
    return _M.for_plugin(plugin)
end

--- What the store has to know of plugins, for gateway.store.layout: plain data.
-- @treturn table `packers`: name of a plugin -> `{ version =, module =, packs =, has_phases = }`,
-- no name of one without `pack` and `lua_phases`; `entity_packers`: the first two by the name of a
-- plugin's kind; `id_lists`, `secret_names`: arrays of lists (gateway.entities.lists)
function _M.of_plugins()
    return of_plugins
end

--- The name of a kind in paths of the Admin API.
-- @tparam string kind
-- @tparam[opt] boolean is_nested whether it stands in its parent's path
-- @treturn string the kind, or what a plugin calls its kind in paths
function _M.path_name(kind, is_nested)
    local definition = schemas[kind]
    return is_nested and definition.admin_api_nested_name or definition.admin_api_name or kind
end

--- Whether a kind has a path of its own, and not one in its parent's alone.
-- @tparam string kind
-- @treturn boolean
function _M.has_collection(kind)
    return not NESTED_ONLY[kind] and schemas[kind].generate_admin_api ~= false
end

--- The schemas of all that a store keeps (gateway.store.layout): the kinds, then internal ones.
-- @treturn {table,...}
function _M.stored()
    local out = {}
    for _, kind in ipairs(_M.kinds) do
        out[#out + 1] = schemas[kind]
    end
    for _, schema in ipairs(internal) do
        out[#out + 1] = schema
    end
    return out
end

--- The fields of a kind that refer to other entities.
-- @tparam string kind
-- @treturn table array of `{ name =, reference = }`
function _M.foreign(kind)
    return foreign[kind]
end

--- The lists of other entities' ids that entities of a kind have.
-- @tparam string kind
-- @treturn {table,...} of gateway.entities.lists
function _M.id_lists(kind)
    return id_lists[kind]
end

--- Whether people may not see what a field has: that of gateway.schema.secrets.
-- @function is_secret
_M.is_secret = secrets.is_secret

--- The fields of a kind by which a list can be asked for the one that has a value: unique, no
-- secret, and not its name.
-- @tparam string kind
-- @treturn {string,...} names, in the schema's order
function _M.unique_fields(kind)
    local names, schema = {}, schemas[kind]
    for _, entry in ipairs(schema.fields) do
        local name, field = next(entry)
        local is_shown = field.unique and not secrets.is_secret(field, name)
        if is_shown and name ~= schema.endpoint_key then
            names[#names + 1] = name
        end
    end
    return names
end

--- What an entity has in the fields of its kind that are unique, alone or together.
-- @tparam string kind
-- @tparam table entity
-- @treturn table field -> value
function _M.unique_values(kind, entity)
    local definition, values = schemas[kind], {}
    for _, entry in ipairs(definition.fields) do
        local name, field = next(entry)
        values[name] = field.unique and entity[name] or nil
    end
    for _, name in ipairs(definition.cache_key or {}) do
        values[name] = entity[name]
    end
    return values
end

--- The kinds that can stand nested in an entity.
-- @tparam string kind of the parent
-- @treturn table kind of the child -> the child's field that names the parent
function _M.children(kind)
    return children[kind]
end

--- The schema of `plugins` for one plugin: its `config` and its stricter fields.
-- @tparam table plugin with `schema`, from the registry
-- @treturn table
function _M.for_plugin(plugin)
    if of_plugin[plugin] then
        return of_plugin[plugin]
    end
    local base = schemas.plugins
    local own = {}
    for _, entry in ipairs(plugin.schema.fields) do
        local name, field = next(entry)
        own[name] = field
    end
    local schema = plan.merged(base, {})
    schema.description = plugin.schema.description
    schema.fields = {}
    for i, entry in ipairs(base.fields) do
        local name, field = next(entry)
        schema.fields[i] = { [name] = own[name] or field }
    end
    schema.entity_checks = {}
    for _, checks in ipairs({ base.entity_checks, plugin.schema.entity_checks or {} }) do
        for _, check in ipairs(checks) do
            table.insert(schema.entity_checks, check)
        end
    end
    schema.migrate = plugin.schema.migrate
    schema.transformations = plugin.schema.transformations
    local warnings = plugin.schema.warnings
    schema.warnings = function(entity, now)
        local found = warnings and warnings(entity.config, now) or {}
        for _, warning in ipairs(found) do
            warning.field = "config." .. warning.field
        end
        for _, warning in ipairs(base.warnings(entity)) do
            found[#found + 1] = warning
        end
        if plan.is_adopted(plugin.schema) then
            plan.deprecated(schema, entity, nil, found)
        end
        return found
    end
    if plan.is_adopted(plugin.schema) then
        schema = plan.adopt(schema)
    end
    of_plugin[plugin] = schema
    return schema
end

return _M
