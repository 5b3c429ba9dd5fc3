--- Scripts that complete `sluice` in a shell, made from the parser of the command line.
--
-- argparse has zsh complete all; its script for bash leaves out the words of arguments that are no
-- flags, so a function around it adds those.

local help = require("cli.options.help")

local _M = {}

local SHELLS = "bash zsh"

local BASH = [=[

_sluice_arguments() {
    local word="${COMP_WORDS[COMP_CWORD]}"
    _sluice
    if [[ ${#COMPREPLY[@]} -eq 0 && "$word" != -* ]]; then
        case "${COMP_WORDS[1]} $COMP_CWORD" in
            "get 2"|"delete 2") COMPREPLY=($(compgen -W "%s" -- "$word")) ;;
            "help 2") COMPREPLY=($(compgen -W "%s" -- "$word")) ;;
            "completion 2") COMPREPLY=($(compgen -W "%s" -- "$word")) ;;
        esac
    fi
}

complete -F _sluice_arguments -o bashdefault -o default sluice
]=]

--- The script for a shell, to be read by it.
-- @tparam table parser of argparse, its arguments with choices
-- @tparam string shell "bash" or "zsh"
-- @tparam {string,...} kinds of entities
-- @treturn string
function _M.script(parser, shell, kinds)
    if shell == "zsh" then
        return parser:get_zsh_complete()
    end
    local topics = table.concat(help.topics(parser), " ")
    return parser:get_bash_complete() .. BASH:format(table.concat(kinds, " "), topics, SHELLS)
end

return _M
