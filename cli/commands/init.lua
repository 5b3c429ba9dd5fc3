--- The commands. Each takes the parsed arguments and a context and returns an exit code.
--
-- Exit codes: 0 done; 1 it failed, and the lines on standard error say why; 2 wrong use; 3 the
-- gateway is not running (the table of docs/commands.md). Standard output that cannot be written is
-- a failure, too; one whose reader leaves is none.

local change_commands = require("cli.commands.change")
local console = require("cli.terminal.console")
local control = require("cli.instance.control")
local declarative = require("cli.commands.declarative")
local images = require("cli.instance.images")

local completion = require("cli.commands.completion")
local coverage = require("gateway.config.coverage")
local entities = require("gateway.entities")
local environments = require("cli.options.environment")
local entity_commands = require("cli.commands.entities")
local help = require("cli.options.help")
local invocation = require("cli.commands.invocation")
local kind_names = require("cli.commands.kind")
local launch = require("cli.instance.launch")
local libraries = require("cli.nginx.libraries")
local log_folder = require("cli.instance.log_folder")
local planning = require("cli.commands.planning")
local plugin_setting = require("cli.instance.plugin_setting")
local plugins = require("cli.commands.plugins")
local preflight = require("cli.instance.preflight")
local prefixes = require("cli.instance.prefix")
local process = require("cli.instance.process")
local report = require("cli.terminal.report")
local start = require("cli.commands.start")
local status = require("cli.commands.status")
local store = require("cli.instance.store")
local store_commands = require("cli.commands.store")
local timers = require("cli.commands.timers")
local tls_files = require("cli.nginx.tls_files")
local token = require("cli.commands.token")
local version = require("gateway.version")

local _M = {}

local DONE, FAILED = console.DONE, console.FAILED
local WRONG_USE, NOT_RUNNING = console.WRONG_USE, console.NOT_RUNNING
local say, print_lines = console.say, console.print_lines
local complain, fail = console.complain, console.fail
local is_foreground = invocation.is_foreground

local STOP_TIMEOUT_S = 10

local RESTART_REFUSED = "restart refused: the running gateway is kept"
local BY_ITS_UNIT = "it runs under a service manager; use `systemctl restart sluice` (or "
    .. "sluice@NAME), or `sluice upgrade`, which drops no request"
local BY_ITS_CONTAINER = "it runs in a container, which would end with it; start a new container "
    .. "instead"

-- Whether a service manager wants to be told what this process starts (sd_notify(3)).
local function is_supervised()
    return (os.getenv("NOTIFY_SOCKET") or "") ~= ""
end

-- What is in memory goes with the gateway.
local function remove_images(instance, context)
    if #instance:leaders() > 0 then
        return
    end
    -- The settings may be a stranger's; a start that was ended early has left none.
    local is_ours = prefixes.new(instance):check(context.root)
    local settings = is_ours and instance:read_settings()
    if settings then
        images.remove(settings, instance.prefix)
    else
        images.remove_left(instance.prefix)
    end
end

-- A command that ends it, and has nothing to do where it does not run: `run(instance, arguments)`.
local function on_ending(run)
    return invocation.on_instance(function(instance, arguments, context)
        local code = DONE
        if #instance:leaders() == 0 then
            print_lines(invocation.stopped(instance))
        else
            code = run(instance, arguments)
        end
        remove_images(instance, context)
        return code
    end)
end

