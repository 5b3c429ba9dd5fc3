--- The names in the environment: those of settings, those that others read, and mistakes.

local stdlib = require("posix.stdlib")

local nearest = require("sluice.nearest")
local options = require("cli.options")

local _M = {}

local OURS = "SLUICE_"

-- No settings, and read elsewhere: in the container's image, by `make` and the tests.
local OTHERS = {
    SLUICE_CONTAINER = true,
    SLUICE_DEBUG = true,
    SLUICE_LUAJIT = true,
    SLUICE_NGINX_SOURCE = true,
    SLUICE_PLUGIN_SOURCES = true,
    SLUICE_TEST_ROUNDS = true,
}
-- Kubernetes sets these in each pod beside a service whose name begins with "sluice", or "kong".
local OF_A_SERVICE = { "_SERVICE_HOST$", "_SERVICE_PORT$", "_SERVICE_PORT_", "_PORT_%d+_%u%u%u" }

--- Whether this is a container of Sluice's image, in which nobody else is.
-- @treturn boolean
function _M.is_contained()
    return (stdlib.getenv("SLUICE_CONTAINER") or "") ~= ""
end

--- Whether a variable is Kubernetes' way to tell of a service.
-- @tparam string name
-- @tparam string value
-- @treturn boolean
function _M.is_of_a_service(name, value)
    for _, pattern in ipairs(OF_A_SERVICE) do
        if name:find(pattern) then
            return true
        end
    end
    return name:find("_PORT$") ~= nil and value:find("^%l+://") ~= nil
end

local function names(environment, prefix)
    local found = {}
    for name in pairs(environment) do
        found[#found + 1] = name:sub(1, #prefix) == prefix and name or nil
    end
    table.sort(found)
    return found
end

local function hint(near)
    return near and ("; did you mean %s?"):format(near) or " (docs/config.md lists them)"
end

--- What to say of a name in the settings file that is none.
-- @tparam string name
-- @treturn string to follow the name
function _M.hint(name)
    local known = {}
    for _, option in ipairs(options.list) do
        -- The file cannot name another in its place.
        known[#known + 1] = option.name ~= "conf" and option.name or nil
    end
    return hint(nearest.find(name, known))
end

-- The same of a variable. What all begin with is no sign of which was meant.
local function variable_hint(name)
    local known = {}
    for i, option in ipairs(options.list) do
        known[i] = option.name
    end
    local near = nearest.find(name:sub(#OURS + 1):lower(), known)
    return hint(near and options.variable(options.by_name[near]))
end

--- The variables that look like settings and are none.
-- @tparam table environment name -> text
-- @tparam {string,...} more names that are read for something else
-- @treturn {string,...} errors, a line each
function _M.unknown(environment, more)
    local known = {}
    for _, option in ipairs(options.list) do
        known[options.variable(option)] = true
    end
    for _, name in ipairs(more) do
        known[name] = true
    end
    local errors = {}
    for _, name in ipairs(names(environment, OURS)) do
        if not (known[name] or OTHERS[name] or _M.is_of_a_service(name, environment[name])) then
            errors[#errors + 1] = ("environment: unknown variable %s%s"):format(
                name,
                variable_hint(name)
            )
        end
    end
    return errors
end

return _M
