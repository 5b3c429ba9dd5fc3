--- Help and usage of the commands, from the parser of the command line.

local flags = require("cli.options.flags")
local habits = require("cli.options.habits")
local hint = require("cli.terminal.hint")
local nearest = require("sluice.nearest")
local options = require("cli.options")

local _M = {}

local SETTINGS = "settings"
local HELP = { ["-h"] = "help", ["--help"] = "help", ["-v"] = "version", ["--version"] = "version" }

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

--- What has help: the commands, and the flags of the settings.
-- @tparam table parser of the command line
-- @treturn {string,...}
function _M.topics(parser)
    local names = names_of(parser)
    names[#names + 1] = SETTINGS
    return names
end

-- The setting of a name, which may be spelt as a flag.
local function find_setting(name)
    return options.by_name[name:gsub("^%-%-", ""):gsub("-", "_")]
end

-- What to say of a name that has no help.
local function unknown(parser, name)
    if habits.of_command(name) then
        return ("unknown command '%s'; %s"):format(name, habits.of_command(name))
    end
    local settings = {}
    for i, option in ipairs(options.list) do
        settings[i] = option.name
    end
    local bare = name:gsub("^%-%-", "")
    local near = nearest.find(bare, _M.topics(parser))
        or nearest.find(bare:gsub("-", "_"), settings)
    local more = near and ("did you mean '%s'?"):format(near)
        or "`sluice help` lists commands, `sluice help settings` settings"
    return ("there is no command or setting '%s'; %s"):format(name, more)
end

--- The help of all commands, of one, of the settings, or of one of these.
-- @tparam table parser of the command line
-- @tparam[opt] string name of a command or a setting; "settings"; or the flag of a setting
-- @treturn string|nil
-- @treturn nil|string there is nothing of this name
function _M.text(parser, name)
    if name == SETTINGS then
        return flags.help()
    end
    local _, by_name = names_of(parser)
    local found = name and by_name[name] or not name and parser
    if found then
        return found:get_help() .. "\n"
    end
    local setting = find_setting(name)
    if setting then
        return flags.help_of(setting)
    end
    return nil, unknown(parser, name)
end

--- The command that is meant where the help or the version is asked for by a flag, whatever else is
-- wrong.
-- @tparam {string,...} words of the command line
-- @treturn {string,...} words to read in their place
function _M.rewritten(words)
    local command, asked
    if #words == 2 and words[1] == "help" and words[2]:find("^%-%-%a") and not HELP[words[2]] then
        return { "help", "--", words[2] }
    end
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

-- What to say of a flag of a habit, of a setting that has no flag, of a flag before the command,
-- or of a flag with a list that is given again.
local function of_flag(command, message, words)
    local letter = message:match("^unknown option '%-([^-])'")
    if letter then
        -- argparse takes each flag of one letter for a slip of any other.
        return habits.of_letter(command, letter, words) or message:match("^[^\n]+")
    end
    local name = message:match("^unknown option '%-%-([%w_-]+)'")
    local option = name and find_setting(name)
    if option and options.is_secret(option) then
        return flags.no_flag(option)
    end
    local here = name and habits.of_flag(command, name, words)
    if here then
        return here
    end
    local behind = name and habits.flags_behind(command, "--" .. name, words)
    if behind then
        return "put flags after the command: " .. behind
    end
    local again = message:match("^option '(%-%-[%w-]+)' must be used at most 1 time")
    return again and ("%s is given twice; separate its values by commas"):format(again)
end

-- What to say of a file that is given to a command which takes none.
local function of_file(command, message, words)
    local file = message == "too many arguments" and habits.stray_file(command, words)
    local line = "%s takes no file as an argument; use --file %s"
    return file and line:format(command._name, hint.quoted(file))
end

-- What to say of an argument that is missing: what it is.
local function of_argument(command, message)
    local name = message:match("^missing argument '([%w_-]+)'$")
    for _, argument in ipairs(command._arguments) do
        if argument._name == name then
            local what = argument._description:gsub("%.$", "")
            return ("%s: %s"):format(message, what:sub(1, 1):lower() .. what:sub(2))
        end
    end
    return nil
end

--- What to say of words that cannot be read.
-- @tparam table command of argparse that they are of, or the parser of all
-- @tparam string message argparse's
-- @tparam {string,...} words of the command line
-- @treturn {string,...} lines
function _M.refusal(command, message, words)
    local topic = command._parent and " " .. command._name or ""
    local command_name = message:match("^unknown command '([%w-]+)'")
    local here = command_name and habits.of_command(command_name)
    return {
        here and ("unknown command '%s'; %s"):format(command_name, here)
            or of_flag(command, message, words)
            or of_file(command, message, words)
            or of_argument(command, message)
            or message:gsub("\nDid", "; did"),
        "  " .. command:get_usage():gsub("^U", "u"),
        ("  more:  sluice help%s"):format(topic),
    }
end

return _M