--- start: checks everything, then runs nginx as a daemon or in the foreground.
_M.start = invocation.on_instance(function(instance, arguments, context)
    local settings, problems, given = invocation.settings(arguments, instance)
    if not settings then
        return fail(problems, WRONG_USE)
    end
    local leaders, master = instance:leaders()
    if master then
        return fail(
            ("already running in %s (pid %d); use `sluice reload` to load changes"):format(
                instance.prefix,
                master
            )
        )
    end
    if #leaders > 0 then
        return fail(report.stopped(instance.prefix, instance:orphans()))
    end
    local held = store.held(settings, instance)
    complain({ held.note and "warning: store: " .. held.note })
    local found, files
    problems, found, files = preflight.check(settings, {
        root = context.root,
        foreground = is_foreground(arguments, settings),
        store = held,
        difference = planning.comparer(instance),
    })
    if #problems > 0 then
        return fail(invocation.as_typed(problems, given))
    end
    complain(files.warnings)
    given.hash, given.files = found.hash, files.digest
    given.is_supervised = is_supervised()
    -- The container ends with it.
    given.is_contained = environments.is_contained() and is_foreground(arguments, settings)
    complain(preflight.warnings(found, settings.file))
    start.fit_connections(settings)
    local remembered = instance:read_remembered()
    planning.warn_of_former(instance:read_settings(), remembered, settings, given)
    local writer, err = start.open(context, instance, settings)
    if not writer then
        return fail(err)
    end
    if instance:master() then
        return fail(("already running in %s"):format(instance.prefix))
    end
    local up, lines = writer:write_files(settings, given, context.root)
    if up then
        local foreground = is_foreground(arguments, settings)
        up, lines = start.run(instance, settings, found, foreground, arguments.prepares)
    end
    if not up then
        writer:undo()
        return fail(lines)
    end
    return DONE
end)

_M.reload = change_commands.reload
_M.upgrade = change_commands.upgrade

-- Ends the gateway after its requests; past the time the rest is cut off.
local function quit(instance, timeout_s)
    local gone, err = launch.stop(instance, "SIGQUIT", timeout_s)
    if gone then
        return true, {}
    end
    if err ~= "timeout" then
        return nil, { err }
    end
    local stopped, reason = launch.stop(instance, "SIGTERM", STOP_TIMEOUT_S)
    if not stopped then
        return nil, { "did not stop: " .. reason }
    end
    return true, { ("requests still open after %g seconds were aborted"):format(timeout_s) }
end

