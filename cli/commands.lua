--- The commands. Each takes the parsed arguments and a context and returns an exit code.
--
-- Exit codes: 0 done; 1 it failed, and the lines on standard error say why; 2 wrong use (an
-- unknown command or flag, a bad setting); 3 the gateway is not running (status, reload, upgrade,
-- reopen; a restart that has ended it and could not start it, a reload whose new workers die).
-- Standard output that cannot be written is a failure, too; one whose reader leaves is none.

local change_commands = require("cli.change_commands")
local cjson = require("cjson")
local console = require("cli.console")
local control = require("cli.control")
local control_worker = require("cli.control_worker")
local images = require("cli.images")

local completion = require("cli.completion")
local config = require("gateway.config")
local entity_commands = require("cli.entity_commands")
local invocation = require("cli.invocation")
local launch = require("cli.launch")
local libraries = require("cli.nginx_libraries")
local log_folder = require("cli.log_folder")
local preflight = require("cli.preflight")
local prefixes = require("cli.prefix")
local process = require("cli.process")
local report = require("cli.report")
local start = require("cli.start")
local store = require("cli.store")
local store_commands = require("cli.store_commands")
local timers = require("cli.timers")
local tls_files = require("cli.tls_files")
local version = require("gateway.version")

local _M = {}

local DONE, FAILED = console.DONE, console.FAILED
local WRONG_USE, NOT_RUNNING = console.WRONG_USE, console.NOT_RUNNING
local say, print_lines = console.say, console.print_lines
local complain, fail = console.complain, console.fail

local STOP_TIMEOUT_S = 10
-- What is running is told also where nobody answers.
local STATUS_TIMEOUT_S = 2

local RESTART_REFUSED = "restart refused: the running gateway is kept"
local BY_ITS_UNIT = "a service manager runs it, and would not know the new one: `systemctl restart "
    .. "sluice` (or sluice@NAME), or `sluice upgrade`, which loses no request"
local BY_ITS_CONTAINER = "its container ends with it: start another one"

-- Whether a service manager wants to be told what this process starts (sd_notify(3)).
local function is_supervised()
    return (os.getenv("NOTIFY_SOCKET") or "") ~= ""
end

-- Whether a container ends with what this process starts (packaging/container/entrypoint).
local function is_contained()
    return (os.getenv("SLUICE_CONTAINER") or "") ~= ""
end

-- What is in memory goes with the gateway; where the settings may be a stranger's, it stays.
local function remove_images(instance, context)
    local settings = prefixes.new(instance):check(context.root) and instance:read_settings()
    if settings and #instance:leaders() == 0 then
        images.remove(settings, instance.prefix)
    end
end

