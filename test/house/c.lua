--- As much of C as looking after the house needs: which functions a file defines, and which names
-- its code uses.
--
-- @usage
-- local file = c.read("int twice(int n)\n{\n    return plus(n, n);\n}\n")
-- file.functions.twice --> { line = 1, static = false }
-- file.uses.plus --> { line = 3, by = { twice = true } }
-- file.includes --> { { name = "ring.h", line = 1 }, ... }

local _M = {}

--- The same text with blanks for what `pattern` finds, so that lines stay where they are.
local function blank(text)
    return (text:gsub("[^\n]", " "))
end

--- The same text with comments, strings and characters blanked.
function _M.code(source)
    local parts, at = {}, 1
    while true do
        local from = source:find("[\"'/]", at)
        if not from then
            parts[#parts + 1] = source:sub(at)
            return table.concat(parts)
        end
        parts[#parts + 1] = source:sub(at, from - 1)
        local quote = source:sub(from, from)
        local stop = from
        if source:find("^/%*", from) then
            local _, close = source:find("*/", from + 2, true)
            stop = close or #source
        elseif source:find("^//", from) then
            stop = (source:find("\n", from, true) or #source + 1) - 1
        elseif quote ~= "/" then
            stop = from + 1
            while stop <= #source and source:sub(stop, stop) ~= quote do
                stop = stop + (source:sub(stop, stop) == "\\" and 2 or 1)
            end
        end
        local seen = source:sub(from, stop)
        parts[#parts + 1] = seen == "/" and seen or blank(seen)
        at = stop + 1
    end
end

local function line_at(text, at)
    local _, breaks = text:sub(1, at - 1):gsub("\n", "")
    return breaks + 1
end

local function note_uses(file, text, line, by)
    for row in (text .. "\n"):gmatch("(.-)\n") do
        for name in row:gmatch("[%a_][%w_]*") do
            local use = file.uses[name] or { line = line, by = {} }
            use.by[by] = true
            file.uses[name] = use
        end
        line = line + 1
    end
end

--- Takes the lines of the preprocessor out; what a macro names is used by the file.
local function preprocess(file, code)
    local line, rows, goes_on = 0, {}, false
    for row in (code .. "\n"):gmatch("(.-)\n") do
        line = line + 1
        if goes_on or row:find("^%s*#") then
            local body = goes_on and row or row:match("^%s*#%s*define%s+[%w_]+(.*)$")
            if body then
                note_uses(file, body, line, "")
            end
            goes_on = row:find("\\%s*$") ~= nil
            row = ""
        end
        rows[#rows + 1] = row
    end
    return table.concat(rows, "\n")
end

--- The name of the function whose head stands before a brace, nil for a struct or a table.
local function function_of(head)
    return not head:find("=") and head:match("([%a_][%w_]*)%s*%b()%s*$") or nil
end

--- What stands outside of all braces, and what is within them.
local function read_code(file, code)
    local at = 1
    while true do
        local from, to = code:find("%b{}", at)
        local head = code:sub(at, (from or #code + 1) - 1)
        local declared = head:match("^.*[;}]()") or 1
        for statement, start in head:sub(1, declared - 1):gmatch("([^;]*)();") do
            local name = function_of(statement)
            if name then
                file.declares[name] = true
            elseif statement:find("=") then
                note_uses(file, statement, line_at(code, at + start - 1 - #statement), "")
            end
        end
        if not from then
            return
        end
        head = head:sub(declared)
        local name = function_of(head)
        if name then
            local first = at + declared - 1 + #head:match("^%s*")
            file.functions[name] = {
                line = line_at(code, first),
                static = head:find("%f[%w_]static%f[^%w_]") ~= nil,
            }
        end
        note_uses(file, code:sub(from, to), line_at(code, from), name or "")
        at = to + 1
    end
end

--- Reads a source or a header.
-- @tparam string source
-- @treturn table `functions`: name -> `{ line, static }`; `declares`: set of names; `uses`: name ->
-- `{ line, by }`, `by` being a set of functions ("" outside of them); `includes`: array of
-- `{ name, line }`
function _M.read(source)
    local file = { functions = {}, declares = {}, uses = {}, includes = {} }
    local line = 0
    for row in (source .. "\n"):gmatch("(.-)\n") do
        line = line + 1
        local name = row:match('^%s*#%s*include%s+["<]([^">]+)[">]')
        if name then
            file.includes[#file.includes + 1] = { name = name, line = line }
        end
    end
    read_code(file, preprocess(file, _M.code(source)))
    return file
end

return _M
