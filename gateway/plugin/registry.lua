--- The plugins that this gateway may run: the only place that loads them.
--
-- A plugin is a Lua module `plugins.<name>` on the package path: the bundled
-- ones, and a user's own named by the option `plugins` and found through
-- `lua_package_path`.
-- @module gateway.plugin.registry

local entities = require("gateway.entities")

local _M = {}
local mt = { __index = _M }

local BUNDLED = { "access-log", "mtls-auth", "key-auth", "rate-limiting", "http-log" }

--- The phases that a plugin may implement, as Kong names them.
_M.PHASES = {
    "init_worker",
    "configure",
    "certificate",
    "rewrite",
    "access",
    "header_filter",
    "body_filter",
    "log",
}

local function check(name, plugin)
    if type(plugin) ~= "table" then
        return nil, "does not return a table"
    elseif plugin.name ~= name then
        return nil, ("is named '%s' inside"):format(tostring(plugin.name))
    elseif type(plugin.priority) ~= "number" then
        return nil, "priority: number expected"
    elseif type(plugin.version) ~= "string" then
        return nil, "version: string expected"
    elseif type(plugin.schema) ~= "table" or type(plugin.schema.fields) ~= "table" then
        return nil, "schema: table with fields expected"
    end
    for _, phase in ipairs(_M.PHASES) do
        if plugin[phase] ~= nil and type(plugin[phase]) ~= "function" then
            return nil, phase .. ": function expected"
        elseif plugin[phase] and plugin.native then
            return nil, phase .. ": a native plugin has its phases in C"
        end
    end
    if plugin.native and type(plugin.pack) ~= "function" then
        return nil, "pack: function expected"
    end
    return plugin
end

--- Adds the kinds of entities that a plugin brings.
local function add_entities(plugin)
    for _, schema in ipairs(plugin.entities or {}) do
        if type(schema) ~= "table" or type(schema.name) ~= "string" then
            return nil, "entities: schemas with a name expected"
        end
        local added, err = entities.add(schema)
        if not added then
            return nil, err
        end
    end
    return plugin
end

local function expand(names)
    local out, seen = {}, {}
    local function add(name)
        if not seen[name] then
            seen[name] = true
            out[#out + 1] = name
        end
    end
    for _, name in ipairs(names) do
        if name == "bundled" then
            for _, bundled in ipairs(BUNDLED) do
                add(bundled)
            end
        else
            add(name)
        end
    end
    return out
end

--- Loads plugins by name. Does not yield.
-- @tparam {string,...} names plugin names; "bundled" stands for all that come
--   with Sluice
-- @treturn table|nil the registry
-- @treturn string what is wrong with which plugin, for a human
function _M.load(names)
    local self = setmetatable({ plugins = {}, by_priority = {} }, mt)
    for _, name in ipairs(expand(names)) do
        local ok, plugin = pcall(require, "plugins." .. name)
        local err
        if ok then
            plugin, err = check(name, plugin)
            if plugin then
                plugin, err = add_entities(plugin)
            end
        else
            -- Without the list of all places that were searched.
            plugin, err =
                nil, tostring(plugin):match("^(module '[^']*' not found)") or tostring(plugin)
        end
        if not plugin then
            return nil, ("plugin '%s': %s"):format(name, err)
        end
        entities.note_plugin(name, plugin, "plugins." .. name)
        self.plugins[name] = plugin
        table.insert(self.by_priority, plugin)
    end
    -- Kong's order: higher priority first, equal ones by name, backwards.
    table.sort(self.by_priority, function(a, b)
        if a.priority ~= b.priority then
            return a.priority > b.priority
        end
        return a.name > b.name
    end)
    return self
end

--- One plugin by name.
-- @treturn table|nil
function _M:get(name)
    return self.plugins[name]
end

--- All plugins in the order in which they run.
-- @treturn {table,...}
function _M:list()
    return self.by_priority
end

return _M