-- A command that ends it, and has nothing to do where it does not run: `run(instance, arguments)`.
local function on_ending(run)
    return invocation.on_instance(function(instance, arguments, context)
        local code = DONE
        if #instance:leaders() == 0 then
            print_lines({ report.stopped(instance.prefix, {}) })
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
    local master = instance:master()
    if master then
        return fail(
            ("already running in %s (pid %d); `sluice reload` takes what changed"):format(
                instance.prefix,
                master
            )
        )
    end
    if #instance:leaders() > 0 then
        return fail(report.stopped(instance.prefix, instance:orphans()))
    end
    local held = store.held(settings, instance)
    complain({ held.note and "warning: store: " .. held.note })
    local found, files
    problems, found, files = preflight.check(settings, {
        root = context.root,
        foreground = arguments.foreground,
        store = held,
    })
    if #problems > 0 then
        return fail(problems)
    end
    complain(files.warnings)
    given.hash, given.files = found.hash, files.digest
    given.is_supervised = is_supervised()
    given.is_contained = is_contained()
    start.fit_connections(settings)
    local writer, err = start.open(context, instance, settings)
    if not writer then
        return fail(err)
    end
    if instance:master() then
        return fail(("already running in %s"):format(instance.prefix))
    end
    local up, lines = writer:write_files(settings, given, context.root)
    if up then
        up, lines = start.run(instance, settings, found, arguments.foreground)
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
    return true, { ("requests in work after %g seconds were cut off"):format(timeout_s) }
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
    -- Nobody has them: what begins is the copy on the disk.
    images.clear(settings)
    local up, failure = start.run(instance, settings, opts.found, opts.foreground)
    if not up then
        writer:undo()
        failure[1] = "the gateway is NOT running: " .. failure[1]
        return fail(failure, NOT_RUNNING)
    end
    return DONE
end

--- restart: checks like start before it quits the running one.
_M.restart = invocation.on_instance(function(instance, arguments, context)
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
        return fail(problems, WRONG_USE)
    end
    local held = store.held(settings, instance)
    complain({ held.note and "warning: store: " .. held.note })
    local found, files
    problems, found, files = preflight.check(settings, {
        root = context.root,
        foreground = arguments.foreground,
        held = preflight.addresses(old),
        store = held,
    })
    if #problems > 0 then
        problems[#problems + 1] = old and RESTART_REFUSED or nil
        return fail(problems)
    end
    complain(files.warnings)
    given.hash, given.files = found.hash, files.digest
    given.is_supervised = is_supervised()
    given.is_contained = false
    start.fit_connections(settings)
    return replace(context, instance, settings, given, {
        found = found,
        foreground = arguments.foreground,
        old = old,
        timeout = arguments.timeout,
    })
end)

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
    say("stopped after its last request")
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

--- check: validates a declarative file, or the store, and prints every error.
function _M.check(arguments, context)
    if arguments.store then
        return store_commands.check(arguments, context)
    end
    local settings, errors = invocation.settings(arguments)
    if not settings then
        return fail(errors, WRONG_USE)
    end
    local path = arguments.declarative or settings.file
    errors = {}
    local files = tls_files.check(settings, errors)
    local found = preflight.check_file(path, settings, errors)
    if #errors > 0 then
        return fail(errors)
    end
    complain(files.warnings)
    local snapshot = found.snapshot
    for _, list in ipairs({ snapshot.warnings or {}, config.slow_warnings(snapshot) }) do
        for _, warning in ipairs(list) do
            complain({ "warning: " .. warning })
        end
    end
    say(
        "%s is right: %d services, %d routes, %d upstreams, %d consumers, %d plugins",
        path,
        #snapshot.services,
        #snapshot.routes,
        #snapshot.upstreams,
        #snapshot.consumers,
        #snapshot.plugins
    )
    return DONE
end

_M.apply = entity_commands.apply
_M.delete = entity_commands.delete
_M.get = entity_commands.get
_M.history = entity_commands.history
_M.rollback = entity_commands.rollback

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
    local kinds = entity_commands.kinds()
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

--- version: the product's, and LuaJIT's.
function _M.version()
    say("sluice %s (%s)", version.product, jit.version)
    return DONE
end

-- What an upgrade has left to leave.
local function former(instance)
    local pid = instance:former()
    return pid and { pid = pid, workers = instance.workers(pid) }
end

-- Whether all workers get the events of the others, in a moment; nil where nobody answers.
local function events_of(instance, master_control)
    if not (master_control and master_control.life == "answers") then
        return nil
    end
    local status, answer = control.ask(instance.control, "GET", "/events", nil, STATUS_TIMEOUT_S)
    local log = status == 200 and answer.log
    return log
            and {
                slots = log.slots,
                taken = log.attached + log.detached,
                workers_without = log.unattached,
            }
        or nil
end

--- status: whether it runs, and what.
_M.status = invocation.on_instance(function(instance, arguments, context)
    local master = instance:master()
    local found = { running = master ~= nil, prefix = instance.prefix, version = version.product }
    if master then
        local settings = instance:read_settings() or {}
        found.pid = master
        found.uptime_s = process.age_s(master) or 0
        -- Another user's may name any program.
        local is_ours = prefixes.new(instance):check(context.root)
        found.nginx = is_ours and settings.nginx_binary and launch.version(settings.nginx_binary)
            or nil
        found.file = settings.file
        found.proxy_listen = settings.proxy_listen or {}
        found.admin_listen = settings.admin_listen or {}
        found.workers = instance.workers(master)
        found.former = former(instance)
        found.control = control_worker.read(master)
        found.events = events_of(instance, found.control)
    else
        found.orphans = instance:orphans()
    end
    if arguments.json then
        -- Every empty table here is a list; slashes need no escape.
        say("%s", (cjson.encode(found):gsub("{}", "[]"):gsub("\\/", "/")))
    else
        print_lines(report.status(found))
    end
    return master and DONE or NOT_RUNNING
end)

--- Asks the running gateway.
-- @treturn table|nil the answer's JSON
-- @treturn string|nil why there is none
local function ask(instance, target)
    local status, answer = control.ask(instance.control, "GET", target)
    if status ~= 200 then
        return nil, status and tostring(answer.message) or answer
    end
    return answer
end

--- events: what the workers have told each other.
_M.events = invocation.on_running(function(instance, _, arguments)
    local answer, err = ask(instance, "/events")
    if not answer then
        return fail(err)
    end
    if arguments.json then
        say("%s", (cjson.encode(answer):gsub("\\/", "/")))
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
