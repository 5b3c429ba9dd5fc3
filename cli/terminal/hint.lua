--- How a command that a line names in backquotes, `sluice reload`, is typed here: with the path of
-- the program unless the shell finds it, and for the instance that the command was about.
-- @module cli.terminal.hint

local stat = require("posix.sys.stat")
local stdlib = require("posix.stdlib")
local unistd = require("posix.unistd")

local _M = {}

local NAMED = "`sluice ([%l-]+)([^`]*)`"
-- Commands that know no instance.
local WITHOUT_PREFIX = { completion = true, help = true, ["nginx-conf"] = true, version = true }
-- What a shell leaves as it is.
local PLAIN = "^[%w@%%+=:,./_-]+$"

local program, instance_prefix, named_prefix = nil, nil, nil
local given_flags, given_variables = {}, {}

-- Whether both are the same file.
local function is_same(path, other)
    local a, b = stat.stat(path), stat.stat(other)
    return a ~= nil and b ~= nil and a.st_dev == b.st_dev and a.st_ino == b.st_ino
end

local function find_program(root)
    local path = root .. "/bin/sluice"
    for folder in (os.getenv("PATH") or ""):gmatch("[^:]+") do
        local found = folder .. "/sluice"
        if unistd.access(found, "x") then
            return is_same(found, path) and "sluice" or path
        end
    end
    return unistd.getcwd() == stdlib.realpath(root) and "bin/sluice" or path
end

--- A word as a shell takes it.
-- @tparam string text
-- @treturn string
function _M.quoted(text)
    return text:find(PLAIN) and text or "'" .. text:gsub("'", "'\\''") .. "'"
end

--- Sets where Sluice lies.
-- @tparam string root its directory
function _M.set_root(root)
    _M.root, program = root, nil
end

--- Sets the instance that a command is about.
-- @tparam string|nil prefix that it was given by a flag
-- @tparam[opt] string named that it was given by a flag or the environment
function _M.set_prefix(prefix, named)
    instance_prefix, named_prefix = prefix, named or prefix
end

--- Sets the settings that the command was given by flags.
-- @tparam {table,...} flags of each the flag, as typed, and its text; nil: it takes none
function _M.set_flags(flags)
    given_flags = flags
end

--- Sets the settings that the environment has for this command, and had not when the gateway was
-- started: who sets them for one command alone has to type them again.
-- @tparam {table,...} variables of each the name, and its text; nil: it is a secret
function _M.set_variables(variables)
    given_variables = variables
end

--- A command to type in the place of the one that runs, with the same settings, for a line.
-- @tparam string name such as "restart"
-- @treturn string in backquotes; what is behind them names the variables that are secrets
function _M.instead(name)
    local words, secrets = {}, {}
    for _, variable in ipairs(given_variables) do
        local variable_name, text = variable[1], variable[2]
        words[#words + 1] = text and ("%s=%s"):format(variable_name, _M.quoted(text))
        secrets[#secrets + 1] = not text and variable_name or nil
    end
    -- Here, as a text behind may have what `complete` takes for the end, or for a prefix.
    words[#words + 1] = _M.command(name, named_prefix)
    for _, flag in ipairs(given_flags) do
        words[#words + 1] = flag[1]
        words[#words + 1] = flag[2] and _M.quoted(flag[2])
    end
    local more = #secrets > 0 and (" with %s set"):format(table.concat(secrets, ", ")) or ""
    return ("`%s`%s"):format(table.concat(words, " "), more)
end

--- A command as it is typed here.
-- @tparam string command such as "get routes"
-- @tparam[opt] string prefix of the instance
-- @treturn string
function _M.command(command, prefix)
    program = program or (_M.root and find_program(_M.root) or "sluice")
    return ("%s %s%s"):format(program, command, prefix and " --prefix " .. _M.quoted(prefix) or "")
end

--- A line with its commands as they are typed here.
-- @tparam string line
-- @treturn string
function _M.complete(line)
    return (
        line:gsub(NAMED, function(name, rest)
            local has_prefix = WITHOUT_PREFIX[name] or rest:find("--prefix", 1, true)
            return "`" .. _M.command(name .. rest, not has_prefix and instance_prefix or nil) .. "`"
        end)
    )
end

return _M
