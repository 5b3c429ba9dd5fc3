--- The command line: its commands, their arguments and flags.
--
-- Long on purpose: every command, its flags and the words of its help, in one place.

local argparse = require("argparse")
local flags = require("cli.options.flags")
local help = require("cli.options.help")
local libraries = require("cli.nginx.libraries")
local options = require("cli.options")
local timers = require("cli.commands.timers")
local tokens = require("cli.options.tokens")

local _M = {}

local QUIT_TIMEOUT_S = "30"
local HISTORY_SIZE = "20"
local UPGRADE_TIMEOUT_S = "60"
local WATCH_S = "3"

local function seconds(text)
    local number = tonumber(text)
    if not number or number < 0 or number > 86400 then
        return nil, ("'%s' is not valid; expected seconds from 0 to 86400"):format(text)
    end
    return number
end

local function add_timeout(command)
    command
        :option("--timeout")
        :argname("<seconds>")
        :convert(seconds)
        :default(QUIT_TIMEOUT_S)
        :description("Time that open requests have to finish before they are aborted")
end

-- Flags of what changes entities: all show a plan (cli.commands.planning).
local function add_plan_flags(command)
    command:flag("--dry-run", "Show what would change without changing it."):target("dry_run")
    command:flag("-y --yes", "Delete without asking, as is always so without a terminal.")
    command:flag("--json", "Print JSON.")
end

local function add_upgrade(parser)
    local upgrade = parser:command(
        "upgrade",
        "Switch to the installed version of nginx and Sluice without dropping a request."
    )
    upgrade
        :option("--timeout")
        :argname("<seconds>")
        :convert(seconds)
        :default(UPGRADE_TIMEOUT_S)
        :description("Time limit of each step; after it, the upgrade is undone")
    upgrade
        :option("--watch")
        :argname("<seconds>")
        :convert(seconds)
        :default(WATCH_S)
        :description("Time that new and old workers both serve before the old ones shut down")
    flags.add(upgrade)
end

local PREFIX_ONLY = { prefix = true, conf = true }
local CHECK_ONLY = {
    prefix = true,
    conf = true,
    file = true,
    plugins = true,
    lua_package_path = true,
    vault_env = true,
}
local PLUGINS_ONLY = { prefix = true, conf = true, plugins = true, lua_package_path = true }
local TOKENS_ONLY = { prefix = true, conf = true, admin_named_tokens = true }
local LIBRARIES_ONLY = {
    conf = true,
    events_size = true,
    events_stall = true,
    lua_package_path = true,
    nginx_modules = true,
}

local KIND = "A kind of entities: routes, services, key-auths, ...; or a nested one such as "
    .. "upstreams/pool/targets"

local function choice(words)
    return function(text)
        for _, word in ipairs(words) do
            if text == word then
                return text
            end
        end
        return nil,
            ("'%s' is not valid; expected one of %s"):format(text, table.concat(words, ", "))
    end
end

local function count(text)
    local number = tonumber(text)
    if not number or number < 1 or number % 1 ~= 0 then
        return nil, ("'%s' is not valid; expected a whole number above 0"):format(text)
    end
    return number
end

local function revision(text)
    local number = text:find("^%d+$") and #text < 16 and tonumber(text)
    if not number then
        return nil, ("'%s' is not valid; expected the number of a revision"):format(text)
    end
    return number
end

local function add_timers(parser)
    local command = parser:command("timers", "Show timer statistics of all workers.")
    command
        :option("--sort")
        :argname("<column>")
        :convert(choice(timers.sort_keys))
        :default("time")
        :description(
            "Column to sort by, in descending order: " .. table.concat(timers.sort_keys, ", ")
        )
    command:option("--top"):argname("<count>"):convert(count):description("Maximum number of rows")
    command
        :option("--watch")
        :argname("<seconds>")
        :args("?")
        :convert(seconds)
        :description("Refresh until Ctrl-C, every 2 seconds by default")
    command
        :option("--flame")
        :argname("<file>")
        :description("Write a flame graph to an SVG file instead")
    command
        :option("--of")
        :argname("<kind>")
        :convert(choice(timers.kinds))
        :default("elapsed")
        :description("Metric of the flame graph: " .. table.concat(timers.kinds, ", "))
    command:flag("--json", "Print JSON.")
    flags.add(command, PREFIX_ONLY)
end

local FORCE = "Replace the file if it exists, in one step."

