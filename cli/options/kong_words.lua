--- Reads Kong's command line, by the rows of its commands (cli.commands.kong).

local argparse = require("argparse")

local _M = {}

local NO_TEMPLATE = "nginx.conf is rendered from settings and no template is read; leave it out, "
    .. "and see docs/kong-settings.md for what KONG_NGINX_* sets"

-- Kong's flags: how argparse reads them; `no` is why one is refused.
local FLAGS = {
    conf = { "-c --conf", "The settings file, kong.conf or Sluice's." },
    prefix = { "-p --prefix", "The prefix." },
    timeout = { "-t --timeout", "Seconds that requests have to finish; 10 by default." },
    wait = { "-w --wait", "Seconds to wait before it quits; 0 by default." },
    nginx_conf = { "--nginx-conf", "Refused: no template is read.", no = NO_TEMPLATE },
    nginx_conf_flags = { "--nginx-conf-flags", "Refused, as --nginx-conf.", no = NO_TEMPLATE },
    run_migrations = { "--run-migrations", "No effect: nothing has to migrate.", args = "?" },
    db_timeout = { "--db-timeout", "No effect: there is no database to wait for." },
    lock_timeout = { "--lock-timeout", "No effect, as --db-timeout." },
    all = { "-a --all", "Also the versions of what it runs on.", is_switch = true },
    yes = { "-y --yes", "Ask nothing.", is_switch = true },
    quiet = { "-q --quiet", "Print nothing.", is_switch = true },
    force = { "-f --force", "With bootstrap: empty the store first.", is_switch = true },
}

local function names_of(rows)
    local names = {}
    for name, row in pairs(rows) do
        names[#names + 1] = not row.no and name or nil
    end
    table.sort(names)
    return names
end

local function add_flags(command, names)
    for name in names:gmatch("%S+") do
        local flag = FLAGS[name]
        local element = flag.is_switch and command:flag(flag[1]) or command:option(flag[1])
        element:target(name):description(flag[2])
        if not flag.is_switch then
            element:argname("<value>"):args(flag.args or 1)
        end
    end
    command:flag("-v --v", "No effect: all is said."):target("verbose")
    command:flag("--vv", "No effect, as --v."):target("very_verbose")
    command:argument("words"):args("*"):description("Its own command or file.")
end

-- The parser of Kong's command line.
local function parser(rows)
    local made = argparse("kong", "Kong's command line, on Sluice.")
    made:command_target("command"):require_command(true)
    for _, name in ipairs(names_of(rows)) do
        local row = rows[name]
        local command = made:command(name, row.about)
        if row.parts then
            command:epilog("Commands: " .. table.concat(names_of(row.parts), ", "))
        end
        add_flags(command, row.flags)
    end
    return made
end

-- The row that is meant, of a command or of its own, and its name; nil and why there is none.
local function find(given, rows)
    local row, name = rows[given.command], given.command
    if not row.parts then
        return row, name
    end
    local part = table.remove(given.words, 1)
    part = part and part:gsub("-", "_")
    local listed = table.concat(names_of(row.parts), ", ")
    if not part or not row.parts[part] then
        local what = part and ("no '%s'"):format(part) or "a command is missing"
        return nil, ("kong %s: %s; there are %s"):format(name, what, listed)
    end
    return row.parts[part], name .. " " .. part
end

-- Why a command or one of its flags is not here.
local function refusal(given, row, name)
    if row.no then
        return ("kong %s: %s"):format(name, row.no)
    elseif row.words == "file" and not given.words[1] then
        return ("kong %s: a file is missing"):format(name)
    end
    for flag, how in pairs(FLAGS) do
        if how.no and given[flag] then
            return ("kong %s: %s: %s"):format(given.command, how[1], how.no)
        end
    end
    return nil
end

--- Reads it.
-- @tparam {string,...} words behind `kong`
-- @tparam table rows name -> row
-- @treturn table|nil the flags by name, the `command`, its `words`, and the `row` and the `name` of
-- what is meant
-- @treturn nil|{string,...} lines that say what is wrong
function _M.read(words, rows)
    local absent = rows[words[1] or ""]
    if absent and absent.no then
        return nil, { refusal({}, absent, words[1]) }
    end
    local made = parser(rows)
    made.error = function(_, message)
        message = message:gsub("\nDid", "; did")
        error({ message, "  commands: " .. table.concat(names_of(rows), ", ") }, 0)
    end
    local is_read, given = pcall(made.parse, made, words)
    if not is_read and type(given) ~= "table" then
        error(given, 0)
    elseif not is_read then
        return nil, given
    end
    local row, name = find(given, rows)
    local wrong = not row and name or refusal(given, row, name)
    if wrong then
        return nil, { wrong }
    end
    given.row, given.name = row, name
    return given
end

return _M
