--- A plugin is a folder: what each has beside it, of the same name, that nothing else has, and that
-- no code beyond the folder says its name.

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

-- Names of plugins by their first word: word -> array of `{ name =, words = }`.
local function by_first_word(names)
    local found = {}
    for _, name in ipairs(names) do
        local words = {}
        for word in name:gmatch("[^-]+") do
            words[#words + 1] = word
        end
        found[words[1]] = found[words[1]] or {}
        table.insert(found[words[1]], { name = name, words = words })
    end
    return found
end

-- Whether words at a place are the words of a name, the last one in singular or plural.
local function are_at(words, place, name)
    for i, word in ipairs(name) do
        local other = words[place + i - 1]
        if other ~= word and not (i == #name and other == word .. "s") then
            return false
        end
    end
    return true
end

-- Whether a place is behind `plugin`, in the same token or before it.
local function is_of_plugin(words, place, before)
    local last = words[place - 1]
    return last == "plugin"
        or last == "plugins"
        or not last and before:find("%f[%a]plugins?[ ./]$") ~= nil
end

-- A name of one word is an ordinary word as well. It is the plugin's in a C name of ours
-- (`sluice_cors_...`), and as the first word of a string.
local function is_plain(words, place, before)
    return words[place - 1] == "sluice"
        or place == 1 and before:find("[\"']$") ~= nil
        or is_of_plugin(words, place, before)
end

-- Names whose first word this can be, also in plural.
local function candidates(index, word)
    local single = word:match("^(.+)s$")
    return ipairs(index[word] or single and index[single] or {})
end

-- Calls a function with each name that a token says, or nil and what else the name means.
local function names_of(token, before, index, other_meanings, visit)
    local words = {}
    for word in token:lower():gmatch("[^_-]+") do
        words[#words + 1] = word
    end
    for place, word in ipairs(words) do
        for _, each in candidates(index, word) do
            local meaning = table.concat(each.words, "_")
            local is_there = are_at(words, place, each.words)
            local has_other = other_meanings[meaning] and not token:find("-", 1, true)
            if is_there and has_other and not is_of_plugin(words, place, before) then
                visit(nil, meaning)
            elseif is_there and (#each.words > 1 or is_plain(words, place, before)) then
                visit(each.name)
            end
        end
    end
end

-- Whether a row of what may be said is about a file.
local function is_about(row, path)
    return row.path == path or row.path:sub(-1) == "/" and path:sub(1, #row.path) == row.path
end

-- The row that lets a file say a token, if any; those used are kept.
local function permission(rule, path, token, used)
    for _, row in ipairs(rule.may) do
        if is_about(row, path) then
            for _, said in ipairs(row.says or { "*" }) do
                if said == token or said == "*" then
                    used[row.path .. " " .. said] = true
                    return row
                end
            end
        end
    end
    return nil
end

-- What the rule allows or explains without need: no file says it, or says it any more.
local function unused(rule, used)
    local found = {}
    for _, row in ipairs(rule.may) do
        for _, said in ipairs(row.says or { "*" }) do
            if not used[row.path .. " " .. said] then
                found[#found + 1] = ("%s: nothing there says %s"):format(
                    row.path,
                    row.says and said or "a plugin's name"
                )
            end
        end
    end
    for _, meaning in ipairs(scan.sorted_keys(rule.other_meanings)) do
        local is_used = used[meaning]
        found[#found + 1] = not is_used and meaning .. " has no other meaning" or nil
    end
    return found
end

--- Where code says the name of a plugin, and what may and does not.
--
-- A name is found as `key-auth`, `key_auth` and `KEY_AUTH`, alone or within a longer one, in
-- comments and strings as well.
-- @tparam table sources path -> text, of plugins as well
-- @tparam {string,...} names of the plugins
-- @tparam table rule rules.plugin_names
-- @treturn {string,...}
function _M.names_said(sources, names, rule)
    local found, used, index = {}, {}, by_first_word(names)
    local meanings = rule.other_meanings
    for _, path in ipairs(scan.sorted_keys(sources)) do
        local own, number = path:match("^plugins/([^/]+)/"), 0
        for line in sources[path]:gmatch("([^\n]*)\n?") do
            number = number + 1
            for at, token in line:gmatch("()(%w[%w_-]*)") do
                token = token:gsub("[_-]+$", "")
                if token == token:lower() or token == token:upper() then
                    names_of(token, line:sub(1, at - 1), index, meanings, function(name, meaning)
                        if meaning then
                            used[meaning] = true
                        elseif name ~= own and not permission(rule, path, token, used) then
                            found[#found + 1] = ("%s:%d: %s"):format(path, number, token)
                        end
                    end)
                end
            end
        end
    end
    for _, line in ipairs(unused(rule, used)) do
        found[#found + 1] = line
    end
    return found
end

return _M
