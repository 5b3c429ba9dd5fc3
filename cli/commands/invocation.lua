--- What the arguments of a command mean: the instance, and its settings.

local dirent = require("posix.dirent")
local pwd = require("posix.pwd")
local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")

local capability = require("cli.options.capability")
local console = require("cli.terminal.console")
local environments = require("cli.options.environment")
local hint = require("cli.terminal.hint")
local instances = require("cli.instance")
local logs = require("cli.nginx.logs")
local options = require("cli.options")
local paths = require("cli.instance.paths")
local prefixes = require("cli.instance.prefix")
local report = require("cli.terminal.report")
local settings_of = require("cli.options.settings")
local worker_user = require("cli.instance.worker_user")

local _M = {}

local fail = console.fail

local function given_flags(arguments)
    local flags = {}
    for _, option in ipairs(options.list) do
        flags[option.name] = arguments[option.name]
    end
    return flags
end

-- The same for a line that says what to type instead; the prefix is in each line.
local function typed_flags(arguments)
    local typed = {}
    for _, option in ipairs(options.list) do
        local text = option.name ~= "prefix" and arguments[option.name] or nil
        if option.name == "file" and text == "" then
            typed[#typed + 1] = { "--no-file" }
        elseif text then
            typed[#typed + 1] = { options.flag(option), text }
        end
    end
    return typed
end

-- The same of the environment, Kong's names included; a restart keeps what start was given.
local function typed_variables(arguments, given, remembered)
    local typed = {}
    for _, option in ipairs(options.list) do
        local name = option.name
        local now, kept = given.environment[name], remembered.environment[name]
        local variable = now and now.source:match("^environment ([%w_]+)$")
        local text = variable and not arguments[name] and os.getenv(variable)
        if text and name ~= "prefix" and not (kept and kept.text == now.text) then
            typed[#typed + 1] = { variable, not options.is_secret(option) and text or nil }
        end
    end
    return typed
end

--- Whether a command was told which instance is meant.
-- @tparam table arguments parsed
-- @treturn boolean
function _M.names_prefix(arguments)
    local variable = options.variable(options.by_name.prefix)
    return (arguments.prefix or os.getenv(variable) or os.getenv("KONG_PREFIX")) ~= nil
end

-- The instance that the arguments mean; needs the prefix alone, so that a mistake elsewhere does
-- not keep anybody from stopping the gateway.
local function find_instance(arguments)
    local settings, errors = settings_of.resolve({
        flags = given_flags(arguments),
        defaults = arguments.defaults,
        cwd = unistd.getcwd(),
        only = { "prefix" },
    })
    if not settings then
        return nil, errors
    end
    local instance = instances.new(paths.resolve(settings.prefix))
    instance.is_named = _M.names_prefix(arguments)
    -- A settings file may name it, too.
    local is_typed = arguments.prefix or arguments.conf
    local is_named = instance.is_named or arguments.conf
    hint.set_prefix(is_typed and instance.prefix, is_named and instance.prefix)
    hint.set_flags(typed_flags(arguments))
    return instance
end

--- Where gateways run, for a command that found nothing and was not told where to look.
-- @tparam table instance cli.instance
-- @tparam[opt] boolean looks_anywhere also where it was named
-- @treturn string|nil a line
function _M.others(instance, looks_anywhere)
    local found = instance.is_named and not looks_anywhere and {} or instances.running()
    return #found > 0
            and "  running on this machine: --prefix " .. table.concat(found, ", --prefix ")
        or nil
end

--- That no gateway runs where it was looked for, and where others do.
-- @tparam table instance cli.instance
-- @treturn {string,...} lines
function _M.stopped(instance)
    local line = report.stopped(instance.prefix, instance:orphans())
    local is_missing = instance.is_named and not stat.stat(instance.prefix)
    line = line .. (is_missing and ", which does not exist" or "")
    return { line, _M.others(instance, is_missing) }
end

-- Commands that may find a machine which has just booted.
local MAKES_RUN_DIR = { start = true, restart = true, import = true }

-- Commands by which a line of the settings file may have been meant to take effect.
local TAKES_FILE = { reload = true, restart = true }

-- Commands that tell what of Kong's settings has no effect: who comes from there begins with these.
local WARNS = { start = true, restart = true, reload = true, check = true }

-- A prefix may belong to the user whom root's own settings name, as that of the packages does. Then
-- root's command goes on as this user: what it left there can do no more than it.
local function become_owner(instance, arguments, root)
    local info = unistd.geteuid() == 0 and stat.stat(instance.prefix)
    if not info or info.st_uid == 0 then
        return
    end
    local function resolve(name)
        local settings = settings_of.resolve({
            flags = given_flags(arguments),
            defaults = arguments.defaults,
            cwd = unistd.getcwd(),
            only = { name },
        })
        return settings and settings[name]
    end
    local user = resolve("user")
    local account = user and worker_user.account(user)
    if account and account.pw_uid == info.st_uid then
        local run_dir = MAKES_RUN_DIR[arguments.command] and resolve("run_dir")
        if run_dir and run_dir ~= "" then
            prefixes.make_run_dir(run_dir, account, root)
        end
        capability.keep(function()
            worker_user.become(account)
        end)
    end
end

-- The standard output and error of a container's first process, which nginx can open at any time:
-- a daemon's own are nowhere.
local OF_CONTAINER = {
    stderr = "/proc/1/fd/2",
    ["/dev/stderr"] = "/proc/1/fd/2",
    ["/dev/stdout"] = "/proc/1/fd/1",
}

local function fit_logs(settings)
    for _, name in ipairs(logs.names) do
        settings[name] = OF_CONTAINER[settings[name]] or settings[name]
    end
end

--- Whether a command starts nginx in the foreground.
-- @tparam table arguments parsed
-- @tparam table settings resolved
-- @treturn boolean
function _M.is_foreground(arguments, settings)
    return arguments.foreground or not settings.daemon
end

-- In a container it goes on as who runs the gateway, whom no account may know. Who starts it stays
-- root: standard output and error are its own, and the logs go there.
local function become_running(instance)
    local master = unistd.geteuid() == 0 and instance:master()
    local info = master and stat.stat("/proc/" .. master)
    if not info or info.st_uid == 0 then
        return
    end
    local account = pwd.getpwuid(info.st_uid)
    worker_user.become({
        pw_name = account and account.pw_name or "",
        pw_uid = info.st_uid,
        pw_gid = info.st_gid,
    })
end

-- A flag of the last start overrides what the environment has now: who sets a variable for this one
-- command is told.
local function warn_of_overridden(arguments, remembered)
    for _, option in ipairs(options.list) do
        local name, variable = option.name, options.variable(option)
        local kept, was = remembered.flags[name], remembered.environment[name]
        local text = not arguments[name] and name ~= "prefix" and os.getenv(variable) or nil
        if kept and text and text ~= kept.text and not (was and was.text == text) then
            local line = "warning: %s is not used: start was given %s, which overrides it; type "
                .. "the flag here, too"
            local is_no_file = name == "file" and kept.text == ""
            local flag = is_no_file and "--no-file" or options.flag(option)
            console.complain({ line:format(variable, flag) })
        end
    end
end

--- The settings that a command is given, by flag, environment, file and default.
-- @tparam table arguments parsed
-- @tparam[opt] table instance cli.instance, whose prefix it is
-- @tparam[opt] table remembered what start was given (cli.settings)
-- @treturn table|nil settings
-- @treturn table errors
-- @treturn table what a later reload must know
function _M.settings(arguments, instance, remembered)
    local settings, errors, given, warnings, ignored = settings_of.resolve({
        flags = given_flags(arguments),
        defaults = arguments.defaults,
        cwd = unistd.getcwd(),
        remembered = remembered,
        master = instance and instance:master(),
    })
    if settings and instance then
        settings.prefix = instance.prefix
    end
    if settings and remembered then
        warn_of_overridden(arguments, remembered)
        console.complain({ TAKES_FILE[arguments.command] and ignored or nil })
        hint.set_variables(typed_variables(arguments, given, remembered))
    end
    if settings and environments.is_contained() then
        local is_first = remembered and remembered.is_contained
        if not is_first and not _M.is_foreground(arguments, settings) then
            fit_logs(settings)
        end
    end
    for _, warning in ipairs(settings and WARNS[arguments.command] and warnings or {}) do
        console.complain({ "warning: " .. warning })
    end
    return settings, errors, given
end

--- Names the variable of Kong's in errors about the setting that it gave, where that has another
-- name.
-- @tparam {string,...} lines of cli.instance.preflight
-- @tparam table given third result of `settings`
-- @treturn {string,...} lines
function _M.as_typed(lines, given)
    local typed = {}
    for i, line in ipairs(lines) do
        local name, rest = line:match("^([%w_]+)(: .*)$")
        local kept = name and not given.flags[name] and given.environment[name]
        local kongs = kept and kept.source and kept.source:match("^environment KONG_([%w_]+)$")
        local is_other = kongs and kongs:lower() ~= name
        typed[i] = is_other and ("%s (%s)%s"):format(name, kept.source, rest) or line
    end
    return typed
end

-- What is said of unknown SLUICE_* variables by commands that take no setting but the prefix. Who
-- looks or ends something is warned, so that a mistake locks nobody out; others are refused, as
-- those are that take all settings and say so themselves.
local WARNED, REFUSED = "warned", "refused"
local OF_UNKNOWN = {
    apply = REFUSED,
    delete = REFUSED,
    events = WARNED,
    get = WARNED,
    history = WARNED,
    quit = WARNED,
    reopen = WARNED,
    rollback = REFUSED,
    status = WARNED,
    stop = WARNED,
    timers = WARNED,
}

-- Says what is unknown; an exit code where that is all.
local function check_environment(instance, arguments)
    local how = OF_UNKNOWN[arguments.command]
    local unknown = how
            and settings_of.unknown({
                flags = given_flags(arguments),
                defaults = arguments.defaults,
                cwd = unistd.getcwd(),
                -- Start may have been told that some are a vault's.
                remembered = (instance:read_remembered()),
            })
        or {}
    if how == REFUSED and #unknown > 0 then
        return fail(unknown, console.WRONG_USE)
    end
    for _, line in ipairs(unknown) do
        console.complain({ "warning: " .. line })
    end
    return nil
end

--- A command on the instance that the arguments mean.
-- @tparam function run `(instance, arguments, context)` -> exit code
-- @treturn function the command
function _M.on_instance(run)
    return function(arguments, context)
        local instance, errors = find_instance(arguments)
        if not instance then
            return fail(errors, console.WRONG_USE)
        end
        if environments.is_contained() then
            become_running(instance)
        else
            become_owner(instance, arguments, context.root)
        end
        return check_environment(instance, arguments) or run(instance, arguments, context)
    end
end

-- Whether a prefix is a folder with nothing in it, or none.
local function is_unused(instance)
    local names = stat.stat(instance.prefix) and dirent.dir(instance.prefix) or {}
    return #names <= #{ ".", ".." } and #instance:leaders() == 0
end

--- A command that would begin something new in a prefix that has nothing. Refused in the default
-- one, where nobody has named it and a gateway runs elsewhere, and in any one if the command needs
-- a gateway: the name may be mistyped. Kong's command line names its own default, and its restart
-- starts.
-- @tparam function run `(instance, arguments, context)` -> exit code
-- @tparam[opt] boolean needs_one refused in any prefix that has nothing
-- @treturn function the command
function _M.on_meant(run, needs_one)
    local default = options.by_name.prefix.default
    return _M.on_instance(function(instance, arguments, context)
        local has_file = arguments.conf or os.getenv(options.variable(options.by_name.conf))
        local is_default = not (instance.is_named or arguments.defaults or has_file)
            and instance.prefix == paths.resolve(default)
        local is_needed = needs_one and not arguments.defaults
        if (is_default or is_needed) and is_unused(instance) then
            local others = _M.others(instance)
            if others or needs_one then
                local line = others
                        and "not running in %s, which is empty; name the gateway with --prefix"
                    or "not running in %s; `sluice start` starts a gateway there"
                return fail({ line:format(instance.prefix), others }, console.NOT_RUNNING)
            end
        end
        return run(instance, arguments, context)
    end)
end

--- A command that needs it to run.
-- @tparam function run `(instance, master, arguments, context)` -> exit code
-- @treturn function the command
function _M.on_running(run)
    return _M.on_instance(function(instance, arguments, context)
        local master = instance:master()
        if not master then
            return fail(_M.stopped(instance), console.NOT_RUNNING)
        end
        return run(instance, master, arguments, context)
    end)
end

return _M