local function add_store_commands(parser)
    local import =
        parser:command("import", "Replace the contents of the store with a declarative file.")
    import:argument("path", "The file; - for standard input.")
    add_plan_flags(import)
    flags.add(import)
    local export =
        parser:command("export", "Write the contents of the store as a declarative file.")
    export:argument("path", "The file to create; - or none: standard output."):args("?")
    export:flag("--yaml", "Write YAML, whatever the name of the file; also to standard output.")
    export:flag("--force", FORCE)
    flags.add(export, PREFIX_ONLY)
    local diff = parser:command(
        "diff",
        "Show what importing a declarative file would change. Exit 1 if anything would."
    )
    diff:argument("path", "The file; - for standard input.")
    diff:flag("--json", "Print JSON.")
    flags.add(diff, PREFIX_ONLY)
    local backup = parser:command("backup", "Back up the store, online or offline.")
    backup:argument("path", "The file to create.")
    backup:flag("--force", FORCE)
    flags.add(backup, PREFIX_ONLY)
    local restore =
        parser:command("restore", "Replace the store with a backup. Stop the gateway first.")
    restore:argument("path", "A file made by `sluice backup`.")
    flags.add(restore, PREFIX_ONLY)
end

local function add_entity_commands(parser)
    local get = parser:command("get", "List entities of the running gateway, or show one.")
    get:argument(
        "kind",
        KIND .. ", or of one entity: services/web; without one, all kinds are listed."
    ):args("?")
    get:argument("name", "A name or id; without one, all are listed."):args("?")
    get:option("--tags")
        :argname("<tags>")
        :description("Only entities with all of these tags (a,b), or any of them (a/b)")
    get:flag("--reveal", "Show secrets.")
    get:flag("--json", "Print whole entities as a JSON array.")
    flags.add(get, PREFIX_ONLY)

    local apply = parser:command(
        "apply",
        "Create or update the entities of a file; leave all others unchanged."
    )
    apply:argument("path", "A declarative file; - for standard input.")
    apply
        :option("--kind")
        :argname("<kind>")
        :description("Kind of the entities, if the file is a plain list.")
    apply:flag("--dry-run", "Show what would change without changing it."):target("dry_run")
    apply:flag("--json", "Print JSON.")
    flags.add(apply, PREFIX_ONLY)

    local delete = parser:command("delete", "Delete entities: all of those named, or none.")
    delete:argument("kind", KIND .. ", or of one entity: services/web.")
    delete
        :argument("names", "Names or ids; after services/web, others of the form kind/name.")
        :args("*")
    add_plan_flags(delete)
    flags.add(delete, PREFIX_ONLY)

    -- There is a setting of this name.
    local history =
        parser:command("history", "Show who changed what, newest first."):target("history_command")
    history
        :argument("revision", "Show what this revision changed, field by field.")
        :args("?")
        :convert(revision)
    history
        :option("--size")
        :argname("<count>")
        :convert(count)
        :default(HISTORY_SIZE)
        :description("Maximum number of revisions")
    history:flag("--json", "Print JSON.")
    flags.add(history, PREFIX_ONLY)
    local rollback = parser:command("rollback", "Restore an earlier revision, as a new one.")
    rollback
        :argument(
            "revision",
            "A revision number from `sluice history`; 0 is the state before the first."
        )
        :convert(revision)
    add_plan_flags(rollback)
    flags.add(rollback, PREFIX_ONLY)
end

-- Those that start the gateway or load what changed.
local function add_start_commands(parser)
    local start = parser:command("start", "Start the gateway.")
    start:flag("--foreground", "Run in the foreground until Ctrl-C or SIGTERM.")
    flags.add(start)
    local restart = parser:command(
        "restart",
        "Check the configuration, quit, and start again with the same flags."
    )
    restart:flag("--foreground", "Run in the foreground until Ctrl-C or SIGTERM.")
    add_timeout(restart)
    add_plan_flags(restart)
    flags.add(restart)
    local reload =
        parser:command("reload", "Load the changed configuration without dropping a request.")
    reload
        :flag(
            "--new-workers",
            "Replace the worker processes even if no setting has changed, as for new code of a "
                .. "plugin."
        )
        :target("new_workers")
    add_plan_flags(reload)
    flags.add(reload)
end

local function add_plugins(parser)
    local plugins = parser:command("plugins", "List the plugins of Kong and of Sluice.")
    plugins:flag("--ours", "Show only installed plugins, your own included.")
    plugins:flag("--json", "Print JSON.")
    flags.add(plugins, PLUGINS_ONLY)
end

local function add_token(parser)
    local token = parser:command("token", "Add, list or remove tokens of the Admin API.")
    token:argument("action", "add, list or remove."):choices({ "add", "list", "remove" })
    token:argument("name", "The name of the token, as logs and the history show it."):args("?")
    token
        :option("--role")
        :argname("<read|write>")
        :convert(choice(tokens.roles))
        :description("What the new token may do. Default: read.")
    token:flag("--replace", "Replace the token of this name; without --role, it keeps its role.")
    token:flag("--stdin", "Read the token from standard input instead of printing a random one.")
    token:flag("--json", "Print JSON.")
    flags.add(token, TOKENS_ONLY)
