--- The commands. Each takes the parsed arguments and a context and returns an exit code.
--
-- Exit codes: 0 done; 1 it failed, and the lines on standard error say why; 2 wrong use (an
-- unknown command or flag, a bad setting); 3 the gateway is not running (status, reload, reopen; a
-- restart that has ended it and could not start it, a reload whose new workers die).

local cjson = require("cjson")
local console = require("cli.console")
local control = require("cli.control")
local unistd = require("posix.unistd")

local config = require("gateway.config")
local instances = require("cli.instance")
local launch = require("cli.launch")
local options = require("cli.options")
local posted = require("cli.posted")
local preflight = require("cli.preflight")
local prefixes = require("cli.prefix")
local process = require("cli.process")
local reload = require("cli.reload")
local report = require("cli.report")
local settings_of = require("cli.settings")
local timers = require("cli.timers")
local version = require("gateway.version")

local _M = {}

local DONE, FAILED = console.DONE, console.FAILED
local WRONG_USE, NOT_RUNNING = console.WRONG_USE, console.NOT_RUNNING
local say, print_lines = console.say, console.print_lines
local complain, fail = console.complain, console.fail

local STOP_TIMEOUT_S = 10

local function given_flags(arguments)
    local flags = {}
    for _, option in ipairs(options.list) do
        flags[option.name] = arguments[option.name]
    end
    return flags
end

-- The instance that the arguments mean; needs the prefix alone, so that a mistake elsewhere does
-- not keep anybody from stopping the gateway.
local function find_instance(arguments)
    local settings, errors = settings_of.resolve({
        flags = given_flags(arguments),
        cwd = unistd.getcwd(),
        only = { "prefix" },
    })
    if not settings then
        return nil, errors
    end
    return instances.new(prefixes.resolve(settings.prefix))
end

local function resolve(arguments, instance, remembered)
    local settings, errors, given = settings_of.resolve({
        flags = given_flags(arguments),
        cwd = unistd.getcwd(),
        remembered = remembered,
    })
    if settings then
        settings.prefix = instance.prefix
    end
    return settings, errors, given
end

-- A command on the instance that the arguments mean: `run(instance, arguments, context)`.
local function on_instance(run)
    return function(arguments, context)
        local instance, errors = find_instance(arguments)
        if not instance then
            return fail(errors, WRONG_USE)
        end
        return run(instance, arguments, context)
    end
end

-- A command that needs it to run: `run(instance, master, arguments, context)`.
local function on_running(run)
    return on_instance(function(instance, arguments, context)
        local master = instance:master()
        if not master then
            return fail(report.stopped(instance.prefix, instance:orphans()), NOT_RUNNING)
        end
        return run(instance, master, arguments, context)
    end)
end

-- A command that ends it, and has nothing to do where it does not run: `run(instance, arguments)`.
local function on_ending(run)
    return on_instance(function(instance, arguments)
        if #instance:leaders() == 0 then
            print_lines({ report.stopped(instance.prefix, {}) })
            return DONE
        end
        return run(instance, arguments)
    end)
end

-- A writer for the instance's prefix, which is made and locked.
local function open_prefix(context, instance, settings)
    local writer = prefixes.new(instance)
    local made, err = writer:make_directories(settings.user, context.root)
    if not made then
        writer:undo()
        return nil, err
    end
    return writer
end

-- From written files to a running nginx. Returns only when that fails, where it is to run in the
-- foreground.
local function bring_up(instance, settings, foreground)
    posted.drop(instance)
    local cleared, err = control.clear(instance.control)
    if not cleared then
        return nil, { err }
    end
    if foreground then
        local right, lines = launch.test(instance, settings)
        if not right then
            return nil, lines
        end
        say("sluice %s: %s; Ctrl-C stops it", version.product, report.listeners(settings))
        local _, failure =
            process.exec(settings.nginx_binary, instance:arguments(settings, "foreground"))
        return nil, { failure }
    end
    local master, lines = launch.daemon(instance, settings)
    if not master then
        return nil, lines
    end
    say("sluice %s started (pid %d): %s", version.product, master, report.listeners(settings))
    return true
end

local function warn_connections(settings)
    local warning = preflight.fit_connections(settings)
    if warning then
        complain({ "warning: " .. warning })
    end
end

--- start: checks everything, then runs nginx as a daemon or in the foreground.
_M.start = on_instance(function(instance, arguments, context)
    local settings, problems, given = resolve(arguments, instance)
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
    local orphans = instance:orphans()
    if #orphans > 0 then
        return fail(report.stopped(instance.prefix, orphans))
    end
    local snapshot
    problems, snapshot =
        preflight.check(settings, { root = context.root, foreground = arguments.foreground })
    if #problems > 0 then
        return fail(problems)
    end
    given.hash = snapshot.hash
    warn_connections(settings)
    local writer, err = open_prefix(context, instance, settings)
    if not writer then
        return fail(err)
    end
    if instance:master() then
        return fail(("already running in %s"):format(instance.prefix))
    end
    local up, lines = writer:write_files(settings, given, context.root)
    if up then
        up, lines = bring_up(instance, settings, arguments.foreground)
    end
    if not up then
        writer:undo()
        return fail(lines)
    end
    return DONE
end)

