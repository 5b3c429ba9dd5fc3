--- What the store's entities were made from, as a text to compare: the hash of the file, and that
-- of its surroundings, which decide with it what the entities are.
-- @module gateway.config.origin

local config = require("gateway.config")
local version = require("gateway.version")

local concat = table.concat
local sort = table.sort

local OF_FILE = "this instance is configured from a file; edit the file and run `sluice reload`, "
    .. "or use the store, which has its contents: `sluice reload --no-file`"
local OF_TEXT = "this instance is configured from %s; change that and run `sluice reload`, or "
    .. "unset it and use the store, which has its contents: `sluice reload --no-file`"
local POSTED = "replace the whole configuration by POST /config"

local _M = {}

--- The hash of no file, as Kong has it: a controller that finds it posts its configuration again.
_M.NO_HASH = ("0"):rep(32)

--- Whether the store is the source of truth, and neither a file nor what was posted last.
-- @tparam table settings resolved settings
-- @treturn boolean
function _M.is_of_store(settings)
    return settings.file == "" and settings.database ~= "off"
end

--- What to do instead, for who wants to change single entities where the store is not the source.
-- @tparam table settings resolved settings
-- @treturn string
function _M.how_to_change(settings)
    if settings.file == "" then
        return POSTED
    end
    -- What is no path is what gave the text.
    return settings.file:sub(1, 1) == "/" and OF_FILE or OF_TEXT:format(settings.file)
end

-- A schema as text: keys sorted. Functions count by being there; who changes one changes his
-- plugin's version.
local function describe(out, value, seen)
    if type(value) ~= "table" then
        out[#out + 1] = type(value) == "function" and "function" or type(value) .. tostring(value)
        return
    end
    if seen[value] then
        out[#out + 1] = "again"
        return
    end
    seen[value] = true
    local keys = {}
    for key in pairs(value) do
        keys[#keys + 1] = key
    end
    sort(keys, function(a, b)
        return tostring(a) < tostring(b)
    end)
    out[#out + 1] = "{"
    for _, key in ipairs(keys) do
        out[#out + 1] = tostring(key) .. "="
        describe(out, value[key], seen)
    end
    out[#out + 1] = "}"
end

--- The hash of what stands around a file: the version, the plugins with their schemas, and the
-- variables of the environment that it may refer to.
-- @tparam table registry of plugins
-- @tparam {string,...} vault_env names of the variables
-- @treturn string
function _M.surroundings(registry, vault_env)
    local out = { version.product }
    for _, plugin in ipairs(registry:list()) do
        out[#out + 1] = plugin.name .. " " .. plugin.version .. " " .. plugin.priority
        describe(out, plugin.schema, {})
        describe(out, plugin.entities or {}, {})
    end
    for _, name in ipairs(vault_env) do
        out[#out + 1] = name .. "=" .. (os.getenv(name) or "")
    end
    return config.hash(concat(out, "\0"))
end

--- The origin of the entities of a file.
-- @tparam string hash of the file's text (gateway.config)
-- @tparam string surroundings of `surroundings`
-- @treturn string
function _M.of(hash, surroundings)
    return hash .. "." .. surroundings
end

--- The hash of the file that an origin was made of.
-- @tparam string|nil origin
-- @treturn string|nil
function _M.hash(origin)
    return origin and origin:match("^(%x+)%.")
end

return _M
