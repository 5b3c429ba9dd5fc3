--- The entities of the gateway: their schemas, one file each, in one place.
--
-- Plugins bring kinds of their own (`add`).
-- @module gateway.entities
-- @usage
-- local entities = require("gateway.entities")
-- for _, kind in ipairs(entities.kinds) do print(kind, #entities.get(kind).fields) end

local ipairs = ipairs
local next = next
local pairs = pairs
local setmetatable = setmetatable
local type = type

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
    "key_sets",
    "keyauth_credentials",
    "keys",
    "licenses",
    "mtls_auth_credentials",
    "oauth2_credentials",
    "oauth2_tokens",
    "parameters",
    "partials",
    "rbac_endpoint_permissions",
    "rbac_roles",
    "workspaces",
}) do
    _M.unsupported[name] = true
end

local schemas = {}
-- kind -> array of { name = field, reference = kind } in the schema's order
local foreign = {}
-- kind -> array of the same, of fields that are lists of ids
local id_lists = {}
-- kind -> { kind of child -> the child's field }
local children = {}
-- name of a native plugin -> { version =, module = that has its `pack` }
local packers = {}
-- plugin -> schema of its entity
local of_plugin = setmetatable({}, { __mode = "k" })

local function put(at, schema)
    local kind = schema.name
    table.insert(_M.kinds, at, kind)
    schemas[kind], foreign[kind], id_lists[kind], children[kind] = schema, {}, {}, {}
    for _, entry in ipairs(schema.fields) do
        local name, field = next(entry)
        -- what refers to a kind that does not exist yet is not supported anyway
        if field.type == "foreign" and children[field.reference] then
            foreign[kind][#foreign[kind] + 1] = { name = name, reference = field.reference }
            children[field.reference][kind] = name
        elseif field.elements and field.elements.reference then
            local list = id_lists[kind]
            list[#list + 1] = { name = name, reference = field.elements.reference }
        end
    end
end

for i, kind in ipairs(OWN) do
    put(i, require("gateway.entities." .. kind))
end

-- What the store keeps beside the kinds that files hold.
local internal = { require("gateway.entities.names") }

--- Adds a plugin's kind of entities, before a configuration is read; again changes nothing.
-- @tparam table schema
-- @treturn true|nil
-- @treturn string|nil another kind has its name, for people
-- @phases init
function _M.add(schema)
    local known = schemas[schema.name]
    if not known then
        put(#_M.kinds, schema)
    elseif known ~= schema then
        return nil, ("entities: the kind '%s' exists already"):format(schema.name)
    end
    return true
end

--- Notes who packs the configurations of a native plugin for C (gateway.image.entities).
-- @tparam string name of the plugin
-- @tparam string version which bytes those are
-- @tparam string module with the function `pack`: threads have to load it by its name
-- @phases init
function _M.set_packer(name, version, module)
    packers[name] = { version = version, module = module }
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

--- Who packs what of configurations.
-- @treturn table name of a plugin -> `{ version =, module = }`; no name of one without `pack`
function _M.packers()
    return packers
end

--- The name of a kind in paths of the Admin API.
-- @tparam string kind
-- @tparam[opt] boolean is_nested whether it stands in its parent's path
-- @treturn string such as "key-auths", "key-auth" where nested
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

--- The fields of a kind that are lists of other entities' ids.
-- @tparam string kind
-- @treturn table array of `{ name =, reference = }`
function _M.id_lists(kind)
    return id_lists[kind]
end

--- The fields of a kind by which a list can be asked for the one that has a value: unique, no
-- secret, and not its name.
-- @tparam string kind
-- @treturn {string,...} names, in the schema's order
function _M.unique_fields(kind)
    local names, schema = {}, schemas[kind]
    for _, entry in ipairs(schema.fields) do
        local name, field = next(entry)
        if field.unique and name ~= schema.endpoint_key and not field.encrypted then
            names[#names + 1] = name
        end
    end
    return names
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
    local schema = {}
    for key, value in pairs(base) do
        schema[key] = value
    end
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
    of_plugin[plugin] = schema
    return schema
end

return _M