-- Ends the running gateway and starts it anew, once everything has been tried that can be while it
-- runs: the folders, the disk, nginx's own test.
local function replace(context, instance, settings, given, opts)
    local function give_up(lines)
        lines = type(lines) == "table" and lines or { lines }
        lines[#lines + 1] = opts.old and RESTART_REFUSED or nil
        return fail(lines)
    end
    local writer, err = start.open(context, instance, settings)
    if not writer then
        return give_up(err)
    end
    local right, lines = writer:write_files(settings, given, context.root)
    if right then
        right, lines = launch.test(instance, settings)
    end
    if not right then
        writer:undo()
        return give_up(lines)
    end
    local gone, notes = quit(instance, opts.timeout)
    complain(notes)
    if not gone then
        writer:undo()
        return FAILED
    end
    if opts.old and opts.old.image_dir ~= settings.image_dir then
        images.remove(opts.old, instance.prefix)
    end
    -- A change that the old gateway accepted meanwhile is put aside, and not lost.
    if not planning.is_still_same(instance, settings, opts.found) then
        opts.found.replaces = "the store was changed after it was compared with the file"
    end
    -- Nobody has them: what begins is the copy on the disk.
    images.clear(settings)
    local up, failure = start.run(instance, settings, opts.found, opts.foreground)
    if not up then
        writer:undo()
        failure[1] = "the gateway is not running: " .. failure[1]
        return fail(failure, NOT_RUNNING)
    end
    return DONE
end

--- restart: checks like start and shows what changes before it quits the running one.
_M.restart = invocation.on_meant(function(instance, arguments, context)
    if arguments.json then
        console.silence()
    end
    local ours, foreign = prefixes.new(instance):check(context.root)
    if not ours then
        return fail(foreign)
    end
    local old = #instance:leaders() > 0 and instance:read_settings() or nil
    local remembered, unknown = instance:read_remembered()
    if unknown then
        return fail({ unknown, old and RESTART_REFUSED })
    elseif old and remembered and remembered.is_supervised and not is_supervised() then
        return fail({ BY_ITS_UNIT, RESTART_REFUSED })
    elseif old and remembered and remembered.is_contained then
        return fail({ BY_ITS_CONTAINER, RESTART_REFUSED })
    end
    local settings, problems, given = invocation.settings(arguments, instance, remembered)
    if not settings then
        problems[#problems + 1] = old and RESTART_REFUSED or nil
        return fail(problems, WRONG_USE)
    end
    local held = store.held(settings, instance)
    complain({ held.note and "warning: store: " .. held.note })
    local found, files
    problems, found, files = preflight.check(settings, {
        root = context.root,
        foreground = is_foreground(arguments, settings),
        old = old,
        is_left = true,
        store = held,
        difference = planning.comparer(instance),
    })
    if #problems > 0 then
        problems = invocation.as_typed(problems, given)
        problems[#problems + 1] = old and RESTART_REFUSED or nil
        return fail(problems)
    end
    complain(files.warnings)
    given.hash, given.files = found.hash, files.digest
    given.is_supervised = is_supervised()
    given.is_contained = false
    complain(preflight.warnings(found, settings.file))
    start.fit_connections(settings)
    local plan, code = planning.before_load(instance, settings, found, old, arguments)
    if not code and is_foreground(arguments, settings) then
        planning.report_load(plan, arguments)
    end
    code = code
        or replace(context, instance, settings, given, {
            found = found,
            foreground = is_foreground(arguments, settings),
            old = old,
            timeout = arguments.timeout,
        })
    if code == DONE and not arguments.dry_run then
        planning.report_load(plan, arguments)
    end
    return code
end, true)

--- stop: ends the gateway at once.
_M.stop = on_ending(function(instance)
    local stopped, err = launch.stop(instance, "SIGTERM", STOP_TIMEOUT_S)
    if not stopped then
        return fail("did not stop: " .. err)
    end
    say("stopped")
    return DONE
end)

--- quit: ends the gateway after the requests in work.
_M.quit = on_ending(function(instance, arguments)
    local gone, lines = quit(instance, arguments.timeout)
    complain(lines)
    if not gone or #lines > 0 then
        return FAILED
    end
    say("stopped after the last request")
    return DONE
end)

--- reopen: opens the log files again, after they were moved away.
_M.reopen = invocation.on_running(function(instance, master, _, context)
    local writer = prefixes.new(instance)
    local right, reason = writer:check(context.root)
    local settings = right and instance:read_settings()
    if settings then
        local problems = {}
        log_folder.check(settings, problems)
        if #problems > 0 then
            return fail(problems)
        end
        right, reason = writer:make_logs(settings)
    end
    if not right then
        return fail(reason)
    end
    local sent, err = process.send(master, "SIGUSR1")
    if not sent then
        return fail(err)
    end
    say("log files reopened")
    return DONE
end)

-- Kinds of which `check` says how many a file has, even if none; of others, if there are any.
local COUNTED = { "services", "routes", "upstreams", "consumers", "plugins" }
local IS_COUNTED = {}
for _, kind in ipairs(COUNTED) do
    IS_COUNTED[kind] = true
end

-- Whether a file waits for something that it can name: errors alone have to be mended.
local function has_lacks(found)
    return found.steps[1] and (found.steps[2] or found.steps[1].thing ~= coverage.ERRORS)
end

local function counts_of(snapshot)
    local counts = {}
    local function add(kind, count)
        local name = entities.path_name(kind)
        counts[#counts + 1] = ("%d %s"):format(count, count == 1 and name:gsub("s$", "") or name)
    end
    for _, kind in ipairs(COUNTED) do
        add(kind, #snapshot[kind])
    end
    for _, kind in ipairs(entities.kinds) do
        local count = #(snapshot[kind] or {})
        -- Members of a group are consumers.
        local is_shown = entities.get(kind).generate_admin_api ~= false and not IS_COUNTED[kind]
        if count > 0 and is_shown then
            add(kind, count)
        end
    end
    return table.concat(counts, ", ")
end

local VALID_SETTINGS = "the settings are valid: values, nginx, certificates, tokens, plugins"

-- Checks a declarative file with the settings of this command, and those that `instance` was
-- started with.
local function check_declarative(instance, arguments, context)
    local remembered
    if instance then
        local ours, reason = prefixes.new(instance):check(context.root)
        if ours then
            remembered, reason = instance:read_remembered()
        end
        if reason then
            return fail(reason)
        end
    end
    local settings, errors = invocation.settings(arguments, instance, remembered)
    if not settings then
        return fail(errors, WRONG_USE)
    end
    local path = arguments.declarative or settings.file
    errors = {}
    local files = tls_files.check(settings, errors)
    -- An empty argument is a script's mistake.
    local has_file = path ~= "" or arguments.declarative or not (remembered or arguments.conf)
    local found = has_file and declarative.check(path, settings, errors)
        or not has_file and preflight.check_settings(settings, errors)
    if #errors > 0 then
        if not instance and not arguments.plugins then
            errors[#errors + 1] = plugin_setting.remark_of_own(errors)
        end
        local routes = errors.coverage
        if routes and routes.routes > 0 and has_lacks(routes) then
            errors[#errors + 1] = "  " .. coverage.format(routes)
        end
        return fail(errors)
    end
    complain(files.warnings)
    complain(preflight.warnings(found))
    if not has_file then
        say(VALID_SETTINGS)
        return DONE
    end
    local snapshot = found.snapshot
    say("%s is valid: %s", declarative.name(path), counts_of(snapshot))
    say("%s", coverage.format(coverage.of_snapshot(snapshot)))
    return DONE
end

local check_of_instance = invocation.on_instance(check_declarative)

--- check: validates a declarative file, or the store, and prints every error.
function _M.check(arguments, context)
    if arguments.store then
        return store_commands.check(arguments, context)
    elseif invocation.names_prefix(arguments) then
        return check_of_instance(arguments, context)
    end
    return check_declarative(nil, arguments, context)
end

_M.apply = entity_commands.apply
_M.delete = entity_commands.delete
_M.get = entity_commands.get
_M.history = entity_commands.history
_M.rollback = entity_commands.rollback

_M.token = token.run

_M.backup = store_commands.backup
_M.diff = store_commands.diff
_M.export = store_commands.export
_M.import = store_commands.import
_M.restore = store_commands.restore

--- completion: a script for a shell.
_M.completion = function(arguments, context)
    local settings, problems = invocation.settings(arguments)
    if not settings or not preflight.load_plugins(settings, problems) then
        return fail(problems, WRONG_USE)
    end
    local kinds = kind_names.names()
    say("%s", completion.script(context.parser(kinds), arguments.shell, kinds))
    return DONE
end

--- nginx-conf: what another nginx needs for the libraries.
_M["nginx-conf"] = function(arguments, context)
    local settings, problems = invocation.settings(arguments)
    if not settings then
        return fail(problems, WRONG_USE)
    end
    for _, part in ipairs(arguments.part and { arguments.part } or libraries.parts) do
        say("%s", libraries.text(part, settings, context.root))
    end
    return DONE
end

--- help: of all commands, or of one.
function _M.help(arguments, context)
    local text, err = help.text(context.parser(), arguments.topic)
    if not text then
        return fail(err, WRONG_USE)
    end
    console.write(text)
    return DONE
end

--- version: the product's, and LuaJIT's.
function _M.version()
    say("sluice %s (%s)", version.product, jit.version)
    return DONE
end

_M.plugins = plugins.run
_M.status = status.run

--- Asks the running gateway.
-- @treturn table|nil the answer's JSON
-- @treturn string its text, since numbers and empty lists do not survive being read; why there is
-- none
local function ask(instance, target)
    local number, answer, text = control.ask(instance.control, "GET", target)
    if number ~= 200 then
        return nil, number and tostring(answer.message) or answer
    end
    return answer, text
end

--- events: what the workers have told each other.
_M.events = invocation.on_running(function(instance, _, arguments)
    local answer, text = ask(instance, "/events")
    if not answer then
        return fail(text)
    end
    if arguments.json then
        console.say_json(text)
    else
        print_lines(report.events(answer))
    end
    return DONE
end)

--- timers: what the timers of all workers do.
_M.timers = invocation.on_running(function(instance, _, arguments)
    local shown, err = timers.show(arguments, function()
        return ask(instance, timers.TARGET)
    end)
    return shown and DONE or fail(err)
end)

return _M