-- Options that a reload cannot change: says so where they differ.
local function note_start_only(old, settings)
    for _, option in ipairs(options.list) do
        local name = option.name
        if option.where == "start" and old and old[name] ~= nil and old[name] ~= settings[name] then
            complain({ ("warning: %s changes only with `sluice restart`"):format(name) })
            settings[name] = old[name]
        end
    end
end

--- reload: checks the file and the settings; where only the file has changed, the workers take it,
-- otherwise renders, tests, and swaps the workers.
_M.reload = on_running(function(instance, master, arguments, context)
    local ours, foreign = prefixes.new(instance):check(context.root)
    if not ours then
        return reload.keep(foreign)
    end
    local old, remembered = instance:read_settings(), instance:read_remembered()
    local settings, problems, given = resolve(arguments, instance, remembered)
    if not settings then
        return reload.keep(problems, WRONG_USE)
    end
    note_start_only(old, settings)
    settings.superseded = old and old.superseded
    local snapshot
    problems, snapshot = preflight.check(
        settings,
        { root = context.root, foreground = true, held = preflight.addresses(old) }
    )
    if #problems > 0 then
        return reload.keep(problems)
    end
    warn_connections(settings)
    given.hash = snapshot.hash
    local is_new_file = not remembered or remembered.hash ~= snapshot.hash

    local writer, err = open_prefix(context, instance, settings)
    if not writer then
        return reload.keep(err)
    end
    if is_new_file and not arguments.new_workers and writer:is_written(settings, context.root) then
        return reload.post(instance, writer, settings, given)
    end
    return reload.swap_workers(
        instance,
        writer,
        settings,
        given,
        { is_new_file = is_new_file, root = context.root, master = master, old = old }
    )
end)

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
local function replace(context, instance, settings, given, is_running, arguments)
    local function give_up(lines)
        lines = type(lines) == "table" and lines or { lines }
        lines[#lines + 1] = is_running and "restart refused: the running gateway is kept" or nil
        return fail(lines)
    end
    local writer, err = open_prefix(context, instance, settings)
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
    local gone, notes = quit(instance, arguments.timeout)
    complain(notes)
    if not gone then
        writer:undo()
        return FAILED
    end
    local up, failure = bring_up(instance, settings, arguments.foreground)
    if not up then
        writer:undo()
        failure[1] = "the gateway is NOT running: " .. failure[1]
        return fail(failure, NOT_RUNNING)
    end
    return DONE
end

--- restart: checks like start before it quits the running one.
_M.restart = on_instance(function(instance, arguments, context)
    local ours, foreign = prefixes.new(instance):check(context.root)
    if not ours then
        return fail(foreign)
    end
    local old = #instance:leaders() > 0 and instance:read_settings() or nil
    local settings, problems, given = resolve(arguments, instance, instance:read_remembered())
    if not settings then
        return fail(problems, WRONG_USE)
    end
    local snapshot
    problems, snapshot = preflight.check(settings, {
        root = context.root,
        foreground = arguments.foreground,
        held = preflight.addresses(old),
    })
    if #problems > 0 then
        problems[#problems + 1] = old and "restart refused: the running gateway is kept" or nil
        return fail(problems)
    end
    given.hash = snapshot.hash
    warn_connections(settings)
    return replace(context, instance, settings, given, old ~= nil, arguments)
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
_M.reopen = on_running(function(instance, master, _, context)
    local writer = prefixes.new(instance)
    local right, reason = writer:check(context.root)
    local settings = right and instance:read_settings()
    if settings then
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

--- check: validates a declarative file and prints every error.
function _M.check(arguments)
    local settings, errors = settings_of.resolve({
        flags = given_flags(arguments),
        cwd = unistd.getcwd(),
    })
    if not settings then
        return fail(errors, WRONG_USE)
    end
    local path = arguments.declarative or settings.file
    errors = {}
    local snapshot = preflight.check_file(path, settings, errors)
    if not snapshot then
        return fail(errors)
    end
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

--- version: the product's, and LuaJIT's.
function _M.version()
    say("sluice %s (%s)", version.product, jit.version)
    return DONE
end

--- status: whether it runs, and what.
_M.status = on_instance(function(instance, arguments, context)
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
_M.events = on_running(function(instance, _, arguments)
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
_M.timers = on_running(function(instance, _, arguments)
    local shown, err = timers.show(arguments, function()
        return ask(instance, timers.TARGET)
    end)
    return shown and DONE or fail(err)
end)

return _M
