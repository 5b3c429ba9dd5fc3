--- Kong's command line: `sluice kong start` does what `kong start` does there. The container's
-- image has it as `kong`; a package does not, as Kong's own may be beside it.
--
-- A row for each of Kong's commands: its flags, and what it is here. The exit codes are Kong's: 0,
-- and 1 for whatever is wrong. A row has:
--
--   flags  of Kong's that it takes (cli.options.kong_words)
--   about  a line of the help
--   runs   the words of our command
--   run    a function in its place: `(given, context)` -> exit code
--   says   what Kong prints when it is done
--   words  what stands behind it: "file" is required, "[file]" is not
--   parts  its own commands, each a row
--   no     why it is not here, and what is

local pwd = require("posix.pwd")
local stat = require("posix.sys.stat")
local time = require("posix.time")
local unistd = require("posix.unistd")

local arguments_of = require("cli.options.arguments")
local commands = require("cli.commands")
local console = require("cli.terminal.console")
local control_worker = require("cli.instance.control_worker")
local environments = require("cli.options.environment")
local invocation = require("cli.commands.invocation")
local kong_words = require("cli.options.kong_words")
local launch = require("cli.instance.launch")
local tls_files = require("cli.nginx.tls_files")
local version = require("gateway.version")
local volumes = require("cli.instance.volumes")

local _M = {}

local DONE, FAILED = console.DONE, console.FAILED
local say, complain, fail = console.say, console.complain, console.fail

-- What Kong's commands take where nothing is said.
local PREFIX = "/usr/local/kong"
local CONFS = { "/etc/kong/kong.conf", "/etc/kong.conf" }
local USER = "kong"
local FILE = "kong.yml"
local QUIT_TIMEOUT_S = 10
-- As Kong's entry point has it, by links.
local LOGS = { access_log = "/dev/stdout", admin_access_log = "/dev/stdout", error_log = "stderr" }

local WAIT_STEP_S = 0.2

-- States of a control worker whose configuration is not live yet.
local NOT_YET = { starting = true, waiting = true, building = true }

