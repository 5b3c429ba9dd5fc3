--- Reads who requires whom, in C who calls whom, and finds what the rules of the house forbid.
--
-- @usage
-- local house = scan.read(".")
-- for _, violation in ipairs(scan.violations(house, rules)) do print(violation) end

local c = require("test.house.c")
local files = require("test.house.files")
local lexer = require("test.house.lexer")
local lfs = require("lfs")

local _M = {}

--- Folders whose modules make up the product.
local FOLDERS = { "cli", "compat", "gateway", "lib", "module", "plugins" }

local function sorted_keys(map)
    local keys = {}
    for key in pairs(map) do
        keys[#keys + 1] = key
    end
    table.sort(keys)
    return keys
end

--- The keys of a map, in order.
_M.sorted_keys = sorted_keys

--- All files below a folder.
-- @treturn table array of paths in order
function _M.files(folder)
    local found = {}
    if lfs.attributes(folder, "mode") ~= "directory" then
        return found
    end
    for name in lfs.dir(folder) do
        local path = folder .. "/" .. name
        if name ~= "." and name ~= ".." and name ~= "__pycache__" then
            if lfs.attributes(path, "mode") == "directory" then
                for _, inner in ipairs(_M.files(path)) do
                    found[#found + 1] = inner
                end
            else
                found[#found + 1] = path
            end
        end
    end
    table.sort(found)
    return found
end

--- Each file below folders whose path has one of the patterns, or each file: its path and its text.
function _M.sources(folders, ...)
    local patterns = select("#", ...) > 0 and { ... } or { "" }
    return coroutine.wrap(function()
        for _, folder in ipairs(folders) do
            for _, path in ipairs(_M.files(folder)) do
                for _, pattern in ipairs(patterns) do
                    if path:find(pattern) then
                        coroutine.yield(path, files.read(path))
                        break
                    end
                end
            end
        end
    end)
end

--- "gateway/router/init.lua" -> "gateway.router"; "lib/sluice/x.lua" -> "lib.sluice.x";
-- "module/core/ring/ring.c" -> "module.core.ring.ring.c".
local function module_name(file)
    return (file:gsub("%.lua$", ""):gsub("/init$", ""):gsub("/", "."))
end

--- What a `require` at token `i` asks for.
-- @treturn[1] string "module", "prefix" (of a name that is computed) or "computed"
-- @treturn[1] string its text
-- @treturn[1] string|nil what is behind the computed part
-- @treturn[2] nil it is not a call of require
local function required(tokens, i)
    local after = tokens[i + 1]
    if not after then
        return nil
    end
    local argument, at = after, i + 1
    if after.text == "(" or after.text == "," then
        argument, at = tokens[i + 2], i + 2
    end
    if argument.kind ~= "string" then
        -- `require` itself handed around, as in `local require = require`.
        return after.text ~= "=" and "computed" or nil, argument.text
    end
    if tokens[at + 1] and tokens[at + 1].text == ".." then
        local joint, suffix = tokens[at + 3], tokens[at + 4]
        local has_suffix = joint and joint.text == ".." and suffix.kind == "string"
        return "prefix", argument.text, has_suffix and suffix.text or ""
    end
    return "module", argument.text
end

local function code_of(source)
    local code = {}
    for _, token in ipairs(lexer.tokens(source)) do
        if token.kind ~= "comment" then
            code[#code + 1] = token
        end
    end
    return code
end

--- All requires of a source.
-- @tparam table code its tokens without the comments
-- @treturn table array of `{ how, name, suffix, line }`
local function requires(code)
    local found = {}
    for i, token in ipairs(code) do
        local before = code[i - 1]
        local is_field = before and (before.text == "." or before.text == ":")
        if token.kind == "name" and token.text == "require" and not is_field then
            local how, name, suffix = required(code, i)
            if how then
                found[#found + 1] = { how = how, name = name, suffix = suffix, line = token.line }
            end
        end
    end
    return found
end

--- Lua modules of a `lib` folder are required without that folder's name, and so are those of
-- `compat` by each other: to all others these are other libraries' names.
local function resolve(modules, name, from)
    local of_lib, of_compat = "lib." .. name, "compat." .. name
    return modules[name] and name
        or modules[of_lib] and of_lib
        or from:find("^compat%.") and modules[of_compat] and of_compat
        or nil
end

--- Does the name begin with a folder of the house?
local function is_ours(modules, name)
    local top = name:match("^[^.]+")
    for own in pairs(modules) do
        if own:match("^[^.]+") == top then
            return true
        end
    end
    return false
end

local function add_edge(house, from, to, line, how)
    if from.name ~= to and not from.uses[to] then
        from.uses[to] = line
        from.how[to] = how
        house.modules[to].used = true
    end
end

local function add_requires(house, module)
    for _, need in ipairs(requires(module.code)) do
        local target = need.how == "module" and resolve(house.modules, need.name, module.name)
        if target then
            add_edge(house, module, target, need.line, "requires")
        elseif need.how == "module" and is_ours(house.modules, need.name) then
            module.unknown[need.name] = need.line
        elseif need.how == "prefix" then
            for _, name in ipairs(sorted_keys(house.modules)) do
                local computed = name:sub(#need.name + 1, #name - #need.suffix)
                if
                    name == need.name .. computed .. need.suffix and not computed:find(".", 1, true)
                then
                    add_edge(house, module, name, need.line, "requires")
                end
            end
        elseif need.how == "computed" then
            module.computed = need.line
        end
    end
end

--- What Lua calls through FFI: names in the code, and in what `ffi.cdef` is given.
local function add_calls_of_lua(house, module)
    for _, token in ipairs(module.code) do
        for name in token.text:gmatch("[%a_][%w_]*") do
            local file = house.functions[name]
            if file and token.kind ~= "sign" then
                house.called[name] = true
                add_edge(house, module, file, token.line, "calls " .. name .. "() of")
            end
        end
    end
end

local function add_calls_of_c(house, module)
    for _, name in ipairs(sorted_keys(module.c.uses)) do
        local file = house.functions[name]
        if file and not module.c.functions[name] then
            house.called[name] = true
            local line = module.c.uses[name].line
            add_edge(house, module, file, line, "calls " .. name .. "() of")
        end
    end
    for _, include in ipairs(module.c.includes) do
        local header = house.headers[include.name]
        -- Within a room headers say what all of its files have: no direction.
        if header and header:match("^(.*)/") ~= module.file:match("^(.*)/") then
            add_edge(house, module, module_name(header), include.line, "includes")
        end
    end
end

local function add_c(house, module)
    for name, fn in pairs(module.c.functions) do
        if not fn.static then
            house.functions[name] = module.name
        end
    end
    if module.file:match("%.h$") then
        house.headers[module.file:match("[^/]+$")] = module.file
    end
end

--- Build a house from sources.
-- @tparam table sources file -> text, files relative to the root
-- @treturn table `modules`: name -> `{ name, file, uses = { name -> line }, how = { name -> verb },
-- code, c }`, tokens of Lua or what test.house.c reads; `functions`: C's, that are not static,
-- name -> module; `called`: set of those that another file calls
function _M.build(sources)
    local house = { modules = {}, functions = {}, called = {}, headers = {} }
    for file, text in pairs(sources) do
        local name = module_name(file)
        local module = { name = name, file = file, uses = {}, how = {}, unknown = {} }
        house.modules[name] = module
        if file:match("%.lua$") then
            module.code = code_of(text)
        else
            module.c = c.read(text)
            add_c(house, module)
        end
    end
    for _, name in ipairs(sorted_keys(house.modules)) do
        local module = house.modules[name]
        if module.c then
            add_calls_of_c(house, module)
        else
            add_requires(house, module)
            add_calls_of_lua(house, module)
        end
    end
    return house
end

--- Read the house that stands below a folder.
function _M.read(root)
    local sources = {}
    for _, folder in ipairs(FOLDERS) do
        for _, path in ipairs(_M.files(root .. "/" .. folder)) do
            if path:match("%.lua$") or path:match("%.[ch]$") then
                sources[path:sub(#root + 2)] = files.read(path)
            end
        end
    end
    return _M.build(sources)
end

--- Is a module within a room (or any folder, by its dotted name)?
local function is_within(name, room)
    return name == room or name:sub(1, #room + 1) == room .. "."
end

local function is_within_any(name, rooms)
    for _, room in ipairs(rooms) do
        if is_within(name, room) then
            return true
        end
    end
    return false
end

--- The room of a module that a line of the rules stands for, if it does.
local function room_for(name, line)
    local folder = line:match("^(.*)%.%*$")
    if not folder then
        return is_within(name, line) and line or nil
    end
    -- "plugins.*": each folder or file in it.
    local inner = name:sub(#folder + 2):match("^[^.]+")
    return inner and is_within(name, folder) and folder .. "." .. inner or nil
end

local function is_c(name)
    return name:find("%.[ch]$") ~= nil
end

--- Does a folder have rooms in it? Then only its init file is the room itself.
local function has_rooms(line, floors)
    for _, lines in ipairs(floors) do
        for _, other in ipairs(lines) do
            if other ~= line and is_within(other, line) then
                return true
            end
        end
    end
    return false
end

--- The room of a module: the longest that leads to it.
-- @treturn[1] string room
-- @treturn[1] number its floor
-- @treturn[2] nil
function _M.room(name, rules)
    local best, best_floor
    local floors = is_c(name) and rules.floors_of_c or rules.floors
    for floor, lines in ipairs(floors) do
        for _, line in ipairs(lines) do
            local room = room_for(name, line)
            local whole = room and (name == room or not has_rooms(line, floors))
            if whole and (not best or #room > #best) then
                best, best_floor = room, floor
            end
        end
    end
    return best, best_floor
end

--- Does a require break a rule?
-- @treturn string|nil why
function _M.broken(from, to, rules)
    local room, floor = _M.room(from, rules)
    local other, other_floor = _M.room(to, rules)
    if not room or not other or room == other then
        return nil
    end
    -- Floors are of one language; what Lua calls of C is in no folder of its own, but a plugin's.
    local is_ffi = is_c(from) ~= is_c(to)
    if not is_ffi and other_floor > floor then
        return ("runs upwards from %s to %s"):format(room, other)
    elseif not is_ffi and other_floor == floor then
        return ("runs between rooms of one floor, %s and %s"):format(room, other)
    end
    for _, door in ipairs(is_c(from) and {} or rules.doors) do
        local from_in, to_in = is_within(from, door.of), not is_ffi and is_within(to, door.of)
        if door.out and from_in and not to_in and not is_within_any(to, door.out) then
            return door.why
        elseif door.into and to_in and not from_in and not is_within_any(from, door.into) then
            return door.why
        end
    end
    return nil
end

--- Cycles, each found once: arrays of module names.
function _M.cycles(house)
    local found, state, path = {}, {}, {}
    local function visit(name)
        state[name] = "open"
        path[#path + 1] = name
        for _, used in ipairs(sorted_keys(house.modules[name].uses)) do
            if state[used] == "open" then
                local cycle, i = { used }, #path
                while path[i] ~= used do
                    table.insert(cycle, 2, path[i])
                    i = i - 1
                end
                found[#found + 1] = cycle
            elseif not state[used] then
                visit(used)
            end
        end
        path[#path] = nil
        state[name] = "done"
    end
    for _, name in ipairs(sorted_keys(house.modules)) do
        if not state[name] then
            visit(name)
        end
    end
    return found
end

local function matches(name, patterns)
    for _, pattern in ipairs(patterns) do
        if name:find(pattern) then
            return true
        end
    end
    return false
end

local function module_violations(module, rules, report)
    if not _M.room(module.name, rules) then
        report("%s has no floor in test/house/rules.lua", module.file)
    end
    for _, used in ipairs(sorted_keys(module.uses)) do
        local why = _M.broken(module.name, used, rules)
        if why then
            local how = module.how[used]
            report("%s:%d %s %s: %s", module.file, module.uses[used], how, used, why)
        end
    end
    for _, name in ipairs(sorted_keys(module.unknown)) do
        report("%s:%d requires %s: no such module", module.file, module.unknown[name], name)
    end
    if module.computed and not rules.computed[module.name] then
        report("%s:%d requires a name that the scan cannot know", module.file, module.computed)
    end
    local is_entry = rules.entries[module.name] or matches(module.name, rules.required_elsewhere)
    if not module.c and not module.used and not is_entry then
        report("%s is required by nothing", module.file)
    end
    for _, include in ipairs(module.c and module.c.includes or {}) do
        if
            (
                is_within_any(module.name, rules.plain.rooms)
                or matches(module.name, rules.plain.files)
            ) and matches(include.name, rules.plain.not_of)
        then
            report(
                "%s:%d includes %s: %s",
                module.file,
                include.line,
                include.name,
                rules.plain.why
            )
        end
    end
end

-- nginx's header of the platform asks for GNU's names (_GNU_SOURCE) by a macro, which a header of
-- the system that came before it has no use for: some systems' headers then lack what nginx needs.
local function first_header(house, file, seen)
    seen[file] = true
    local module = house.modules[module_name(file)]
    for _, include in ipairs(module.c.includes) do
        local path = house.headers[include.name]
        if not path then
            return include.name, file, include.line
        end
        if not seen[path] then
            local name, from, line = first_header(house, path, seen)
            if name then
                return name, from, line
            end
        end
    end
end

local function includes_nginx(house, file, seen)
    seen[file] = true
    for _, include in ipairs(house.modules[module_name(file)].c.includes) do
        local path = house.headers[include.name]
        if include.name:match("^ngx_") and not path then
            return true
        end
        if path and not seen[path] and includes_nginx(house, path, seen) then
            return true
        end
    end
    return false
end

local function header_violations(house, module, report)
    if not includes_nginx(house, module.file, {}) then
        return
    end
    local name, from, line = first_header(house, module.file, {})
    if name ~= "ngx_config.h" then
        report("%s: %s:%d includes %s before ngx_config.h", module.file, from, line, name)
    end
end

--- Everything the rules forbid, one line each, naming the file.
-- @treturn table array of lines
function _M.violations(house, rules)
    local found = {}
    local function report(form, ...)
        found[#found + 1] = form:format(...)
    end
    for _, name in ipairs(sorted_keys(house.modules)) do
        local module = house.modules[name]
        module_violations(module, rules, report)
        if module.c then
            header_violations(house, module, report)
        end
    end
    for _, cycle in ipairs(_M.cycles(house)) do
        report("cycle: %s -> %s", table.concat(cycle, " -> "), cycle[1])
    end
    return found
end

return _M
