--- What the arguments of a command mean: the instance, and its settings.

local stat = require("posix.sys.stat")
local unistd = require("posix.unistd")

local capability = require("cli.capability")
local console = require("cli.console")
local instances = require("cli.instance")
local options = require("cli.options")
local prefixes = require("cli.prefix")
local report = require("cli.report")
local settings_of = require("cli.settings")
local worker_user = require("cli.worker_user")

local _M = {}

local fail = console.fail

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

-- Commands that may find a machine which has just booted.
local MAKES_RUN_DIR = { start = true, restart = true, import = true }

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

--- The settings that a command is given, by flag, environment, file and default.
-- @tparam table arguments parsed
-- @tparam[opt] table instance cli.instance, whose prefix it is
-- @tparam[opt] table remembered what start was given (cli.settings)
-- @treturn table|nil settings
-- @treturn table errors
-- @treturn table what a later reload must know
function _M.settings(arguments, instance, remembered)
    local settings, errors, given = settings_of.resolve({
        flags = given_flags(arguments),
        cwd = unistd.getcwd(),
        remembered = remembered,
        master = instance and instance:master(),
    })
    if settings and instance then
        settings.prefix = instance.prefix
    end
    return settings, errors, given
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
        become_owner(instance, arguments, context.root)
        return run(instance, arguments, context)
    end
end

--- A command that needs it to run.
-- @tparam function run `(instance, master, arguments, context)` -> exit code
-- @treturn function the command
function _M.on_running(run)
    return _M.on_instance(function(instance, arguments, context)
        local master = instance:master()
        if not master then
            local line = report.stopped(instance.prefix, instance:orphans())
            return fail(line, console.NOT_RUNNING)
        end
        return run(instance, master, arguments, context)
    end)
end

return _M