end

local function add_check(parser)
    local check = parser:command(
        "check",
        "Validate a declarative file, or the settings, and print every error."
    )
    check
        :argument("declarative", "The file; - for standard input. Default: the setting `file`.")
        :args("?")
    check:flag("--store", "Check every page of the store instead.")
    flags.add(check, CHECK_ONLY)
end

-- How each is typed, and what for.
local EXAMPLES = {
    apply = "sluice apply orders.yaml --dry-run",
    backup = "sluice backup /var/backups/sluice.db",
    check = "sluice check sluice.yaml",
    completion = "source <(sluice completion bash)",
    delete = "sluice delete routes my-route old-route",
    diff = "sluice diff new.yaml",
    events = "sluice events --json",
    export = "sluice export sluice.json",
    get = "sluice get upstreams/pool/targets --json",
    help = "sluice help reload",
    history = "sluice history --size 5",
    import = "sluice import sluice.yaml",
    ["nginx-conf"] = "sluice nginx-conf http",
    plugins = "sluice plugins --ours",
    quit = "sluice quit --timeout 60",
    reload = "sluice reload --log-level info",
    reopen = "sluice reopen",
    restart = "sluice restart --no-file",
    restore = "sluice restore /var/backups/sluice.db",
    rollback = "sluice rollback 41",
    start = "sluice start --prefix ~/gateway --file sluice.yaml",
    status = "sluice status --json",
    stop = "sluice stop",
    timers = "sluice timers --sort failures --top 10",
    token = "sluice token add ci --role write",
    upgrade = "sluice upgrade --watch 10",
    version = "sluice version",
}

-- What their help says beside the line in the list of commands.
local DETAILS = {
    apply = "All in one revision, or nothing. Entities are found by id, name or another unique "
        .. "field.",
    backup = "`sluice restore` restores it.",
    check = "Nothing is changed, and no gateway has to run. With --prefix, the file is checked "
        .. "with the settings, plugins and vaults of the gateway there.",
    delete = "Dependent entities, such as the targets of an upstream, are deleted too. Entities "
        .. "that others refer to cannot be deleted.",
    export = "In YAML if the name ends with .yaml or .yml, else in JSON; with all secrets. "
        .. "`sluice import` reads both.",
    get = "Any spelling of a kind works: services, service, key-auths, keyauth_credentials.",
    import = "Entities that are not in the file are deleted. A running gateway changes "
        .. "immediately; one whose configuration is a file refuses.",
    plugins = "The cost is CPU time of a request with the plugin over one without. `off`: "
        .. "installed, but not in the setting `plugins`; with --prefix, that of the gateway there.",
    quit = "Requests that are still open after --timeout are aborted; the exit code is then 1.",
    reload = "Settings, declarative file and TLS files are checked first; if one is not valid, "
        .. "or a setting only changes with a restart, the running configuration is kept. The "
        .. "running workers take a changed file, or the same one where POST /config has replaced "
        .. "it; changed settings and TLS files start new ones; if nothing has changed, nothing is "
        .. "done.",
    restart = "Requests in between are refused. If a check fails, the running gateway is kept. "
        .. "Flags given here replace those given to start.",
    rollback = "`sluice history` lists the revisions.",
    start = "Settings, declarative file, ports and directories are checked first. Secrets, such "
        .. "as admin_token, have no flag: use SLUICE_ADMIN_TOKEN, or the settings file.",
    status = "Includes logs, and certificates with their expiry. Exit code 3 if it does not run.",
    stop = "Open requests are aborted; `sluice quit` lets them finish.",
    token = "The file contains only digests; a token is shown once, when it is "
        .. "added. A running gateway takes the change with new workers, as `sluice reload` does.",
    upgrade = "If the new version does not serve, the running one continues.",
}

-- The commands in the order of their help.
local TITLES = { "Run", "Observe", "Change entities", "Keep", "More" }
local GROUPS = {
    Run = { "start", "reload", "restart", "upgrade", "quit", "stop", "reopen" },
    Observe = { "status", "check", "plugins", "events", "timers" },
    ["Change entities"] = { "get", "apply", "delete", "history", "rollback" },
    Keep = { "import", "export", "diff", "backup", "restore" },
    More = { "token", "nginx-conf", "completion", "help", "version" },
}

