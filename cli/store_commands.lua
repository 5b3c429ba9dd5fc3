--- The commands that are about what the store holds. Each takes the parsed arguments and a context
-- and returns an exit code.

local console = require("cli.console")
local images = require("cli.images")
local invocation = require("cli.invocation")
local items = require("gateway.config.items")
local options = require("cli.options")
local preflight = require("cli.preflight")
local prefixes = require("cli.prefix")
local recovery = require("cli.recovery")
local reload = require("cli.reload")
local start = require("cli.start")
local store = require("cli.store")

local _M = {}

local DONE, FAILED = console.DONE, console.FAILED
local say, fail, print_lines = console.say, console.fail, console.print_lines

-- A command on the store of an instance, with the settings that it runs with, or would:
-- `run(instance, settings, arguments, context)`.
local function on_store(run)
    return invocation.on_instance(function(instance, arguments, context)
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
        return run(instance, settings, arguments, context)
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
    say("the store is right: revision %d of %s", found.revision, found.uuid)
    return DONE
end)

--- backup: a copy of the store, whether the gateway runs or not.
_M.backup = on_store(function(instance, settings, arguments)
    local _, err = store.backup(settings, instance, arguments.path)
    return done_or(
        err,
        "%s is a store: `sluice restore %s` puts it in the place of this one",
        arguments.path,
        arguments.path
    )
end)

--- restore: a copy of the store in its place, while the gateway does not run.
_M.restore = on_store(function(instance, settings, arguments, context)
    local leader = instance:leaders()[1]
    if leader then
        return fail(("it runs in %s (pid %d): `sluice stop` first"):format(instance.prefix, leader))
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
    say("the store holds revision %d of %s", done.revision, arguments.path)
    if done.kept then
        say("what was there is in %s", done.kept)
    end
    return DONE
end)

--- export: the entities as a declarative file.
_M.export = on_store(function(instance, settings, arguments)
    local _, err = store.export(settings, instance, arguments.path)
    if err or not arguments.path then
        return err and fail(err) or DONE
    end
    say("%s has what the store holds", arguments.path)
    return DONE
end)

--- diff: what a file would change. Exit code 1 where it would.
_M.diff = on_store(function(instance, settings, arguments)
    local errors = {}
    local found = preflight.check_file(arguments.path, settings, errors)
    if not found then
        return fail(errors)
    end
    local list = items.of(found.snapshot, {})
    local lines, err = store.diff(settings, instance, list)
    if not lines then
        return fail(err)
    end
    print_lines(lines)
    return #lines == 0 and DONE or FAILED
end)

--- import: the store holds what a file does, and nothing else.
_M.import = on_store(function(instance, settings, arguments, context)
    if instance:master() then
        return reload.import(instance, arguments.path)
    end
    local errors = {}
    local found = preflight.check_file(arguments.path, settings, errors)
    if not found then
        return fail(errors)
    end
    local writer, err = start.open(context, instance, settings)
    if not writer then
        return fail(err)
    end
    local list = start.items(arguments.path, found.snapshot)
    local loaded, reason = store.load(settings, instance, list, found.origin)
    images.remove(settings, instance.prefix)
    if not loaded then
        writer:undo()
    end
    return done_or(reason, "the store holds what %s does", arguments.path)
end)

return _M
