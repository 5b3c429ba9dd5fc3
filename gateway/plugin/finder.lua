--- Where the files of a plugin are: `kong.plugins.<name>` as Kong has them, or `plugins.<name>`.
--
-- Nothing is loaded here. A bundled plugin is Sluice's own, unless a folder that the owner has
-- named (the setting `lua_package_path`) has one of its name: then that one wins.
-- @module gateway.plugin.finder

local dirent = require("posix.dirent")
local stat = require("posix.sys.stat")

local _M = {}

local NAME = "gateway.plugin.finder"

-- Below a folder of Sluice's own nobody looks for what they have written.
local function root()
    return (assert(package.searchpath(NAME, package.path)):gsub("gateway/plugin/finder%.lua$", ""))
end

--- The folder of the bundled plugins, beside the gateway's own.
-- @treturn string
function _M.bundled_folder()
    return root() .. "plugins"
end

-- The file of a module; nil where there is none, and then the files that were looked for. Tests
-- have theirs in package.preload, and what is loaded is there.
local function search(module, path)
    if package.preload[module] or package.loaded[module] then
        return module
    end
    return package.searchpath(module, path)
end

local function tried(err, list)
    local own = root()
    for file in err:gmatch("no file '([^']*)'") do
        if file:sub(1, #own) ~= own then
            list[#list + 1] = file
        end
    end
end

--- Finds a plugin.
-- @tparam string name
-- @tparam[opt] string owners the setting `lua_package_path`
-- @treturn table|nil `{ base = , file = , hides = , is_bundled = }`: what the names of its modules
-- begin with, its handler, whether it hides a bundled one, and whether it is one
-- @treturn {string,...} where there is none: the files that were looked for
function _M.find(name, owners)
    local kongs, ours = "kong.plugins." .. name, "plugins." .. name
    local bundled = package.searchpath(ours .. ".handler", root() .. "?.lua")
    if bundled then
        local file = owners and package.searchpath(kongs .. ".handler", owners)
        local hides = file ~= nil
        return {
            base = hides and kongs or ours,
            file = file or bundled,
            hides = hides,
            is_bundled = not hides,
        }
    end
    local list = {}
    for _, base in ipairs({ kongs, ours }) do
        local file, err = search(base .. ".handler", package.path)
        if file then
            return { base = base, file = file, hides = false }
        end
        tried(err, list)
    end
    return nil, list
end

--- Whether one of these plugins is not Sluice's own: by its name, or since an owner's hides it.
-- @tparam {string,...} names
-- @tparam[opt] string owners the setting `lua_package_path`
-- @treturn boolean
function _M.has_others(names, owners)
    for _, name in ipairs(names) do
        local found = _M.find(name, owners)
        if not (found and found.is_bundled) then
            return true
        end
    end
    return false
end

-- Adds the names of the modules below a folder; `before` is what they begin with.
local function add_modules(folder, before, list)
    for name in dirent.files(folder) do
        local module = name:match("^([%w_-]+)%.lua$")
        if module then
            list[#list + 1] = before .. module
        elseif name:find("^[%w_-]+$") then
            add_modules(folder .. "/" .. name, before .. name .. ".", list)
        end
    end
end

--- The modules of compat/, and those that plugins have for others, that somebody else's hide:
-- whoever has installed one gets that.
-- @treturn {table,...} `{ module = , file = }`, in the order of names
function _M.hidden()
    local names, hidden = {}, {}
    local own = root()
    add_modules(own .. "compat", "", names)
    for name in dirent.files(own .. "plugins") do
        local folder = own .. "plugins/" .. name .. "/kong"
        local found = name:find("^%l[%w-]*$") and stat.stat(folder)
        if found and stat.S_ISDIR(found.st_mode) ~= 0 then
            add_modules(folder, "kong.plugins." .. name .. ".", names)
        end
    end
    table.sort(names)
    for _, module in ipairs(names) do
        local file = package.searchpath(module, package.path)
        if file and file:sub(1, #own) ~= own then
            hidden[#hidden + 1] = { module = module, file = file }
        end
    end
    return hidden
end

--- Whether a plugin has a file.
-- @tparam string base of `find`
-- @tparam string part such as "daos"
-- @treturn boolean
function _M.has(base, part)
    return search(base .. "." .. part, package.path) ~= nil
end

return _M
