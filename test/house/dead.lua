--- Functions that nobody uses: C's that are not static, and Lua's that stand in a table.
--
-- Uses in tests do not count. Lua's are told by their names alone: a field that is looked up
-- anywhere keeps every function of its name alive, a method that is called every method.

local scan = require("test.house.scan")

local _M = {}

local function is_called_at_home(module, name)
    local use = module.c.uses[name]
    for by in pairs(use and use.by or {}) do
        if by ~= name then
            return true
        end
    end
    return false
end

--- Functions of C that no other file uses.
-- @tparam table house of `scan.build`
-- @tparam table rules `alive`: name -> why; `libraries`: headers, as modules
-- @treturn table array of lines
function _M.in_c(house, rules)
    local found, public = {}, {}
    for _, header in ipairs(rules.libraries) do
        for name in pairs(house.modules[header] and house.modules[header].c.declares or {}) do
            public[name] = true
        end
    end
    for _, name in ipairs(scan.sorted_keys(house.functions)) do
        local module = house.modules[house.functions[name]]
        if not (house.called[name] or rules.alive[name] or public[name]) then
            found[#found + 1] = ("%s:%d: %s() is used %s"):format(
                module.file,
                module.c.functions[name].line,
                name,
                is_called_at_home(module, name) and "in this file alone: make it static"
                    or "by nobody"
            )
        end
    end
    return found
end

--- Functions of C that other files may call and whose names do not say where they stand.
--
-- Such a name begins with its library's prefix (rules.prefixes) and then with the first word of its
-- file's name, or of a header's that declares it.
-- @tparam table house of `scan.build`
-- @tparam table rules `prefixes`: array of patterns, the longest first
-- @treturn table array of lines
function _M.misnamed(house, rules)
    local function first_word(name)
        for _, prefix in ipairs(rules.prefixes) do
            local rest, found = name:gsub("^" .. prefix, "")
            if found == 1 then
                return rest:match("^%l+"), prefix
            end
        end
        return name:match("^%l+")
    end
    local homes = {}
    for _, module in pairs(house.modules) do
        local word = module.c and module.file:find("%.h$") and module.file:match("([^/]+)%.h$")
        for name in pairs(word and module.c.declares or {}) do
            homes[name] = homes[name] or {}
            homes[name][first_word(word)] = true
        end
    end
    local found = {}
    for _, name in ipairs(scan.sorted_keys(house.functions)) do
        local module = house.modules[house.functions[name]]
        local word, prefix = first_word(name)
        local own = first_word(module.file:match("([^/]+)%.c$"))
        local is_right = word == own or (homes[name] and homes[name][word])
        if not (is_right or rules.rooms_prefix[prefix] or rules.misnamed[name]) then
            found[#found + 1] = ("%s:%d: %s() does not begin with its file's name"):format(
                module.file,
                module.c.functions[name].line,
                name
            )
        end
    end
    return found
end

--- Names that are looked up in a file, but for those of the functions that it defines: in `fields`
-- all of them, in `calls` those of methods.
local function note_uses(code, fields, calls)
    for i, token in ipairs(code) do
        local mark = code[i - 1] and code[i - 1].text
        if token.kind == "string" then
            fields[token.text] = true
            -- As in the text of an nginx.conf.
            for name in token.text:gmatch("[.:]([%a_][%w_]*)") do
                fields[name], calls[name] = true, true
            end
        elseif token.kind == "name" and (mark == "." or mark == ":") then
            local owner, keyword, after = code[i - 2], code[i - 3], code[i + 1]
            local is_defined = keyword and keyword.text == "function"
            local is_set = after and after.text == "=" and code[i + 2].text ~= "="
            if owner.kind ~= "name" or not (is_defined or is_set) then
                fields[token.text] = true
                calls[token.text] = calls[token.text] or mark == ":" or after.text == "("
            end
        end
    end
end

--- Functions that a file defines in a table: `function t.name`, `function t:name`.
local function functions_of(code)
    local functions = {}
    for i, token in ipairs(code) do
        if token.kind == "name" and token.text == "function" and code[i + 2] then
            local mark, name = code[i + 2].text, code[i + 3]
            if code[i + 1].kind == "name" and (mark == "." or mark == ":") then
                functions[#functions + 1] =
                    { name = name.text, line = token.line, is_method = mark == ":" }
            end
        end
    end
    return functions
end

local function is_public(module, rules)
    for _, pattern in ipairs(rules.public) do
        if module.name:find(pattern) then
            return true
        end
    end
    return false
end

--- Functions of Lua whose name nothing looks up.
-- @tparam table house of `scan.build`
-- @tparam table rules `public`: patterns of modules that users' code calls; `alive`
-- @treturn table array of lines
function _M.in_lua(house, rules)
    local found, fields, calls = {}, {}, {}
    for _, module in pairs(house.modules) do
        if module.code then
            note_uses(module.code, fields, calls)
        end
    end
    for _, name in ipairs(scan.sorted_keys(house.modules)) do
        local module = house.modules[name]
        for _, fn in ipairs(module.code and functions_of(module.code) or {}) do
            local used = fn.is_method and calls or fields
            local is_alive = used[fn.name] or rules.alive[name .. "." .. fn.name]
            if not is_alive and not fn.name:find("^__") and not is_public(module, rules) then
                found[#found + 1] = ("%s:%d: %s is used by nobody"):format(
                    module.file,
                    fn.line,
                    fn.name
                )
            end
        end
    end
    return found
end

return _M