-- Of our commands' own words; what Kong's users did not say is Kong's default.
local function ask_ours(given, command, ...)
    local words = { command }
    for _, name in ipairs({ "prefix", "conf" }) do
        if given[name] then
            words[#words + 1] = ("--%s=%s"):format(name, given[name])
        end
    end
    for _, word in ipairs({ ... }) do
        words[#words + 1] = word
    end
    local arguments = assert(arguments_of.read(words))
    arguments.defaults = given.defaults
    return arguments
end

local function run_ours(given, context, ...)
    local arguments = ask_ours(given, ...)
    return commands[arguments.command](arguments, context)
end

-- Calls `run(instance)` with the instance that is meant.
local function on_instance(given, context, run)
    return invocation.on_instance(run)(ask_ours(given, "status"), context)
end

local function say_error(format, ...)
    console.write_error("Error: " .. format:format(...) .. "\n")
    return FAILED
end

-- A command on what runs: stopping nothing is an error of Kong's.
local function on_running(given, context, run)
    return on_instance(given, context, function(instance)
        if not stat.stat(instance.prefix) then
            return say_error("no such prefix: %s", instance.prefix)
        elseif #instance:leaders() == 0 then
            return say_error("nginx not running in prefix: %s", instance.prefix)
        end
        return run(instance)
    end)
end

local function stop(given, context)
    return on_running(given, context, function()
        return run_ours(given, context, "stop")
    end)
end

local function reload(given, context)
    return on_running(given, context, function()
        return run_ours(given, context, "reload", "--yes")
    end)
end

local function seconds(name, given, default)
    local text = given[name]
    local number = text and tonumber(text) or (not text and default) or nil
    if not number or number ~= number or number < 0 or number > 86400 then
        return nil, ("--%s: '%s' is not valid; expected seconds from 0 to 86400"):format(name, text)
    end
    return number
end

local function sleep_s(duration_s)
    local whole_s = math.floor(duration_s)
    time.nanosleep({ tv_sec = whole_s, tv_nsec = math.floor((duration_s - whole_s) * 1e9) })
end

-- Waits before it quits, as long as there is something to quit.
local function wait_for(instance, wait_s)
    while wait_s > 0 and #instance:leaders() > 0 do
        local step_s = math.min(wait_s, WAIT_STEP_S)
        sleep_s(step_s)
        wait_s = wait_s - step_s
    end
    return #instance:leaders() > 0
end

local function quit(given, context)
    local wait_s, wrong = seconds("wait", given, 0)
    local timeout_s, err = seconds("timeout", given, QUIT_TIMEOUT_S)
    if not wait_s or not timeout_s then
        return fail(wrong or err)
    end
    return on_running(given, context, function(instance)
        if not wait_for(instance, wait_s) then
            complain({ "it stopped while this waited" })
            return DONE
        end
        -- Kong's least.
        timeout_s = math.max(timeout_s, 1)
        local code = run_ours(given, context, "quit", "--timeout=" .. timeout_s)
        if code ~= DONE and #instance:leaders() == 0 then
            say("Timeout, Kong stopped forcefully")
            return DONE
        elseif code == DONE then
            say("Kong stopped (gracefully)")
        end
        return code
    end)
end

-- Healthy is what serves: its master runs, and a configuration is live.
local function health(given, context)
    return on_instance(given, context, function(instance)
        if not stat.stat(instance.prefix) then
            return say_error("no such prefix: %s", instance.prefix)
        end
        local master = instance:master()
        say("nginx.......%s\n", master and "running" or "not running")
        if not master then
            return say_error("Kong is not running at %s", instance.prefix)
        end
        local found = control_worker.read(master)
        if found and NOT_YET[found.state] then
            return say_error("some services are not running at %s", instance.prefix)
        end
        say("Kong is healthy at %s", instance.prefix)
        return DONE
    end)
end

-- Settings alone: what `config parse` checks is a file of entities.
local function check(given)
    given.conf = given.words[1] or CONFS[1]
    local arguments = ask_ours(given, "check")
    local settings, errors = invocation.settings(arguments)
    if settings then
        errors = {}
        tls_files.check(settings, errors)
    end
    if #errors > 0 then
        return fail(errors)
    end
    say("configuration at %s is valid", given.conf)
    return DONE
end

-- Kong's import makes and changes, and deletes nothing: so does `apply`, of what runs.
local function db_import(given, context)
    local file = given.words[1]
    return on_instance(given, context, function(instance)
        if instance:master() then
            return run_ours(given, context, "apply", "--", file)
        end
        local arguments = ask_ours(given, "import", "--yes", "--", file)
        arguments.keeps = true
        return commands.import(arguments, context)
    end)
end

local function db_export(given, context)
    local file = given.words[1] or FILE
    if stat.lstat(file) then
        return fail(file .. " already exists; it is not overwritten")
    end
    return run_ours(given, context, "export", "--", file)
end

-- Where a file is the truth, there is nothing to import into.
local function on_store(run)
    return function(given, context)
        local settings, errors = invocation.settings(ask_ours(given, "status"))
        if not settings then
            return fail(errors)
        elseif settings.database == "off" or settings.file ~= "" then
            local line = "the configuration is a file (declarative_config), which `kong reload` "
                .. "loads when it has changed, or what is sent to POST /config"
            return fail(line)
        end
        return run(given, context)
    end
end

-- That there is nothing to migrate; wrong settings are wrong here as with `start`.
local function migrate(line, before)
    return function(given, context)
        if given.quiet then
            console.silence()
        end
        local settings, errors = invocation.settings(ask_ours(given, "check"))
        local code = settings and before and before(given, context) or DONE
        if not settings or code ~= DONE then
            return settings and code or fail(errors)
        end
        say("%s", line)
        say("(there is no database: this node keeps its own store in %s)", settings.prefix)
        return DONE
    end
end

-- Takes everything out of the store, whether the gateway runs or not.
local function empty(given, context)
    local is_terminal = unistd.isatty(unistd.STDIN_FILENO) == 1
    if not given.yes and not is_terminal then
        return fail("not a terminal: reset without a question with --yes")
    end
    local words = { "import", context.root .. "/cli/commands/empty.json" }
    words[#words + 1] = given.yes and "--yes" or nil
    return run_ours(given, context, unpack(words))
end

local function bootstrap(given, context)
    given.yes = true
    return given.force and on_store(empty)(given, context) or DONE
end

local function prepare(given, context)
    local arguments = ask_ours(given, "start")
    arguments.prepares = true
    return commands.start(arguments, context)
end

-- Where the store ends with the container, who relies on it has to know.
local function warn_of_store(given)
    local arguments = ask_ours(given, "status")
    local settings = environments.is_contained() and invocation.settings(arguments)
    local has_store = settings and settings.database == "postgres"
    if has_store and not volumes.is_mounted(settings.prefix) then
        local line = "warning: the store in %s ends with this container: mount a volume there"
        complain({ line:format(settings.prefix) })
    end
end

local function start(given, context)
    warn_of_store(given)
    return run_ours(given, context, "start")
end

local function docker_start(given, context)
    for name, log in pairs(LOGS) do
        given.defaults[name] = log
    end
    warn_of_store(given)
    return run_ours(given, context, "start", "--foreground")
end

local function show_version(given)
    if not given.all then
        say("%s", version.kong)
        return DONE
    end
    local settings = invocation.settings(ask_ours(given, "status"))
    local nginx = settings and launch.version(settings.nginx_binary)
    say("Kong: %s\nSluice: %s", version.kong, version.product)
    say("nginx: %s\nLua: %s", nginx and nginx:match("/(.*)") or "unknown", jit.version)
    return DONE
end

local AT_START = "conf prefix nginx_conf nginx_conf_flags run_migrations db_timeout lock_timeout"
local MIGRATING = "conf prefix yes quiet force db_timeout lock_timeout"

local MIGRATIONS = {
    bootstrap = { run = migrate("Database is up-to-date", bootstrap) },
    up = { run = migrate("Database is already up-to-date") },
    finish = { run = migrate("No pending migrations to finish") },
    list = { run = migrate("Executed migrations: none") },
    status = {
        run = function(given)
            local settings, errors = invocation.settings(ask_ours(given, "check"))
            if not settings then
                return fail(errors)
            end
            console.say_json('{"needs_bootstrap":false,"executed_migrations":[]}')
            return DONE
        end,
    },
    reset = { run = migrate("Database successfully reset", on_store(empty)) },
}

local CONFIG = {
    parse = { runs = { "check", "--" }, words = "file", says = "parse successful" },
    db_import = { run = on_store(db_import), words = "file", says = "import successful" },
    db_export = { run = on_store(db_export), words = "[file]" },
    init = { no = "write a file by hand, or export one; docs/migrating-from-kong.md shows some" },
}

--- The commands of Kong's, by name.
_M.rows = {
    start = { about = "Start the gateway.", flags = AT_START, run = start, says = "Kong started" },
    ["docker-start"] = {
        about = "Run the gateway in the foreground, with logs to the standard output and error.",
        flags = AT_START,
        run = docker_start,
    },
    stop = { about = "Stop it at once.", flags = "prefix", run = stop, says = "Kong stopped" },
    quit = { about = "Stop it after its requests.", flags = "prefix timeout wait", run = quit },
    restart = {
        about = "Stop it, and start it again.",
        flags = AT_START,
        runs = { "restart", "--yes" },
        says = "Kong started",
    },
    reload = {
        about = "Load what has changed.",
        flags = "conf prefix nginx_conf nginx_conf_flags",
        run = reload,
        says = "Kong reloaded",
    },
    health = { about = "Whether it serves.", flags = "prefix", run = health },
    check = { about = "Check a settings file.", flags = "", words = "[file]", run = check },
    config = {
        about = "Check, import or export a declarative file.",
        flags = "conf prefix",
        parts = CONFIG,
    },
    migrations = {
        about = "Nothing has to migrate; reset empties the store.",
        flags = MIGRATING,
        parts = MIGRATIONS,
    },
    prepare = {
        about = "Prepare the prefix for an nginx that is started by hand.",
        flags = "conf prefix nginx_conf",
        run = prepare,
    },
    version = {
        about = "Show the version of Kong that it speaks.",
        flags = "all",
        run = show_version,
    },
    hybrid = { no = "there is no hybrid mode here, and no certificates for it" },
    vault = { no = "the only vault is the environment (vault_env); print the variable" },
    drain = { no = "use `kong quit --wait SECONDS`" },
}

-- What Kong, too, gives no meaning to: compose files have `a && b` without a shell.
local function drop_words(given)
    local kept = given.row.words and 1 or 0
    if #given.words > kept and given.row ~= _M.rows.prepare then
        local rest = table.concat(given.words, " ", kept + 1)
        complain({ ("warning: kong %s: no effect: %s"):format(given.name, rest) })
    end
end

-- Who names the database of Kong's means to have one, as is Kong's default.
local function defaults()
    local conf = stat.stat(CONFS[1]) and CONFS[1] or stat.stat(CONFS[2]) and CONFS[2] or nil
    local user = pwd.getpwnam(USER) and USER or nil
    local database = (os.getenv("KONG_PG_HOST") or "") ~= "" and "postgres" or nil
    return { prefix = PREFIX, conf = conf, user = user, database = database }
end

--- Runs one.
-- @tparam {string,...} words of the command line, behind `kong`
-- @tparam table context of cli.commands
-- @treturn number exit code: Kong's
function _M.run(words, context)
    local given, refusal = kong_words.read(words, _M.rows)
    if not given then
        return fail(refusal)
    end
    given.defaults = defaults()
    drop_words(given)
    local row = given.row
    local code
    if row.run then
        code = row.run(given, context)
    else
        local ours = { unpack(row.runs) }
        ours[#ours + 1] = row.words and given.words[1] or nil
        code = run_ours(given, context, unpack(ours))
    end
    if code == DONE and row.says then
        say("%s", row.says)
    end
    return code == DONE and DONE or FAILED
end

return _M
