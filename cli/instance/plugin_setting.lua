--- The plugins of the settings: loaded for the command line, and what to say where that fails.

local index = require("cli.plugins.index")
local nearest = require("sluice.nearest")
local package_path = require("cli.nginx.package_path")
local registry = require("gateway.plugin.registry")

local _M = {}

local function add(errors, format, ...)
    errors[#errors + 1] = format:format(...)
end

-- Whether each place of the search path has what stands for a module's name.
local function check_search_path(settings, errors)
    local count = #errors
    for template in settings.lua_package_path:gmatch("[^;]+") do
        if not template:find("?", 1, true) then
            local line = "lua_package_path: '%s' has no ?, which stands for a module's name; did "
                .. "you mean '%s/?.lua'?"
            add(errors, line, template, (template:gsub("/+$", "")))
        end
    end
    return #errors == count
end

-- Of a plugin that is nowhere: what was probably meant, or how its place is named; nil where files
-- were looked for.
local function absence(name, settings)
    local near = nearest.find(name, registry.bundled())
    if near then
        return ("there is no plugin '%s'; did you mean %s?"):format(name, near)
    elseif settings.lua_package_path == "" then
        return ("there is no plugin '%s'; lua_package_path names where your own are"):format(name)
    end
    return nil
end

--- Loads the plugins that the settings allow, a user's own among them, and their kinds of entities.
-- @tparam table settings resolved settings: plugins, lua_package_path
-- @tparam table errors array that gets a line where that fails
-- @treturn table|nil gateway.plugin.registry
function _M.load(settings, errors)
    if not check_search_path(settings, errors) then
        return nil
    end
    package.path = package_path.add(package.path, settings.lua_package_path)
    local plugins, err, absent = registry.load(settings.plugins, settings)
    local remark = absent and index.remark(absent)
    if remark then
        local line =
            "plugins: %s is not here (%s); leave it out, `sluice plugins` lists those that are"
        add(errors, line, absent, remark)
    elseif err then
        add(errors, "plugins: %s", absent and absence(absent, settings) or err)
    end
    return plugins
end

--- How a file is checked that has a plugin of a user's own, which no setting names.
-- @tparam {string,...} errors of the check
-- @treturn string|nil a line; nil where no plugin may be one's own
function _M.remark_of_own(errors)
    for _, line in ipairs(errors) do
        local name = line:match("plugin '([%w_-]+)' not installed%f[;%z]")
        if name and not index.remark(name) and not line:find("did you mean", 1, true) then
            local remark = "  if '%s' is your own: --prefix names its gateway, or --plugins "
                .. "bundled,%s and --lua-package-path the plugin"
            return remark:format(name, name)
        end
    end
    return nil
end

--- Checks that the plugins that a store has configurations of are there: requests for one that is
-- not are answered 500.
-- @tparam table|nil plugins of `load`
-- @tparam {string,...}|nil names of those that the store has enabled
-- @tparam table errors array that gets a line of those that are missing
function _M.check_in_use(plugins, names, errors)
    local missing = {}
    for _, name in ipairs(plugins and names or {}) do
        missing[#missing + 1] = not plugins:get(name) and name or nil
    end
    if #missing > 0 then
        local line = "plugins: the store has configurations of %s, which the setting does not "
            .. "have; add what is missing, or delete them first (`sluice get plugins`)"
        add(errors, line, table.concat(missing, ", "))
    end
end

return _M
