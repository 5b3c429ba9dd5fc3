--- A plugin is a folder: what each has beside it, of the same name, and that nothing else has.

local scan = require("test.house.scan")

local _M = {}

-- The names of the folders below one that have files.
local function folders(paths, parent)
    local found = {}
    for _, path in ipairs(paths) do
        local name = path:match("^" .. parent .. "/([^/]+)/")
        if name then
            found[name] = true
        end
    end
    return found
end

-- Whether a runner finds a test of the plugin.
local function has_tests(paths, name, runners)
    local folder = "test/plugins/" .. name .. "/"
    for _, path in ipairs(paths) do
        local file = path:sub(1, #folder) == folder and path:sub(#folder + 1) or ""
        for _, pattern in ipairs(runners) do
            if file:find(pattern) then
                return true
            end
        end
    end
    return false
end

--- What plugins lack, and folders of tests that are no plugin's.
-- @tparam {string,...} paths of plugins, their pages and their tests
-- @tparam table rule `files`, each with a `%s` for the name, and `runners`: rules.plugin
-- @treturn {string,...}
function _M.complaints(paths, rule)
    local found, there = {}, {}
    for _, path in ipairs(paths) do
        there[path] = true
    end
    local plugins = folders(paths, "plugins")
    for _, name in ipairs(scan.sorted_keys(plugins)) do
        for _, form in ipairs(rule.files) do
            local path = form:format(name)
            found[#found + 1] = not there[path] and path .. " is missing" or nil
        end
        if not has_tests(paths, name, rule.runners) then
            found[#found + 1] = ("test/plugins/%s has no test (test_*.py, *_spec.lua, *.c)"):format(
                name
            )
        end
    end
    for _, name in ipairs(scan.sorted_keys(folders(paths, "test/plugins"))) do
        local is_right = plugins[name]
        found[#found + 1] = not is_right and ("test/plugins/%s: no such plugin"):format(name) or nil
    end
    return found
end

return _M
