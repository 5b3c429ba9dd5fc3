--- Looks after what no linter does: long functions and files, C's long lines, loose
-- ends, tabs, paths of one machine.
--
-- @usage
-- for _, complaint in ipairs(tidy.complaints("gateway/x.lua", text)) do print(complaint) end

local lexer = require("test.house.lexer")

local _M = {}

local MAX_FUNCTION = 70
local MAX_FILE = 500
-- Of a function in Lua or C: beyond them it takes a table, or a struct.
local MAX_ARGUMENTS = 8
-- Of C; Lua's and Python's are their formatters' business.
local MAX_COLUMNS = 79

-- The words that give the reason: for a function on one of the two lines before
-- it or in its first two, for a file anywhere.
local REASON = "Long on purpose: "

local BY_EXTENSION = {
    c = "c",
    conf = "text",
    h = "c",
    lua = "lua",
    md = "text",
    py = "python",
    sh = "shell",
    toml = "text",
    yaml = "text",
    yml = "text",
}

local LOOSE_ENDS = { "TODO", "FIXME", "XXX" }

-- Where a machine keeps its users' and its builders' files.
local MACHINE_PATHS = { "/home/", "/root/", "/work/", "/Users/" }

-- Where a distribution keeps nginx, and who may say it: one file, and what is generated from it.
local PLATFORM_PATHS = { "/usr/sbin/nginx", "/usr/lib/nginx", "/usr/share/nginx" }
local NAMES_PLATFORM = { ["cli/options/platform.lua"] = true, ["docs/config.md"] = true }

--- Files that have to name what is searched for.
local EXEMPT = {
    ["test/house/tidy.lua"] = true,
    ["test/unit/style_spec.lua"] = true,
}

--- The language of a file, nil for what is nobody's source.
function _M.language(path, text)
    local extension = path:match("%.(%w+)$")
    if extension then
        return BY_EXTENSION[extension]
    end
    return text:match("^#![^\n]*sh\n") and "shell" or nil
end

local function lines_of(text)
    local lines = {}
    for line in (text:gsub("\n$", "") .. "\n"):gmatch("(.-)\n") do
        lines[#lines + 1] = line
    end
    return lines
end

local OPENS = { ["function"] = true, ["if"] = true, ["do"] = true, ["repeat"] = true }

--- Functions with the number of their own lines: those of functions within, such
-- as the tests in a `describe`, are not counted.
-- @treturn table array of `{ line, last_line, own }`
function _M.functions(source)
    local found, open = {}, {}
    for _, token in ipairs(lexer.tokens(source)) do
        if token.kind == "name" and OPENS[token.text] then
            open[#open + 1] = { word = token.text, line = token.line, inner = 0 }
        elseif token.kind == "name" and (token.text == "end" or token.text == "until") then
            local block = table.remove(open)
            local around = open[#open]
            local inner = block.inner
            if block.word == "function" then
                local span = token.line - block.line + 1
                found[#found + 1] = {
                    line = block.line,
                    last_line = token.line,
                    own = span - block.inner,
                }
                -- What shares its first or last line with the outside is no loss.
                inner = span
            end
            if around then
                around.inner = around.inner + inner
            end
        end
    end
    return found
end

local function gives_reason(lines, from, to)
    for i = math.max(1, from), math.min(#lines, to) do
        if lines[i]:find(REASON .. "%w") then
            return true
        end
    end
    return false
end

--- Functions of C: the name begins a line, braces have lines of their own.
-- @treturn table array of `{ line, last_line, own }`
local function functions_of_c(lines)
    local found, head, open = {}, nil, false
    for number, line in ipairs(lines) do
        if line:find("^[%a_][%w_]*%(") then
            head = number
        elseif line == "{" then
            open = head ~= nil
        elseif line == "}" and open then
            found[#found + 1] = { line = head, last_line = number, own = number - head + 1 }
            head, open = nil, false
        end
    end
    return found
end

local ARGUMENTS = {
    c = "()([%a_][%w_]*)(%b())\n{",
    lua = "()function%s*([%w_.:]*)%s*(%b())",
}

local function check_arguments(language, text, lines, report)
    for at, name, list in text:gmatch(ARGUMENTS[language]) do
        local _, commas = list:gsub(",", "")
        local _, breaks = text:sub(1, at):gsub("\n", "")
        local line = breaks + 1
        if commas + 1 > MAX_ARGUMENTS and not gives_reason(lines, line - 3, line) then
            report(line, "%s takes %d arguments", name, commas + 1)
        end
    end
end

local function check_lengths(path, language, text, lines, report)
    if language ~= "text" and #lines > MAX_FILE and not gives_reason(lines, 1, #lines) then
        report(1, "%d lines, and no comment '%s...'", #lines, REASON)
    end
    if language ~= "lua" and language ~= "c" then
        return
    end
    -- A test in C is a list of steps: cut, its state would travel from piece to piece.
    local functions = language == "lua" and _M.functions(text)
        or path:find("^test/") and {}
        or functions_of_c(lines)
    for _, fn in ipairs(functions) do
        if fn.own > MAX_FUNCTION and not gives_reason(lines, fn.line - 2, fn.line + 2) then
            report(fn.line, "a function of %d lines, and no comment '%s...'", fn.own, REASON)
        end
    end
    check_arguments(language, text, lines, report)
end

local function check_platform(number, line, report)
    for _, path in ipairs(PLATFORM_PATHS) do
        if line:find(path, 1, true) then
            report(number, "%s belongs into cli/options/platform.lua", path)
        end
    end
end

local function check_line(language, number, line, report)
    if line:find("\t") then
        report(number, "a tab")
    end
    if line:find("%s$") then
        report(number, "space at the end of the line")
    end
    if language == "c" and #line > MAX_COLUMNS then
        report(number, "%d columns", #line)
    end
    if (language == "python" or language == "shell") and line:find("[\128-\255]") then
        report(number, "a character beyond ASCII")
    end
    for _, word in ipairs(LOOSE_ENDS) do
        if line:find("%f[%w]" .. word .. "%f[%W]") then
            report(number, "a loose end: %s", word)
        end
    end
    for _, folder in ipairs(MACHINE_PATHS) do
        -- Not where it goes on from something, as in "/api/home/me".
        local path = (" " .. line):match("[^%w._/-](" .. folder .. "%w[%w/._-]*)")
        if path then
            report(number, "a path of one machine: %s", path)
        end
    end
end

--- Lua's strings may hold anything, names and comments are ASCII.
local function check_tokens(text, report)
    for _, token in ipairs(lexer.tokens(text)) do
        if token.kind ~= "string" and token.text:find("[\128-\255]") then
            report(token.line, "a character beyond ASCII")
        end
    end
end

--- What is untidy in a file.
-- @tparam string path relative to the root
-- @tparam string text
-- @treturn table array of lines that begin with the path
function _M.complaints(path, text)
    local found = {}
    local language = _M.language(path, text)
    if not language or EXEMPT[path] then
        return found
    end
    local function report(line, form, ...)
        found[#found + 1] = ("%s:%d: %s"):format(path, line, form:format(...))
    end
    local lines = lines_of(text)
    check_lengths(path, language, text, lines, report)
    if language == "lua" then
        check_tokens(text, report)
    end
    for number, line in ipairs(lines) do
        check_line(language, number, line, report)
        if not NAMES_PLATFORM[path] then
            check_platform(number, line, report)
        end
    end
    if text:sub(-1) ~= "\n" then
        report(#lines, "no newline at the end of the file")
    end
    return found
end

return _M