-- Usage, description and example of each, and the list of all in groups.
local function add_texts(parser)
    local by_name = {}
    for _, command in ipairs(parser._commands) do
        local name, what = command._name, command._description
        by_name[name] = command
        local more = flags.is_short(command) and flags.MORE .. "\n\n" or ""
        command:usage(help.usage(command)):summary(what)
        command:epilog(("%sExample:\n   %s"):format(more, EXAMPLES[name]))
        command:description(flags.plain(what .. (DETAILS[name] and " " .. DETAILS[name] or "")))
        for _, list in ipairs({ command._arguments, command._options }) do
            for _, element in ipairs(list) do
                element:description(flags.plain(element._description))
            end
        end
    end
    for _, title in ipairs(TITLES) do
        local commands = {}
        for i, name in ipairs(GROUPS[title]) do
            commands[i] = by_name[name]
        end
        parser:group(title, unpack(commands))
    end
end

local function set_choices(element, words)
    if words then
        element:choices(words)
    end
end

-- What a shell completes and the commands read by themselves, with better messages.
local function add_choices(parser, kinds)
    local by_argument = { kind = kinds, topic = help.topics(parser) }
    for _, command in ipairs(parser._commands) do
        for _, argument in ipairs(command._arguments) do
            set_choices(argument, by_argument[argument._name])
        end
        for _, flag in ipairs(command._options) do
            local option = options.by_name[flag._target]
            local is_switch = option and option.type == "boolean"
            local words = option and option.type == "enum" and option.values
            words = words or is_switch and { "on", "off" } or by_argument[flag._name:sub(3)]
            set_choices(flag, words)
        end
    end
end

--- The parser of the command line.
-- @tparam[opt] {string,...} kinds of entities, for what completes them
-- @treturn table of argparse
function _M.parser(kinds)
    local parser = argparse(
        "sluice",
        "Sluice, an API gateway on nginx.",
        "A flag overrides SLUICE_<NAME> in the environment, which overrides the settings file "
            .. "(--conf). `sluice help settings` lists the flags; docs/config.md and "
            .. "sluice.conf(5) describe every setting. Exit codes: 0 success, "
            .. "1 failure, 2 usage error, 3 not running. "
            .. "`sluice kong --help` lists Kong's commands and flags."
    )
    parser:command_target("command"):require_command(true)
    parser:help_max_width(flags.WIDTH):usage("Usage: sluice <command> [<argument>...] [flags]")
    parser:flag("-v --version", "Print the version.")

    add_start_commands(parser)
    add_upgrade(parser)

    flags.add(parser:command("stop", "Stop immediately."), PREFIX_ONLY)
    local quit = parser:command("quit", "Stop after open requests have finished.")
    add_timeout(quit)
    flags.add(quit, PREFIX_ONLY)
    flags.add(parser:command("reopen", "Reopen the log files."), PREFIX_ONLY)

    local status =
        parser:command("status", "Show whether the gateway runs, its processes and listeners.")
    status:flag("--json", "Print JSON.")
    flags.add(status, PREFIX_ONLY)

    local events = parser:command("events", "Show event statistics of all workers.")
    events:flag("--json", "Print JSON.")
    flags.add(events, PREFIX_ONLY)

    add_timers(parser)

    add_check(parser)
    add_store_commands(parser)
    add_entity_commands(parser)

    local lines = parser:command(
        "nginx-conf",
        "Print the directives that load Sluice's libraries into another nginx."
    )
    lines
        :argument("part", "main: for the main context; http: for the http block. Default: both.")
        :args("?")
        :choices(libraries.parts)
    flags.add(lines, LIBRARIES_ONLY)

    local completion = parser:command("completion", "Print a completion script for a shell.")
    completion:argument("shell", "bash or zsh."):choices({ "bash", "zsh" })
    flags.add(completion, CHECK_ONLY)

    add_plugins(parser)
    add_token(parser)
    local topic = parser:command("help", "Show the help of all commands, or of one.")
    topic
        :argument("topic", "A command or a setting; settings: the flags of all settings.")
        :args("?")
    parser:command("version", "Print the version.")

    add_texts(parser)
    if kinds then
        add_choices(parser, kinds)
    end
    return parser
end

--- Reads the command line.
-- @tparam {string,...} words
-- @treturn table|nil arguments by name, `command` among them
-- @treturn nil|{string,...} lines that say why it cannot be read
function _M.read(words)
    local parser = _M.parser()
    words = help.rewritten(words)
    -- argparse calls it on the command at which it has stopped.
    parser.error = function(command, message)
        error(help.refusal(command, message, words), 0)
    end
    local is_read, arguments = pcall(parser.parse, parser, words)
    if is_read then
        return arguments
    elseif type(arguments) ~= "table" then
        error(arguments, 0)
    end
    return nil, arguments
end

return _M
