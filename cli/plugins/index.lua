--- Every plugin of Kong 3.9 and of ours: whether it is ours, its language, what it costs, or when
-- it comes and why not. The command shows it, and docs/plugins/index.md is made of it.
-- @module cli.plugins.index

local file = require("sluice.file")
local registry = require("gateway.plugin.registry")

local NO_DESCRIPTION = "Your own; its schema has no description."

local _M = {}

-- The rows of a text beside this file.
local function rows_of(name, pattern)
    local own = assert(package.searchpath("cli.plugins.index", package.path))
    local text, rows = assert(file.read((own:gsub("index%.lua$", name)))), {}
    for line in text:gmatch("[^\n]+") do
        if line:sub(1, 1) ~= "#" then
            rows[#rows + 1] = { assert(line:match(pattern)) }
        end
    end
    return rows
end

--- Kong's plugins.
-- @treturn {table,...} `{ "free" or "paid", name, when it comes or why not }`, in order; the last
--   of ours is ""
function _M.kong()
    return rows_of("kong.txt", "^(%l+) (%S+) ?(.*)$")
end

--- When one of Kong's plugins comes that is not ours, or why not.
-- @tparam string name
-- @treturn string|nil without a dot at the end; nil where it is none of Kong's
function _M.remark(name)
    for _, row in ipairs(_M.kong()) do
        if row[2] == name then
            return (row[3]:gsub("%.$", ""))
        end
    end
    return nil
end

local function read_costs()
    local costs = {}
    for _, row in ipairs(rows_of("costs.txt", "^(%S+) ([%d.]+)$")) do
        costs[row[1]] = tonumber(row[2])
    end
    return costs
end

local function add(list, of, name, edition, remark)
    local plugin, costs = of.plugins:get(name), of.costs
    local is_here = plugin ~= nil
    list[#list + 1] = {
        name = name,
        kong = edition,
        is_ours = is_here and of.bundled[name] ~= nil,
        is_own = is_here and of.bundled[name] == nil,
        is_on = is_here and (of.loaded[name] or false),
        language = plugin and (plugin.native and "C" or "Lua") or nil,
        priority = plugin and plugin.priority or nil,
        cost = plugin and costs[name] or nil,
        remark = plugin and plugin.schema.description or remark,
    }
end

local function set_of(names)
    local set = {}
    for _, name in ipairs(names) do
        set[name] = true
    end
    return set
end

--- The plugins: those of Kong, then what Kong has not, then a user's own; each part in order of
-- names.
-- @tparam[opt] table settings of an instance, `plugins` among them; else all that come with Sluice
-- @treturn {table,...}|nil `{ name =, kong = "free", "paid" or nil, is_ours = it comes with Sluice,
-- is_own = it is a user's, is_on = the setting has it, language = "C" or "Lua", priority =, cost =
-- CPU of a request with it over one without, remark = what it is for, or when it comes and why not
-- }`
-- @treturn string of a folder that cannot be loaded, for people
function _M.list(settings)
    local bundled = registry.bundled()
    local setting = settings and settings.plugins or { "bundled" }
    local plugins, err = registry.load({ "bundled", unpack(setting) }, settings)
    if not plugins then
        return nil, err
    end
    local list, seen, own = {}, {}, {}
    local of = { plugins = plugins, bundled = set_of(bundled), costs = read_costs() }
    of.loaded = set_of(setting)
    if of.loaded.bundled then
        of.loaded = set_of(plugins:names())
    end
    for _, row in ipairs(_M.kong()) do
        local edition, name, remark = unpack(row)
        add(list, of, name, edition, remark)
        seen[name] = true
    end
    for _, name in ipairs(plugins:names()) do
        local to = not of.bundled[name] and own or not seen[name] and list or {}
        add(to, of, name, nil, NO_DESCRIPTION)
    end
    table.sort(own, function(a, b)
        return a.name < b.name
    end)
    for _, each in ipairs(own) do
        list[#list + 1] = each
    end
    return list
end

return _M
