--- What decK makes of a file before it sends it to a gateway: `_info.defaults` and
-- `_plugin_configs` fill in what entities leave out, `_info.select_tags` are tags of all of them.
-- @module gateway.config.deck

local cjson = require("cjson")
local schema = require("gateway.schema")

local format = string.format

local NULL = cjson.null

local any = { type = "map", keys = { type = "string" }, values = { type = "any" } }

-- The default of a kind, without what makes an entity one of its own.
local function default_of(name)
    return {
        type = "map",
        keys = { type = "string", not_one_of = { "id", name } },
        values = { type = "any" },
    }
end

local DEFAULTS = {
    services = "service",
    routes = "route",
    upstreams = "upstream",
    targets = "target",
}

local _M = {}

--- Values that a file may have more by these, all entities together.
_M.MAX_VALUES = 1000000

--- Fields of a file that decK reads.
_M.fields = {
    {
        _info = {
            type = "record",
            required = false,
            fields = {
                { select_tags = { type = "array", elements = { type = "string" } } },
                {
                    defaults = {
                        type = "record",
                        required = false,
                        fields = {
                            { service = default_of("name") },
                            { route = default_of("name") },
                            { upstream = default_of("name") },
                            { target = default_of("target") },
                        },
                    },
                },
                { default_lookup_tags = any },
                { consumer_group_policy_overrides = { type = "boolean" } },
                { skip_hash_for_basic_auth = { type = "boolean" } },
                { include_plugin_definitions = { type = "boolean" } },
            },
        },
    },
    { _workspace = { type = "string" } },
    { _plugin_configs = { type = "map", keys = { type = "string" }, values = any } },
    { _konnect = any },
}

local function count(value)
    local n = 1
    for _, item in pairs(type(value) == "table" and value or {}) do
        n = n + count(item)
    end
    return n
end

local function is_map(value)
    return type(value) == "table" and value[1] == nil
end

-- What is given, and of `under` what is not, in maps within each other too. Neither is changed.
local function filled(given, under)
    local out = {}
    for key, value in pairs(under) do
        out[key] = value
    end
    for key, value in pairs(given) do
        if is_map(value) and is_map(out[key]) then
            out[key] = filled(value, out[key])
        elseif value ~= NULL or out[key] == nil then
            out[key] = value
        end
    end
    return out
end

local function with_tags(tags, more)
    local out, seen = {}, {}
    for _, list in ipairs({ tags, more }) do
        for _, tag in ipairs(list) do
            out[#out + 1] = not seen[tag] and tag or nil
            seen[tag] = true
        end
    end
    return out
end

local methods = {}
local mt = { __index = methods }

--- Reads what a file says to all of its entities.
-- @tparam table|nil top the fields of the file, checked; nil where they are wrong
-- @tparam function warn called with path and message of what has no effect
-- @treturn table with the method `fill`; `is_hashed`: passwords are hashes
function _M.new(top, warn)
    local info = top and top._info or {}
    local self = {
        tags = info.select_tags,
        configs = top and top._plugin_configs or {},
        defaults = {},
        sizes = {},
        left = _M.MAX_VALUES,
        is_hashed = info.skip_hash_for_basic_auth,
    }
    for kind, name in pairs(DEFAULTS) do
        self.defaults[kind] = info.defaults and info.defaults[name]
    end
    local workspace = top and top._workspace
    if workspace and workspace ~= "default" then
        local message = "no effect: the gateway has no workspaces, so '%s' is all of it"
        warn("_workspace", format(message, workspace))
    end
    if top and top._konnect then
        warn("_konnect", "no effect: the gateway has no control plane elsewhere")
    end
    for _, name in ipairs({ "default_lookup_tags", "consumer_group_policy_overrides" }) do
        if info[name] then
            warn("_info." .. name, "no effect")
        end
    end
    return setmetatable(self, mt)
end

-- Whether so many values more are within the bound.
function methods:takes(value)
    self.sizes[value] = self.sizes[value] or count(value)
    self.left = self.left - self.sizes[value]
    return self.left >= 0
end

--- How many values more all entities so far have by them.
-- @treturn number
function methods:count()
    return _M.MAX_VALUES - self.left
end

--- Fills in what an entity leaves out.
-- @tparam string kind
-- @tparam table definition its schema
-- @tparam table own its fields, changed
-- @tparam any source `_config` of the entity
-- @treturn nil|string what is wrong
-- @treturn nil|string with which field of the entity, nil: the entity
function methods:fill(kind, definition, own, source)
    local default, config, tags = self.defaults[kind], nil, self.tags
    if source ~= nil and source ~= NULL then
        config = self.configs[source]
        if not config then
            return format("_plugin_configs has no '%s'", tostring(source)), "_config"
        end
    end
    if not (default or config or tags) then
        return nil
    end
    for _, value in pairs({ default, config, tags }) do
        if not self:takes(value) then
            return format("the file has more than %d values by its defaults", _M.MAX_VALUES)
        end
    end
    for key, value in pairs(default and filled(own, default) or {}) do
        own[key] = value
    end
    if config and (own.config == nil or own.config == NULL or is_map(own.config)) then
        own.config = filled(is_map(own.config) and own.config or {}, config)
    end
    if tags and schema.fields(definition).tags then
        own.tags = with_tags(type(own.tags) == "table" and own.tags or {}, tags)
    end
end

return _M
