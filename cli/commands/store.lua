--- The commands that are about what the store holds. Each takes the parsed arguments and a context
-- and returns an exit code.

local console = require("cli.terminal.console")
local declarative = require("cli.commands.declarative")
local hint = require("cli.terminal.hint")
local images = require("cli.instance.images")
local invocation = require("cli.commands.invocation")
local options = require("cli.options")
local origins = require("gateway.config.origin")
local planning = require("cli.commands.planning")
local preflight = require("cli.instance.preflight")
local prefixes = require("cli.instance.prefix")
local recovery = require("cli.instance.recovery")
local reload = require("cli.commands.reload")
local start = require("cli.commands.start")
local stat = require("posix.sys.stat")
local store = require("cli.instance.store")
local unistd = require("posix.unistd")
local values = require("cli.options.values")

local _M = {}

local DONE, FAILED = console.DONE, console.FAILED
local say, fail = console.say, console.fail
local complain = console.complain

-- A command on the store of an instance, with the settings that it runs with, or would:
-- `run(instance, settings, arguments, context)`; `makes`: it makes a store where there is none.
local function on_store(run, makes)
    local on = makes and invocation.on_meant or invocation.on_instance
    return on(function(instance, arguments, context)
        local ours, foreign = prefixes.new(instance):check(context.root)
        if not ours then
            return fail(foreign)
        end
        local remembered = instance:read_remembered()
        local settings, problems = invocation.settings(arguments, instance, remembered)
        if not settings then
            return fail(problems, console.WRONG_USE)
        end
        local live = instance:read_settings() or {}
        for _, option in ipairs(options.list) do
            -- As whom the workers run, and where: what is there now counts.
            if option.where == "start" and live[option.name] ~= nil then
                settings[option.name] = live[option.name]
            end
        end
        -- They bring kinds of entities.
        if not preflight.load_plugins(settings, problems) then
            return fail(problems)
        end
        local code = run(instance, settings, arguments, context)
        if code == FAILED and not stat.stat(instance.store) then
            complain({ invocation.others(instance) })
        end
        return code
    end)
end

local function done_or(failed, format, ...)
    if failed then
        return fail(failed)
    end
    say(format, ...)
    return DONE
end

--- check --store: reads every page of the store.
_M.check = on_store(function(instance, settings)
    local found, lines = store.check(settings, instance)
    if not found then
        return fail(lines)
    end
    say("the store is valid: revision %d of %s", found.revision, found.uuid)
    return DONE
end)

--- backup: a copy of the store, whether the gateway runs or not.
_M.backup = on_store(function(instance, settings, arguments)
    local _, err = store.backup(settings, instance, arguments.path, arguments.force)
    return done_or(
        err,
        "%s is a backup of the store; to restore it: `sluice restore %s`",
        arguments.path,
        hint.quoted(arguments.path)
    )
end)

--- restore: a copy of the store in its place, while the gateway does not run.
_M.restore = on_store(function(instance, settings, arguments, context)
    local leader = instance:leaders()[1]
    if leader then
        return fail(
            ("the gateway is running in %s (pid %d); stop it first with `sluice stop`"):format(
                instance.prefix,
                leader
            )
        )
    end
    local writer, err = start.open_prefix(context, instance, settings)
    if not writer then
        return fail(err)
    end
    local done, reason = recovery.restore(settings, instance, arguments.path)
    if not done then
        writer:undo()
        return fail(reason)
    end
    say("the store has revision %d of %s", done.revision, arguments.path)
    if done.kept then
        say("the previous store is in %s", done.kept)
    end
    return DONE
end, true)

--- export: the entities as a declarative file.
_M.export = on_store(function(instance, settings, arguments)
    local path = arguments.path ~= "-" and arguments.path or nil
    local is_yaml = arguments.yaml or (path and path:lower():find("%.ya?ml$") ~= nil)
    local _, err = store.export(settings, instance, path, is_yaml, arguments.force)
    if err or not path then
        return err and fail(err) or DONE
    end
    say("%s has the contents of the store", path)
    return DONE
end)

--- diff: what a file would change. Exit code 1 where it would.
_M.diff = on_store(function(instance, settings, arguments)
    local errors = {}
    local found = declarative.check(arguments.path, settings, errors)
    if not found then
        return fail(errors)
    end
    complain(preflight.warnings(found, declarative.name(arguments.path)))
    local plan, err = planning.of_file(instance, settings, found)
    if not plan then
        return fail(err)
    end
    local untagged = planning.untagged(plan, found, declarative.name(arguments.path))
    complain(untagged and { "warning: " .. untagged } or {})
    planning.show(plan, arguments)
    return planning.is_empty(plan) and DONE or FAILED
end)

-- Has the store of a gateway that does not run hold a file.
local function load(context, instance, settings, path, found)
    local writer, err = start.open(context, instance, settings)
    if not writer then
        return nil, err
    end
    local list, addresses = start.items(path, found)
    local loaded, reason = store.load(settings, instance, list, found.origin, path, function(held)
        return planning.items(settings, found, held, addresses)
    end)
    images.remove(settings, instance.prefix)
    if not loaded then
        writer:undo()
    end
    return loaded, reason
end

local REPLACES = "an import replaces the whole store; `sluice apply FILE` deletes nothing, and "
    .. "without `_info.select_tags` the import deletes them; nothing was changed"

--- import: the store holds what a file does, and nothing else. Refused while the gateway's own file
-- is the configuration, since what is live would not be what that file says.
_M.import = on_store(function(instance, settings, arguments, context)
    local errors, path = {}, declarative.name(arguments.path)
    local runs = instance:master() ~= nil
    local live = runs and instance:read_settings()
    if live and live.file ~= "" and not arguments.dry_run then
        return fail({ "read-only: " .. origins.how_to_change(live), "nothing was changed" })
    end
    local found = declarative.check(arguments.path, settings, errors)
    if not found then
        return fail(errors)
    end
    complain(preflight.warnings(found, path))
    local plan, reason = planning.of_file(instance, settings, found, true)
    if plan and arguments.keeps and plan.deleted > 0 then
        local line = "%s lacks %d entities of the store, which an import would delete; start the "
            .. "gateway and import into it, or replace the store with `sluice import`"
        return fail(line:format(path, plan.deleted))
    end
    local untagged = plan and planning.untagged(plan, found, path)
    if untagged and not arguments.dry_run then
        return fail({ untagged, REPLACES })
    end
    complain(untagged and { "warning: " .. untagged } or {})
    -- Of one that is damaged, who loads it says more.
    local code = (plan or runs or arguments.dry_run) and planning.settle(plan, reason, arguments)
    if code then
        return code
    end
    local done
    -- The history names it wherever the command was typed.
    local file = path == arguments.path and values.absolute(path, unistd.getcwd()) or path
    if runs then
        done, reason = reload.import(instance, file, found.text)
    else
        done, reason = load(context, instance, settings, file, found)
    end
    if not done then
        return fail(reason)
    end
    if plan then
        planning.report(plan, arguments, runs and done.version or nil)
    end
    if arguments.json then
        return DONE
    elseif runs then
        return reload.say_live(done)
    end
    say("the store in %s has the contents of %s", instance.prefix, path)
    if not instance:read_settings() then
        say("no gateway has run there yet; `sluice start` starts it")
    end
    return DONE
end, true)

return _M
