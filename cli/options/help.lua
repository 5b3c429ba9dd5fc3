--- Help and usage of the commands, from the parser of the command line.

local nearest = require("sluice.nearest")
local options = require("cli.options")

local _M = {}

local HELP = { ["-h"] = "help", ["--help"] = "help", ["-v"] = "version", ["--version"] = "version" }

-- What a value is called, where its type alone says little.
local ARGNAMES = {
    boolean = "<on|off>",
    buffers = "<number size>",
    cidr_list = "<network,...>",
    host_list = "<host,...>",
    integer = "<number>",
    listen = "<address,...>",
    log = "<file>",
    log_format = "<format>",
    module_list = "<name,...>",
    name_list = "<name,...>",
    path_list = "<path,...>",
    word_list = "<word,...>",
    words = "<word ...>",
}

--- What a terminal shows of a text of Markdown: without backticks, and a link as the page's path.
-- @tparam string text
-- @treturn string
function _M.plain(text)
    return (text:gsub("%[[^%]]*%]%(([%w_./-]+)[^)]*%)", "docs/%1"):gsub("`", ""))
end

--- The name of a setting's value.
-- @tparam table option a row of cli.options
-- @treturn string such as "<on|off>"
function _M.argname(option)
    if option.type == "enum" then
        return "<" .. table.concat(option.values, "|") .. ">"
    end
    return ARGNAMES[option.type] or ("<%s>"):format(option.type)
end

--- What a setting does and takes.
-- @tparam table option a row of cli.options
-- @treturn string
function _M.setting(option)
    local parts = { option.doc }
    parts[#parts + 1] = options.limits(option)
    parts[#parts + 1] = option.default ~= "" and ("Default: %s."):format(option.default) or nil
    return _M.plain(table.concat(parts, " "))
end

--- How a command is typed.
-- @tparam table command of argparse
-- @treturn string a line
function _M.usage(command)
    local words = { "Usage: sluice", command._name }
    for _, argument in ipairs(command._arguments) do
        local name = ("<%s>%s"):format(argument._name, argument._maxargs > 1 and "..." or "")
        words[#words + 1] = argument._minargs == 0 and ("[%s]"):format(name) or name
    end
    words[#words + 1] = "[flags]"
    return table.concat(words, " ")
end

local function names_of(parser)
    local names, by_name = {}, {}
    for i, command in ipairs(parser._commands) do
        names[i] = command._name
        by_name[command._name] = command
    end
    return names, by_name
end

-- Commands of Kong's that have others' names here.
local OF_KONG = {
    config = "`sluice check FILE` is Kong's config parse, `sluice import FILE` config db_import, "
        .. "`sluice export FILE` config db_export",
    health = "`sluice status` says whether it runs",
    migrations = "the store needs none: `sluice start` makes it, and takes an older version's",
    prepare = "`sluice start` makes what it needs",
}

--- The help of all commands, or of one.
-- @tparam table parser of the command line
-- @tparam[opt] string name of a command
-- @treturn string|nil
-- @treturn nil|string there is no such command
function _M.text(parser, name)
    local names, by_name = names_of(parser)
    local found = name and by_name[name] or not name and parser
    if found then
        return found:get_help() .. "\n"
    end
    local near = nearest.find(name, names)
    if OF_KONG[name] then
        return nil, ("unknown command '%s'; %s"):format(name, OF_KONG[name])
    end
    local hint = near and ("; did you mean '%s'?"):format(near) or "; `sluice help` lists them"
    return nil, ("unknown command '%s'%s"):format(name, hint)
end

--- The command that is meant where the help or the version is asked for by a flag, whatever else is
-- wrong.
-- @tparam {string,...} words of the command line
-- @treturn {string,...} words to read in their place
function _M.rewritten(words)
    local command, asked
    for _, word in ipairs(words) do
        if word == "--" then
            break
        end
        asked = asked or HELP[word]
        command = command or (not word:find("^%-") and word or nil)
    end
    if asked == "help" then
        return { "help", command }
    end
    return asked and { asked } or words
end

-- What to say of a setting that has no flag, or of a flag with a list that is given again.
local function of_setting(message)
    local flag = message:match("^unknown option '%-%-([%w_-]+)'")
    local option = flag and options.by_name[flag:gsub("-", "_")]
    if option and options.is_secret(option) then
        local line = "%s has no flag, since everybody can see flags; use %s in the environment, "
            .. "or a line of the settings file"
        return line:format(option.name, options.variable(option))
    end
    local again = message:match("^option '(%-%-[%w-]+)' must be used at most 1 time")
    return again and ("%s is given twice; separate its values by commas"):format(again)
end

--- What to say of words that cannot be read.
-- @tparam table command of argparse that they are of, or the parser of all
-- @tparam string message argparse's
-- @treturn {string,...} lines
function _M.refusal(command, message)
    local topic = command._parent and " " .. command._name or ""
    local unknown = message:match("^unknown command '([%w-]+)'")
    local here = OF_KONG[unknown]
    return {
        here and ("unknown command '%s'; %s"):format(unknown, here)
            or of_setting(message)
            or message:gsub("\nDid", "; did"),
        "  " .. command:get_usage():gsub("^U", "u"),
        ("  more:  sluice help%s"):format(topic),
    }
end

return _M
