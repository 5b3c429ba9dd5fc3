--- Modules of Kong's that need the gateway, by Kong's names, and the answer to the names of others.
--
-- What needs no gateway is a file of `compat/kong`. A module here gets its name in
-- `package.preload`, before the first file of a plugin is loaded. What a bundled plugin has for
-- others, as `kong.plugins.<plugin>.<module>`, is the file `plugins/<plugin>/kong/<module>.lua`.
-- @module gateway.kit.modules

local cjson_arrays = require("sluice.cjson_arrays")
local version = require("gateway.version")

-- Kong's name -> what it is: one line for each.
local MODULES = {
    ["kong.api.endpoints"] = function()
        return require("gateway.kit.db.endpoints")
    end,
    ["kong.db.errors"] = function()
        return require("gateway.kit.db.errors")
    end,
    ["kong.meta"] = function()
        local major, minor, patch = version.kong:match("^(%d+)%.(%d+)%.(%d+)$")
        local numbers =
            { major = tonumber(major), minor = tonumber(minor), patch = tonumber(patch) }
        setmetatable(numbers, {
            __tostring = function()
                return version.kong
            end,
        })
        return {
            _NAME = "kong",
            _VERSION = version.kong,
            _VERSION_TABLE = numbers,
            _SERVER_TOKENS = "kong/" .. version.kong,
            version = version.kong,
            _DEPENDENCIES = { nginx = {} },
        }
    end,
    ["kong.tools.queue"] = function()
        return require("gateway.kit.queue")
    end,
}

-- Of schemas (gateway.schema).
MODULES["kong.db.schema"] = function()
    return require("gateway.schema.class")
end
MODULES["kong.db.schema.entity"] = function()
    return require("gateway.schema.class_entity")
end
MODULES["kong.db.schema.metaschema"] = function()
    return require("gateway.schema.class_meta")
end
MODULES["kong.db.schema.typedefs"] = function()
    return require("gateway.schema.kong_typedefs")
end
MODULES["kong.tools.queue_schema"] = function()
    return require("gateway.schema.typedefs").queue
end
MODULES["kong.tools.redis.schema"] = function()
    return require("gateway.schema.redis")
end

local _M = {}

local NONE =
    "module '%s' not found: Sluice has none of this name (docs/modules.md has those of Kong)"

-- The last of the searchers: a module of this name that somebody has installed comes first.
local function answer(name)
    local plugin, module = name:match("^kong%.plugins%.([%w_-]+)%.([%w_]+)$")
    if plugin then
        local path = ("plugins.%s.kong.%s"):format(plugin, module)
        local file = package.searchpath(path, package.path)
        if file then
            return assert(loadfile(file))
        end
    end
    if name:find("^kong%.") or name == "kong" then
        error(NONE:format(name), 0)
    end
    return "\n\tnot one of Kong's"
end

--- Gives the modules their names, once in a Lua state. From then on who requires `cjson` gets one
-- as OpenResty's; what the gateway has loaded by then is C's, whatever a plugin switches.
-- @phases init, or without nginx
function _M.install()
    for name, load in pairs(MODULES) do
        package.preload[name] = package.preload[name] or load
    end
    package.loaded.cjson = cjson_arrays.new()
    package.loaded["cjson.safe"] = cjson_arrays.new(true)
    local loaders = package.loaders
    loaders[#loaders + 1] = answer
end

return _M
