--- The command line: its commands, their arguments and flags.

local argparse = require("argparse")
local libraries = require("cli.nginx_libraries")
local options = require("cli.options")
local timers = require("cli.timers")

local _M = {}

local QUIT_TIMEOUT_S = "30"
local HISTORY_SIZE = "20"
local UPGRADE_TIMEOUT_S = "60"
local WATCH_S = "3"

local function seconds(text)
    local number = tonumber(text)
    if not number or number < 0 or number > 86400 then
        return nil, ("'%s' is not right; expected seconds from 0 to 86400"):format(text)
    end
    return number
end

local function add_options(command, names)
    for _, option in ipairs(options.list) do
        if option.type ~= "secret" and (not names or names[option.name]) then
            local default = option.default == "" and "" or (" [%s]"):format(option.default)
            command
                :option(options.flag(option))
                :target(option.name)
                :argname("<" .. option.type .. ">")
                :description(option.doc:gsub("`", "") .. default)
        end
    end
end

local function add_timeout(command)
    command
        :option("--timeout")
        :argname("<seconds>")
        :convert(seconds)
        :default(QUIT_TIMEOUT_S)
        :description("How long requests in work may take before they are cut off")
end

local function add_upgrade(parser)
    local upgrade = parser:command(
        "upgrade",
        "Take what is installed now, another nginx or Sluice, without losing a request."
    )
    upgrade
        :option("--timeout")
        :argname("<seconds>")
        :convert(seconds)
        :default(UPGRADE_TIMEOUT_S)
        :description("How long a step of the new one may take before the old one goes on alone")
    upgrade
        :option("--watch")
        :argname("<seconds>")
        :convert(seconds)
        :default(WATCH_S)
        :description("How long the new workers serve beside the old ones before those leave")
    add_options(upgrade)
end

local PREFIX_ONLY = { prefix = true, conf = true }
local CHECK_ONLY = { prefix = true, conf = true, file = true }
local LIBRARIES_ONLY = {
    conf = true,
    events_size = true,
    events_stall = true,
    lua_package_path = true,
    nginx_modules = true,
}

local function choice(words)
    return function(text)
        for _, word in ipairs(words) do
            if text == word then
                return text
            end
        end
        return nil,
            ("'%s' is not right; expected one of %s"):format(text, table.concat(words, ", "))
    end
end

local function count(text)
    local number = tonumber(text)
    if not number or number < 1 or number % 1 ~= 0 then
        return nil, ("'%s' is not right; expected a whole number above 0"):format(text)
    end
    return number
end

local function revision(text)
    local number = text:find("^%d+$") and #text < 16 and tonumber(text)
    if not number then
        return nil, ("'%s' is not right; expected the number of a revision"):format(text)
    end
    return number
end

local function add_timers(parser)
    local command = parser:command("timers", "Say what the timers of all workers do.")
    command
        :option("--sort")
        :argname("<column>")
        :convert(choice(timers.sort_keys))
        :default("time")
        :description("Greatest first, one of " .. table.concat(timers.sort_keys, ", "))
    command:option("--top"):argname("<count>"):convert(count):description("Rows at most")
    command
        :option("--watch")
        :argname("<seconds>")
        :args("?")
        :convert(seconds)
        :description("Show it again and again, every 2 seconds by default, until Ctrl-C")
    command
        :option("--flame")
        :argname("<file>")
        :description("Draw a flame graph into an SVG file instead")
    command
        :option("--of")
        :argname("<kind>")
        :convert(choice(timers.kinds))
        :default("elapsed")
        :description("What the flame graph shows: " .. table.concat(timers.kinds, ", "))
    command:flag("--json", "As JSON.")
    add_options(command, PREFIX_ONLY)
end

local function add_store_commands(parser)
    local import = parser:command("import", "Have the store hold what a declarative file does.")
    import:argument("path", "The file.")
    add_options(import)
    local export = parser:command("export", "Write what the store holds as a declarative file.")
    export:argument("path", "The new file; by default standard output."):args("?")
    add_options(export, PREFIX_ONLY)
    local diff = parser:command("diff", "Say what a declarative file would change; then exit 1.")
    diff:argument("path", "The file.")
    add_options(diff, PREFIX_ONLY)
    local backup = parser:command("backup", "Copy the store, also while the gateway runs.")
    backup:argument("path", "The new file.")
    add_options(backup, PREFIX_ONLY)
    local restore =
        parser:command("restore", "Put a copy of the store in its place; the gateway is stopped.")
    restore:argument("path", "The copy, made by `sluice backup`.")
    add_options(restore, PREFIX_ONLY)
end

local function add_entity_commands(parser, kinds)
    local function add_kind(command)
        local kind =
            command:argument("kind", "routes, services, ...; or such as upstreams/NAME/targets.")
        if kinds then
            kind:choices(kinds)
        end
    end
    local get = parser:command("get", "List entities of the running gateway, or show one.")
    add_kind(get)
    get:argument("name", "A name or id; all when absent."):args("?")
    get:option("--tags")
        :argname("<tags>")
        :description("Those that have all of these (a,b), or one of them (a/b)")
    get:flag("--reveal", "Show secrets.")
    get:flag("--json", "Whole entities, as a JSON array.")
    add_options(get, PREFIX_ONLY)

    local apply =
        parser:command("apply", "Make or change the entities of a file; leave all others.")
    apply:argument("path", "A declarative file; - for standard input.")
    local of_list = apply
        :option("--kind")
        :argname("<kind>")
        :description("What a list in place of a declarative file is a list of")
    if kinds then
        of_list:choices(kinds)
    end
    apply:flag("--dry-run", "Say what would change, and change nothing."):target("dry_run")
    apply:flag("--json", "As JSON.")
    add_options(apply, PREFIX_ONLY)

    local delete = parser:command("delete", "Delete entities, all of these or none.")
    add_kind(delete)
    delete:argument("names", "Names or ids."):args("+")
    add_options(delete, PREFIX_ONLY)

    -- There is a setting of this name.
    local history = parser
        :command("history", "Say who changed what, the newest first.")
        :target("history_command")
    history
        :option("--size")
        :argname("<count>")
        :convert(count)
        :default(HISTORY_SIZE)
        :description("Revisions at most")
    history:flag("--json", "As JSON.")
    add_options(history, PREFIX_ONLY)
    local rollback =
        parser:command("rollback", "Make a new revision that holds what an old one did.")
    rollback
        :argument("revision", "A number of sluice history; 0: before the first.")
        :convert(revision)
    add_options(rollback, PREFIX_ONLY)
end

--- The parser of the command line.
-- @tparam[opt] {string,...} kinds of entities, for what completes them
-- @treturn table of argparse
function _M.parser(kinds)
    local parser = argparse(
        "sluice",
        "Sluice, an API gateway on nginx.",
        "A flag beats SLUICE_<NAME> in the environment, which beats the settings file (--conf). "
            .. "docs/config.md and sluice.conf(5) describe every setting. "
            .. "Exit codes: 0 done, 1 failed, 2 wrong use, 3 not running."
    )
    parser:command_target("command"):require_command(true)
    parser:help_max_width(100)

    local start = parser:command("start", "Start the gateway.")
    start:flag("--foreground", "Stay in the foreground until Ctrl-C or SIGTERM.")
    add_options(start)
    local restart = parser:command("restart", "Check, quit, and start again as before.")
    restart:flag("--foreground", "Stay in the foreground until Ctrl-C or SIGTERM.")
    add_timeout(restart)
    add_options(restart)
    local reload =
        parser:command("reload", "Take the changed configuration without losing a request.")
    reload
        :flag(
            "--new-workers",
            "Replace the worker processes even where the file alone has changed."
        )
        :target("new_workers")
    add_options(reload)

    add_upgrade(parser)

    add_options(parser:command("stop", "Stop at once."), PREFIX_ONLY)
    local quit = parser:command("quit", "Stop after the requests in work.")
    add_timeout(quit)
    add_options(quit, PREFIX_ONLY)
    add_options(parser:command("reopen", "Reopen the log files."), PREFIX_ONLY)

    local status = parser:command("status", "Say whether it runs, and what.")
    status:flag("--json", "As JSON.")
    add_options(status, PREFIX_ONLY)

    local events = parser:command("events", "Say what the workers have told each other.")
    events:flag("--json", "As JSON.")
    add_options(events, PREFIX_ONLY)

    add_timers(parser)

    local check = parser:command("check", "Validate a declarative file and print every error.")
    check:argument("declarative", "The file; by default the one of the settings."):args("?")
    check:flag("--store", "Read every page of the store instead.")
    add_options(check, CHECK_ONLY)

    add_store_commands(parser)
    add_entity_commands(parser, kinds)

    local lines =
        parser:command("nginx-conf", "Print what another nginx needs for Sluice's libraries.")
    lines
        :argument("part", "main: outside of all blocks; http: in that block; both when absent.")
        :args("?")
        :choices(libraries.parts)
    add_options(lines, LIBRARIES_ONLY)

    local completion = parser:command("completion", "Print what completes commands in a shell.")
    completion:argument("shell", "bash or zsh."):choices({ "bash", "zsh" })
    add_options(completion, CHECK_ONLY)

    parser:command("version", "Print the version.")
    return parser
end

return _M
